import type { RunOptions, RunReport, ServerOptions } from './definitions';
import { type EndpointOptions, type ServeOptions } from './endpoint';
import type { Handler } from './handler';
import { Endpoint } from './mount';
import { Offer } from './offer';
import { Serving } from './serving';
/** An MCP server: its tools, resources and prompts, and ways to serve them. */
export declare class Server<State = undefined> extends Offer<State> {
    #private;
    constructor(name: string, version: string, options?: ServerOptions<State>);
    /**
     * Serves on stdin and stdout by default, or at an address such as `http://127.0.0.1:8000/mcp` (see `serve`). Runs
     * until `close` is called, a signal arrives or, on stdio, the client disconnects. On stdio, everything else that
     * the process prints to stdout goes to stderr.
     *
     * This is the only function of this package that ends the process, so that a handler that never returns does not
     * keep it alive:
     * - 20 ms after the promise resolves, if calls are unanswered;
     * - with status 1, if a handler still blocks this thread when the grace period after a disconnect or a signal is
     *   over;
     * - at once, on a second signal.
     */
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    /**
     * Starts to serve at an address: `http://host:port/path`, which also accepts WebSocket; `unix:/path`; or
     * `tcp:host:port`. Resolves once the server listens. Sockets run on threads of the engine. The server runs until it
     * is closed, even if nothing refers to the returned object.
     */
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    /**
     * Creates an endpoint to mount in an existing HTTP server: one of `node:http`, or any framework that passes
     * web-standard `Request`s. The endpoint has its own sessions.
     */
    endpoint(options?: EndpointOptions): Endpoint;
    /** Creates a request handler for `node:http`, express and similar frameworks, on an endpoint of its own. */
    handler(options?: EndpointOptions): Handler;
    /** Serves a web-standard `Request`, on an endpoint with default options; `endpoint` takes options. */
    fetch(request: Request): Promise<Response>;
    /** Closes every connection gracefully: calls in flight may still be answered. */
    close(): void;
}
