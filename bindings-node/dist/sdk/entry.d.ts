import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeOptions } from '../endpoint';
import type { Serving } from '../serving';
import { type SdkServer } from './shapes';
/**
 * The argument of a factory. A server is created once per era, so it has no data of a single request.
 */
export interface McpRequestContext {
    /** Whether the server serves revisions with a handshake (`legacy`) or 2026-07-28 (`modern`). */
    era: 'legacy' | 'modern';
}
/** Creates a server of either SDK, once for each era. */
export type McpServerFactory = (context: McpRequestContext) => SdkServer | Promise<SdkServer>;
/** Options of `createMcpHandler`. */
export interface CreateMcpHandlerOptions {
    /**
     * Serves clients of revisions with a handshake, in sessions of the engine (`stateless`, the default), or refuses
     * them (`reject`).
     */
    legacy?: 'stateless' | 'reject';
    /** Called with errors of the factory. */
    onerror?: (error: Error) => void;
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default. */
    keepAliveMs?: number;
    /** Maximum size of one message in bytes; 4 MiB by default. */
    maxRequestBodySize?: number;
    /** Host names, without port, that requests may be addressed to; any by default. */
    hosts?: readonly string[];
    /**
     * Origins whose pages may send requests, in full: see `origins` of `Server.endpoint`. By default the origins of
     * this machine, and the server's own origin.
     */
    origins?: readonly string[];
    /**
     * How requests of 2026-07-28 are answered: with JSON unless a notification precedes the answer (`auto`), or always
     * with JSON (`json`), which drops notifications before the answer. The SDK's mode `sse`, always a stream, is not
     * supported.
     */
    responseMode?: 'auto' | 'json';
}
/** Notifies clients that listen (`subscriptions/listen`) of changes. */
export interface ServerNotifier {
    toolsChanged(): void;
    promptsChanged(): void;
    resourcesChanged(): void;
    resourceUpdated(uri: string): void;
}
/** Serves requests. The `Origin` and the other headers of browsers are checked against `origins`. */
export interface McpHttpHandler {
    /** Serves a web-standard `Request`. `authInfo` is what a middleware has verified of its sender. */
    fetch: (request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }) => Promise<Response>;
    /**
     * Serves a request of `node:http`, express or a similar framework; `request.auth` is what a middleware has
     * verified.
     */
    node: (request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
    /**
     * Listens at an address itself, on the engine's threads instead of `node:http`; resolves once it listens: see
     * `Server.serve`. Takes the options of an address.
     */
    serve: (address: string | URL, options?: ServeOptions) => Promise<Serving>;
    /** Closes all open streams and connections. */
    close: () => Promise<void>;
    notify: ServerNotifier;
}
/**
 * Serves servers of the official SDKs over HTTP, in revisions with and without a handshake. Replaces `createMcpHandler`
 * of `@modelcontextprotocol/server`. The factory is called once per era instead of once per request, and its
 * registrations are served as by `accelerate`; servers of v1 support revisions with a handshake only. Unlike the SDK's
 * function, this one keeps clients of those revisions in sessions.
 */
export declare function createMcpHandler(factory: McpServerFactory, options?: CreateMcpHandlerOptions): McpHttpHandler;
