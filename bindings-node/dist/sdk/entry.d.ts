import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeOptions } from '../endpoint';
import type { Serving } from '../serving';
import { type SdkServer } from './shapes';
/** What a factory is told. What differs from request to request is not there: a server is made once. */
export interface McpRequestContext {
    /** Whether it serves revisions with a handshake, or 2026-07-28. */
    era: 'legacy' | 'modern';
}
/** Makes a server of either SDK: one for each era. */
export type McpServerFactory = (context: McpRequestContext) => SdkServer | Promise<SdkServer>;
/** How requests are served. */
export interface CreateMcpHandlerOptions {
    /** Whether clients of revisions with a handshake are served, in sessions of the engine's; they are by default. */
    legacy?: 'stateless' | 'reject';
    /** Told of what cannot be served. */
    onerror?: (error: Error) => void;
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default. */
    keepAliveMs?: number;
    /** Most bytes of one message; 4 MiB by default. */
    maxRequestBodySize?: number;
    /**
     * How requests of 2026-07-28 are answered: in JSON unless something is said before (`auto`), or in any case (`json`),
     * where what a handler reports before it is done is left out. That all are streams (`sse`) is the SDK's alone.
     */
    responseMode?: 'auto' | 'json';
}
/** Tells clients that listen (`subscriptions/listen`) of changes. */
export interface ServerNotifier {
    toolsChanged(): void;
    promptsChanged(): void;
    resourcesChanged(): void;
    resourceUpdated(uri: string): void;
}
/** What serves requests: where they come from, and whether that is welcome, is looked at before. */
export interface McpHttpHandler {
    /** Serves a request of the web's standards. `authInfo` is what somebody has verified of who sends it. */
    fetch: (request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }) => Promise<Response>;
    /** Serves a request of `node:http`, of express and the like; `request.auth` is what somebody has verified. */
    node: (request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
    /**
     * Listens itself, on the engine's threads instead of `node:http`; resolves once it does: see `Server.serve`. Its options
     * are those of an address.
     */
    serve: (address: string | URL, options?: ServeOptions) => Promise<Serving>;
    /** Ends what is open. */
    close: () => Promise<void>;
    notify: ServerNotifier;
}
/**
 * Serves servers of the official SDKs over HTTP, in revisions with and without a handshake: in place of
 * `createMcpHandler` of `@modelcontextprotocol/server`. The factory is called once for each era instead of once for each
 * request, and what it registers is served as `accelerate` does it; servers of v1 have the one era. Clients of the first
 * are in sessions, which the SDK's function has none of.
 */
export declare function createMcpHandler(factory: McpServerFactory, options?: CreateMcpHandlerOptions): McpHttpHandler;
