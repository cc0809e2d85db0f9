import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import { McpError } from '../errors';
import type { Endpoint } from '../mount';
import type { Serving } from '../serving';
import { servedOf } from './accelerate';
import { Delegated, type Sides } from './delegated';
import { refuse, toNode } from './exchange';
import { withBody } from './http';
import { generationOf } from './private';
import { introductionOf } from './said';
import { protocolOf, type SdkServer } from './shapes';

/** The supported response modes: answering every request with a stream is not among them. */
const MODES = ['auto', 'json'];

/** @internal The revision of v2 without a handshake. */
export const MODERN = '2026-07-28';

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
    fetch: (request: Request, options?: { authInfo?: unknown; parsedBody?: unknown }) => Promise<Response>;
    /**
     * Serves a request of `node:http`, express or a similar framework; `request.auth` is what a middleware has
     * verified.
     */
    node: (request: IncomingMessage & { auth?: unknown }, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
    /**
     * Listens at an address itself, on the engine's threads instead of `node:http`; resolves once it listens: see
     * `Server.serve`. Takes the options of an address.
     */
    serve: (address: string | URL, options?: ServeOptions) => Promise<Serving>;
    /** Closes all open streams and connections. */
    close: () => Promise<void>;
    notify: ServerNotifier;
}

interface Made {
    server: Delegated;
    endpoint: Endpoint;
}

/** The servers of both eras, created by one factory, on one endpoint. */
class Entry {
    #made: Promise<Made> | undefined;
    isClosed = false;

    constructor(private readonly factory: McpServerFactory, private readonly options: CreateMcpHandlerOptions) {}

    /** If the creation fails, the next request tries again. */
    get(): Promise<Made> {
        if (this.isClosed) return Promise.reject(new McpError('ERR_MCP_CLOSED', 'this handler has been closed'));
        return (this.#made ??= this.#make().catch(error => {
            this.#made = undefined;
            this.options.onerror?.(error);
            throw error;
        }));
    }

    get made(): Promise<Made> | undefined {
        return this.#made;
    }

    async #make(): Promise<Made> {
        const { legacy, keepAliveMs, maxRequestBodySize = 4 << 20, hosts = ['*'], origins } = this.options;
        const first = await this.factory(contextOf('modern'));
        const isModern = generationOf(protocolOf(first)) === 2;
        const sides: Sides = isModern ? { alone: servedOf(first, MODERN) } : { handshake: servedOf(first) };
        if (isModern && legacy !== 'reject') sides.handshake = servedOf(await this.factory(contextOf('legacy')));
        for (const side of Object.values(sides)) side.bridge.isShared = true;
        if (sides.alone) sides.alone.bridge.answersAlone = this.options.responseMode === 'json';
        const server = new Delegated(introductionOf(protocolOf(first)), sides);
        const options: EndpointOptions = {
            hosts,
            ...(origins && { origins }),
            sse: false,
            maxMessageBytes: maxRequestBodySize,
            ...(keepAliveMs && { commentInterval: keepAliveMs })
        };
        return { server, endpoint: server.endpoint(options) };
    }
}

function contextOf(era: 'legacy' | 'modern'): McpRequestContext {
    const refused = (name: string) => ({
        get: () => {
            throw new McpError('ERR_MCP_MISUSE', `a server is made once, not for a request: handlers find ${name} in their context`);
        }
    });
    return Object.defineProperties({ era }, { authInfo: refused('authInfo'), requestInfo: refused('the request') }) as McpRequestContext;
}

/**
 * Serves servers of the official SDKs over HTTP, in revisions with and without a handshake. Replaces `createMcpHandler`
 * of `@modelcontextprotocol/server`. The factory is called once per era instead of once per request, and its
 * registrations are served as by `accelerate`; servers of v1 support revisions with a handshake only. Unlike the SDK's
 * function, this one keeps clients of those revisions in sessions.
 */
export function createMcpHandler(factory: McpServerFactory, options: CreateMcpHandlerOptions = {}): McpHttpHandler {
    const { responseMode } = options;
    if (responseMode !== undefined && !MODES.includes(responseMode))
        throw new McpError('ERR_MCP_MISUSE', `responseMode is one of ${MODES.join(' and ')} here, not ${responseMode}`);
    const entry = new Entry(factory, options);
    const tell = (notification: string) => void entry.made?.then(({ server }) => server.change(notification)).catch(() => {});
    return {
        fetch: async (request, { authInfo, parsedBody } = {}) => {
            const { endpoint } = await entry.get();
            return endpoint.serveWeb(parsedBody === undefined ? request : withBody(request, parsedBody), authInfo);
        },
        node: async (request, response, parsedBody) => {
            const made = await entry.get().catch(() => undefined);
            if (made === undefined) return refuse(toNode(response), 500, -32603, 'Internal server error');
            if (parsedBody !== undefined) Object.assign(request, { body: parsedBody });
            return made.endpoint.serve(request, response);
        },
        serve: async (address, options) => (await entry.get()).server.serve(address, options),
        close: async () => {
            entry.isClosed = true;
            await entry.made?.then(({ server }) => server.close()).catch(() => {});
        },
        notify: {
            toolsChanged: () => tell('notifications/tools/list_changed'),
            promptsChanged: () => tell('notifications/prompts/list_changed'),
            resourcesChanged: () => tell('notifications/resources/list_changed'),
            resourceUpdated: uri => void entry.made?.then(({ server }) => server.entries.resourceUpdated(uri)).catch(() => {})
        }
    };
}
