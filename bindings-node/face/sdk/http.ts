import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EndpointOptions } from '../endpoint';
import { McpError } from '../errors';
import type { Names } from '../mounted';
import type { Endpoint } from '../mount';
import { Bridge } from './bridge';
import { Delegated } from './delegated';
import { refuse, StatelessExchange, toNode, toWeb, type Answering } from './exchange';
import { UNSAID } from './said';
import { isLeftOut, refuseOptions, type Id, type Message, type SdkTransport, type SendOptions } from './shapes';

/** As the SDKs' classes take them. */
export interface StreamableHTTPServerTransportOptions {
    /** Names the session; without it there is none, and each POST is answered by itself. */
    sessionIdGenerator?: (() => string) | undefined;
    /** Called before the client is told the name of its session. */
    onsessioninitialized?: (sessionId: string) => void;
    /** Called when the client has ended its session. */
    onsessionclosed?: (sessionId: string) => void;
    enableDnsRebindingProtection?: boolean;
    allowedHosts?: string[];
    allowedOrigins?: string[];
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default. */
    keepAliveMs?: number;
    /** Most bytes of one message; 4 MiB by default. */
    maxRequestBodySize?: number;
    /** How soon a client is to come back whose stream was closed, in ms; 1000 by default. */
    retryInterval?: number;
    /** Requests are answered in JSON, never by a stream: what a handler reports before it is done is left out. */
    enableJsonResponse?: boolean;
    /** This is the SDK's own class's. */
    eventStore?: undefined;
}

/** What takes the place of options that the SDKs' classes have. */
const REFUSED = { eventStore: 'the engine itself keeps what a client missed, for as long as the process lives' };

const HEADER = 'mcp-session-id';
const MAX_BODY = 4 << 20;

/** What both classes have: one session of a client's, or requests without one. */
abstract class HttpServerTransport implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The name of the session, once the client has opened it. */
    sessionId: string | undefined;
    readonly #options: StreamableHTTPServerTransportOptions;
    #generation: 1 | 2 = 1;
    #bridge: Bridge | undefined;
    #server: Delegated | undefined;
    #endpoint: Endpoint | undefined;
    /** The engine's name of the session. */
    #name: string | undefined;
    /** The exchanges of clients without a session, by the ids of their requests. */
    readonly #exchanges = new Map<Id, StatelessExchange>();
    #isClosed = false;

    constructor(options: StreamableHTTPServerTransportOptions = {}) {
        refuseOptions(options, REFUSED);
        this.#options = options;
    }

    /** Called by whoever connects to it. */
    async start(): Promise<void> {
        if (this.#bridge) throw new McpError('ERR_MCP_MISUSE', 'it is started already: connect() does that');
        const bridge = (this.#bridge = new Bridge({ generation: this.#generation, opens: true }));
        bridge.onmessage = (message, extra) => this.onmessage?.(message, extra);
        bridge.onerror = error => this.onerror?.(error);
        bridge.onclose = () => this.#ended();
        if (this.#options.sessionIdGenerator === undefined) return;
        const { keepAliveMs, maxRequestBodySize = MAX_BODY, enableDnsRebindingProtection, allowedHosts = [], allowedOrigins = [] } = this.#options;
        const endpoint: EndpointOptions = {
            hosts: enableDnsRebindingProtection ? allowedHosts.map(host => host.replace(/:\d+$/, '')) : ['*'],
            origins: allowedOrigins,
            limits: { messageBytes: maxRequestBodySize },
            sse: false,
            maxSessions: 1,
            // That is the program's to decide.
            sessionTtlMs: FOREVER,
            ...(keepAliveMs && { commentMs: keepAliveMs })
        };
        this.#server = new Delegated(UNSAID, { handshake: { bridge, left: () => void this.#left() } });
        this.#endpoint = this.#server.endpoint(endpoint);
    }

    /** v2 calls it before it starts. */
    setSupportedProtocolVersions(_: string[]): void {
        this.#generation = 2;
    }

    async send(message: Message, options?: SendOptions): Promise<void> {
        if (this.#options.enableJsonResponse && isLeftOut(message, options)) return;
        const id = message.method === undefined ? message.id : options?.relatedRequestId;
        const exchange = this.#exchanges.get(id!);
        if (exchange === undefined) return this.#bridge?.send(message, options);
        if (message.method === undefined) this.#exchanges.delete(id!);
        exchange.send(message, options);
    }

    /** Has the client of a request come back for the rest of its answer. */
    closeSSEStream(requestId: Id): void {
        if (!this.#options.enableJsonResponse) this.#bridge?.release(requestId, this.#options.retryInterval ?? 1000);
    }

    /** Ends the session. */
    async close(): Promise<void> {
        if (this.#isClosed) return;
        this.#server?.close();
        this.#ended();
    }

    #ended(): void {
        if (this.#isClosed) return;
        this.#isClosed = true;
        this.#exchanges.clear();
        this.onclose?.();
    }

    /** The client has ended its session. */
    #left(): void {
        if (this.sessionId !== undefined) this.#options.onsessionclosed?.(this.sessionId);
        void this.close();
    }

    /** @internal The endpoint of the session; nothing where there is none. */
    protected get endpoint(): Endpoint | undefined {
        if (this.#bridge === undefined) throw new McpError('ERR_MCP_MISUSE', 'no server is connected to it');
        return this.#endpoint;
    }

    /** @internal The program has names of its own for sessions. */
    protected readonly names: Names = {
        in: headers => {
            for (let i = 0; i < headers.length; i += 2)
                if (headers[i]!.toLowerCase() === HEADER && headers[i + 1] === this.sessionId) headers[i + 1] = this.#name ?? '';
        },
        out: headers => {
            for (let i = 0; i < headers.length; i += 2) {
                if (headers[i] !== HEADER) continue;
                this.#name = headers[i + 1]!;
                if (this.sessionId === undefined) {
                    this.sessionId = this.#options.sessionIdGenerator!();
                    this.#options.onsessioninitialized?.(this.sessionId);
                }
                headers[i + 1] = this.sessionId;
            }
        }
    };

    /** @internal Serves one POST without a session. */
    protected alone(answering: Answering, method: string, body: unknown, extra: (generation: 1 | 2) => object): void {
        if (this.#isClosed) return refuse(answering, 404, -32001, 'Session not found');
        if (method !== 'POST') return refuse(answering, 405, -32000, 'Method not allowed.');
        const received = extra(this.#generation);
        const messages: Message[] = [];
        const exchange: StatelessExchange = new StatelessExchange(answering, body, message => messages.push(message));
        for (const { method, id } of messages) if (method !== undefined && id !== undefined) this.#exchanges.set(id, exchange);
        for (const message of messages) this.onmessage?.(message, received);
    }

    /** @internal Most bytes of a body. */
    protected get maxBody(): number {
        return this.#options.maxRequestBodySize ?? MAX_BODY;
    }

    /** @internal Nobody reads the answer any more. */
    protected gone(): void {
        if (this.#exchanges.size > 0) void this.close();
    }
}

const FOREVER = 2 ** 31 - 1;

type Requesting = IncomingMessage & { auth?: unknown; originalUrl?: string; body?: unknown };

/**
 * Streamable HTTP of revisions with a handshake, for a server of either SDK, within an HTTP server of yours: in place of
 * v1's class of that name and v2's `NodeStreamableHTTPServerTransport`. One is one session. What a client missed is kept
 * for it by the engine; an event store of yours is refused.
 */
export class StreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request; resolves when it has been taken. `parsedBody` is for a body that has been read already. */
    async handleRequest(request: IncomingMessage & { auth?: unknown }, response: ServerResponse, parsedBody?: unknown): Promise<void> {
        const { endpoint } = this;
        const incoming = request as Requesting;
        if (parsedBody !== undefined) incoming.body = parsedBody;
        if (endpoint) return endpoint.serve(incoming, response, this.names);
        const answering = toNode(response);
        const body = parsedBody ?? (await readBody(request, this.maxBody));
        if (body === TOO_LONG) return refuse(answering, 413, -32000, 'the body is too long');
        if (body === NO_JSON) return refuse(answering, 400, -32700, 'Parse error: Invalid JSON');
        response.on('close', () => this.gone());
        this.alone(answering, request.method ?? 'GET', body, generation => {
            const { auth, headers } = incoming;
            const url = new URL(incoming.originalUrl ?? request.url ?? '/', `http://${headers.host ?? 'localhost'}`);
            if (generation === 1) return { authInfo: auth, requestInfo: { headers, url } };
            const named = Object.entries(headers).map(([name, value]) => [name, String(value)] as [string, string]);
            return { request: new Request(url, { method: 'POST', headers: named }), ...(auth !== undefined && { authInfo: auth }) };
        });
    }
}

export { StreamableHTTPServerTransport as NodeStreamableHTTPServerTransport };

/** The same for requests of the web's standards: in place of the class of that name of either SDK. */
export class WebStandardStreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request. `parsedBody` is for a body that has been read already. */
    async handleRequest(request: Request, options: { authInfo?: unknown; parsedBody?: unknown } = {}): Promise<Response> {
        const { endpoint } = this;
        const { authInfo, parsedBody } = options;
        const whole = parsedBody === undefined ? request : withBody(request, parsedBody);
        if (endpoint) return endpoint.serveWeb(whole, authInfo, this.names);
        const { answering, response } = toWeb(() => this.gone());
        const text = await whole.text();
        const body = text.length > this.maxBody ? TOO_LONG : parse(text);
        if (request.method === 'POST' && body === TOO_LONG) refuse(answering, 413, -32000, 'the body is too long');
        else if (request.method === 'POST' && body === NO_JSON) refuse(answering, 400, -32700, 'Parse error: Invalid JSON');
        else
            this.alone(answering, request.method, body, generation => {
                const url = new URL(request.url);
                if (generation === 1) return { authInfo, requestInfo: { headers: Object.fromEntries(request.headers), url } };
                return { request, ...(authInfo !== undefined && { authInfo }) };
            });
        return response;
    }
}

const TOO_LONG = Symbol('too long');
const NO_JSON = Symbol('no JSON');

async function readBody(request: IncomingMessage, max: number): Promise<unknown> {
    if (request.method !== 'POST') return undefined;
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of request) {
        bytes += piece.length;
        if (bytes > max) return TOO_LONG;
        pieces.push(piece);
    }
    return parse(Buffer.concat(pieces).toString());
}

function parse(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        return NO_JSON;
    }
}

/** @internal A request as it was before somebody read its body. */
export function withBody(request: Request, body: unknown): Request {
    const headers = new Headers(request.headers);
    headers.delete('content-length');
    return new Request(request.url, { method: request.method, headers, body: JSON.stringify(body), signal: request.signal });
}
