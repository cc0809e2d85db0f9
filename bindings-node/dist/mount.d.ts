import { type Handler } from './handler';
/** A server mounted in an existing HTTP server. */
export declare class Endpoint {
    #private;
    /**
     * Serves a request of `node:http`, `node:http2`, express or a similar framework, even if its body has already been
     * read. If the endpoint cannot be created, calls `onError` with the reason and answers with status 500.
     */
    readonly handler: Handler;
    /** Serves a web-standard `Request`, as Hono and other frameworks pass it. */
    readonly fetch: (request: Request) => Promise<Response>;
    /** Ends its streams gracefully; later requests are refused. */
    close(): void;
}
