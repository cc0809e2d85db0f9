import type { RunOptions, RunReport } from '../definitions';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import type { Handler } from '../handler';
import type { Serving } from '../serving';
import { type SdkServer } from './shapes';
/** Which parts of a server are served natively, and which by the SDK. */
export interface AccelerationReport {
    /** Tools, resources and prompts that bypass the SDK's protocol. */
    native: string[];
    /** Parts that are left to the SDK, and why. */
    sdk: {
        what: string;
        why: string;
    }[];
}
/** A server of the official SDK that runs on the engine. */
export declare class Accelerated {
    #private;
    /**
     * Serves until it is closed, a signal arrives or, on stdin and stdout, the client disconnects: see `Server.run`.
     */
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    /** Starts to serve at an address; resolves once it listens: see `Server.serve`. */
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    /**
     * Serves requests of `node:http`, express and similar frameworks, in an HTTP server of yours: see `Server.handler`.
     * Handlers of the SDK find what a middleware has put into `request.auth` as `authInfo`.
     */
    handler(options?: EndpointOptions): Handler;
    /** Serves a web-standard `Request`: see `Server.fetch`. */
    fetch(request: Request): Promise<Response>;
    /** Closes every connection gracefully. */
    close(): void;
    /** Reports how each part is served, as far as known: for the handler of a method, only after its first request. */
    report(): AccelerationReport;
}
/**
 * Runs a server of the official SDK on the engine: an `McpServer` of `@modelcontextprotocol/sdk` (v1) or
 * `@modelcontextprotocol/server` (v2). Call it instead of `server.connect(transport)`. What the server has registered
 * is served natively, with its schemas and callbacks; requests with unusual features are passed to the SDK, one by one.
 * A `FastMCP` of `fastmcp`, which hides its tools, is served by its own protocol over the engine's transports.
 */
export declare function accelerate(server: SdkServer): Accelerated;
