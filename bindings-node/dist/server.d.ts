import type { RunOptions, RunReport, ServerOptions } from './definitions';
import { type EndpointOptions, type ServeOptions } from './endpoint';
import type { Handler } from './handler';
import { Endpoint } from './mount';
import { Offer } from './offer';
import { Serving } from './serving';
/** A server: what it offers, and the handlers of it. */
export declare class Server<State = undefined> extends Offer<State> {
    #private;
    constructor(name: string, version: string, options?: ServerOptions<State>);
    /**
     * Serves until `close` is called, a signal comes or, on stdin and stdout, the client goes away: there, by default,
     * or on an address, as `http://127.0.0.1:8000/mcp`; see `serve`. While it serves stdout, what else the process
     * prints goes to stderr.
     */
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    /**
     * Begins to serve on an address: `http://host:port/path`, where WebSocket is spoken, too; `unix:/path`;
     * `tcp:host:port`. Resolves once it listens. All of it happens on threads of the engine's.
     */
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    /**
     * An endpoint within somebody else's HTTP server, `node:http`'s or any that hands on requests of the web's
     * standards. It has its own sessions.
     */
    endpoint(options?: EndpointOptions): Endpoint;
    /** Serves requests of `node:http`, of express and the like: an endpoint of its own. */
    handler(options?: EndpointOptions): Handler;
    /** Serves a request of the web's standards, on an endpoint without options; `endpoint` takes some. */
    fetch(request: Request): Promise<Response>;
    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void;
}
