import { type Handler } from './handler';
/** A server within somebody else's HTTP server. */
export declare class Endpoint {
    #private;
    /**
     * Serves a request of `node:http` and `node:http2`, or of express and the like, whose body may have been read already. Where the
     * endpoint cannot be made, `onError` is told why, and the client that the server failed.
     */
    readonly handler: Handler;
    /** Serves a request of the web's standards, as Hono and others hand them on. */
    readonly fetch: (request: Request) => Promise<Response>;
    /** Streams end in good order; requests that come later are refused. */
    close(): void;
}
