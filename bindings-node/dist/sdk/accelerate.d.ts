import type { RunOptions, RunReport } from '../definitions';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import type { Handler } from '../handler';
import type { Serving } from '../serving';
import { type SdkServer } from './shapes';
/** What of a server is served natively, and what by the SDK. */
export interface AccelerationReport {
    /** Tools, resources and prompts that are served without the SDK's protocol. */
    native: string[];
    /** What is left to the SDK, and why. */
    sdk: {
        what: string;
        why: string;
    }[];
}
/** A server of the official SDK on the engine. */
export declare class Accelerated {
    #private;
    /** Serves until it is closed, a signal comes or, on stdin and stdout, the client goes away: see `Server.run`. */
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    /** Begins to serve on an address; resolves once it listens: see `Server.serve`. */
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    /**
     * Serves requests of `node:http`, of express and the like, in an HTTP server of yours: see `Server.handler`. What a
     * middleware has put into `request.auth`, the SDK's handlers find as `authInfo`.
     */
    handler(options?: EndpointOptions): Handler;
    /** Serves a request of the web's standards: see `Server.fetch`. */
    fetch(request: Request): Promise<Response>;
    /** Ends every connection in good order. */
    close(): void;
    /** What is served how, as far as that is known: of a method's handler it is known after the first request. */
    report(): AccelerationReport;
}
/**
 * Puts a server of the official SDK on the engine: an `McpServer` of `@modelcontextprotocol/sdk` (v1) or
 * `@modelcontextprotocol/server` (v2). What it has registered is served natively, with its schemas and callbacks; what
 * is out of the ordinary, request by request, by the SDK itself. Call it instead of `server.connect(transport)`. A `FastMCP` of
 * `fastmcp`, whose tools nobody sees but itself, is served by its own protocol on the engine's carriers.
 */
export declare function accelerate(server: SdkServer): Accelerated;
