import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EndpointOptions, ServeOptions } from '../endpoint';
import { McpError } from '../errors';
import type { Endpoint } from '../mount';
import type { Serving } from '../serving';
import { servedOf } from './accelerate';
import { Delegated, type Sides } from './delegated';
import { refuse, toNode } from './exchange';
import { withBody } from './http';
import { introductionOf } from './said';
import { generationOf, protocolOf, type SdkServer } from './shapes';

/** As an answer may be: a stream in any case is not among them. */
const MODES = ['auto', 'json'];

/** The revision of v2 without a handshake. */
const MODERN = '2026-07-28';

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
    fetch: (request: Request, options?: { authInfo?: unknown; parsedBody?: unknown }) => Promise<Response>;
    /** Serves a request of `node:http`, of express and the like; `request.auth` is what somebody has verified. */
    node: (request: IncomingMessage & { auth?: unknown }, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
    /**
     * Listens itself, on the engine's threads instead of `node:http`; resolves once it does: see `Server.serve`. Its options
     * are those of an address.
     */
    serve: (address: string | URL, options?: ServeOptions) => Promise<Serving>;
    /** Ends what is open. */
    close: () => Promise<void>;
    notify: ServerNotifier;
}

interface Made {
    server: Delegated;
    endpoint: Endpoint;
}

/** A server for each era, made by one factory, on one endpoint. */
class Entry {
    readonly #factory: McpServerFactory;
    readonly #options: CreateMcpHandlerOptions;
    #made: Promise<Made> | undefined;
    isClosed = false;

    constructor(factory: McpServerFactory, options: CreateMcpHandlerOptions) {
        this.#factory = factory;
        this.#options = options;
    }

    /** What could not be made is made anew for the next request. */
    get(): Promise<Made> {
        if (this.isClosed) return Promise.reject(new McpError('ERR_MCP_CLOSED', 'this handler has been closed'));
        return (this.#made ??= this.#make().catch(error => {
            this.#made = undefined;
            this.#options.onerror?.(error);
            throw error;
        }));
    }

    get made(): Promise<Made> | undefined {
        return this.#made;
    }

    async #make(): Promise<Made> {
        const { legacy, keepAliveMs, maxRequestBodySize = 4 << 20 } = this.#options;
        const first = await this.#factory(contextOf('modern'));
        const isModern = generationOf(protocolOf(first)) === 2;
        const sides: Sides = isModern ? { alone: servedOf(first, MODERN) } : { handshake: servedOf(first) };
        if (isModern && legacy !== 'reject') sides.handshake = servedOf(await this.#factory(contextOf('legacy')));
        for (const side of Object.values(sides)) side.bridge.isShared = true;
        if (sides.alone) sides.alone.bridge.answersAlone = this.#options.responseMode === 'json';
        const server = new Delegated(introductionOf(protocolOf(first)), sides);
        const options: EndpointOptions = {
            hosts: ['*'],
            sse: false,
            limits: { messageBytes: maxRequestBodySize },
            ...(keepAliveMs && { commentMs: keepAliveMs })
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
 * Serves servers of the official SDKs over HTTP, in revisions with and without a handshake: in place of
 * `createMcpHandler` of `@modelcontextprotocol/server`. The factory is called once for each era instead of once for each
 * request, and what it registers is served as `accelerate` does it; servers of v1 have the one era. Clients of the first
 * are in sessions, which the SDK's function has none of.
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
            resourceUpdated: uri => void entry.made?.then(({ server }) => server.offer.resourceUpdated(uri)).catch(() => {})
        }
    };
}
