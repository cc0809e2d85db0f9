import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EndpointOptions } from '../endpoint';
import { guarded, McpError } from '../errors';
import { headersOf } from '../handler';
import { native } from '../native';
import { settingsJson } from '../numbers';
import type { Answer, Names, Taker } from '../mounted';
import type { Endpoint } from '../mount';
import { Bridge } from './bridge';
import { Delegated, type Served } from './delegated';
import { refuse, refusal, StatelessExchange, toNode, toWeb } from './exchange';
import { webHeadersOf } from '../web';
import { introductionOf, UNSAID } from './said';
import { servedSince } from './served';
import { isLeftOut, protocolOf, refuseOptions, type Id, type Message, type SdkServer, type SdkTransport, type SendOptions } from './shapes';

/** The options of the SDKs' classes. */
export interface StreamableHTTPServerTransportOptions {
    /** Creates the session's id. Without it there is no session, and each POST is answered separately. */
    sessionIdGenerator?: (() => string) | undefined;
    /** Called before the client is told the id of its session, which waits for it. */
    onsessioninitialized?: (sessionId: string) => void | Promise<void>;
    /** Called when the client has ended its session; the answer waits for it. */
    onsessionclosed?: (sessionId: string) => void | Promise<void>;
    /** Whether the `Host` header must be one of `allowedHosts`. */
    enableDnsRebindingProtection?: boolean;
    allowedHosts?: string[];
    /**
     * Origins whose pages may send requests, always checked against the `Origin` header: `https://example.com`, or
     * `http://localhost:*` for any port; `*` allows any. By default the origins of this machine, and the server's own
     * origin.
     */
    allowedOrigins?: string[];
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default, never below 1. */
    keepAliveMs?: number;
    /** Maximum size of a body in bytes, unless it is passed as parsed; 4 MiB by default. */
    maxRequestBodySize?: number;
    /** How soon a client should reconnect after its stream was closed, in ms; 1000 by default. */
    retryInterval?: number;
    /** Answers requests with JSON, never with a stream: notifications before the answer are dropped. */
    enableJsonResponse?: boolean;
    /** Supported by the SDK's own class only. */
    eventStore?: undefined;
}

/** The replacements of unsupported options of the SDKs' classes. */
const REFUSED = { eventStore: 'the engine itself keeps what a client missed, for as long as the process lives' };

const HEADER = 'mcp-session-id';
const MAX_BODY = 4 << 20;
/** Maximum size of a body that is passed as parsed, in bytes. */
const LONGEST = 512 << 20;

/** The common part of both classes: one session of one client, or requests without a session. */
abstract class HttpServerTransport implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The id of the session, once the client has opened it. */
    sessionId: string | undefined;
    readonly #options: StreamableHTTPServerTransportOptions;
    #generation: 1 | 2 = 1;
    #bridge: Bridge | undefined;
    #server: Delegated | undefined;
    #endpoint: Endpoint | undefined;
    /** The engine's id of the session. */
    #name: string | undefined;
    /** The exchanges of clients without a session, by request id. */
    readonly #exchanges = new Map<Id, StatelessExchange>();
    #isClosed = false;
    #left: Promise<void> | undefined;
    /** The server whose handlers the engine calls itself. */
    #own: SdkServer | undefined;
    #served: Served | undefined;

    constructor(options: StreamableHTTPServerTransportOptions = {}) {
        refuseOptions(options, REFUSED);
        this.#options = options;
        this.names.maxBody = this.maxBody;
    }

    /** @internal Has the engine answer for a server, except where only the SDK can. Called before `start`. */
    accelerate(server: SdkServer): void {
        this.#own = server;
    }

    /** @internal How the server is served, once it is started. */
    get served(): Served | undefined {
        return this.#served;
    }

    /** @internal Has the SDK asked for every list again. */
    forgetLists(): void {
        this.#server?.forgetLists();
    }

    /** Called by `connect()`. */
    async start(): Promise<void> {
        if (this.#bridge) throw new McpError('ERR_MCP_MISUSE', 'already started; connect() calls start()');
        const server = this.#own;
        const protocol = server && protocolOf(server)!;
        const bridge = (this.#bridge = new Bridge(protocol ? { protocol } : { generation: this.#generation, opens: true }));
        bridge.onmessage = (message, extra) => this.onmessage?.(message, extra);
        bridge.onerror = error => this.onerror?.(error);
        bridge.onclose = () => this.#ended();
        if (this.#options.sessionIdGenerator === undefined) return;
        const { keepAliveMs } = this.#options;
        const endpoint: EndpointOptions = {
            ...this.#sources(),
            // Bodies that are read here are bounded by `names`.
            maxMessageBytes: Math.max(LONGEST, this.maxBody),
            sse: false,
            maxSessions: 1,
            // The program decides when the session ends.
            sessionTtl: FOREVER,
            ...(keepAliveMs !== undefined && { commentInterval: keepAliveMs >= 1 ? Math.min(keepAliveMs, FOREVER) : FOREVER })
        };
        const served: Served = (this.#served = server ? servedSince(bridge, server) : { bridge });
        served.left = () => void this.#leave().catch(error => this.onerror?.(error));
        this.#server = new Delegated(protocol ? introductionOf(protocol) : UNSAID, { handshake: served });
        this.#endpoint = this.#server.endpoint(endpoint);
    }

    /** The hosts and origins that requests are checked against. */
    #sources(): { hosts: string[]; origins?: string[] } {
        const { enableDnsRebindingProtection, allowedHosts = [], allowedOrigins } = this.#options;
        const hosts = enableDnsRebindingProtection ? allowedHosts.map(host => host.replace(/:\d+$/, '')) : ['*'];
        return { hosts, ...(allowedOrigins && { origins: [...allowedOrigins] }) };
    }

    /** @internal Whether a request without a session is refused; if so, it has been answered. */
    protected isRefused(answering: Taker, method: string, headers: string[]): boolean {
        const refusal = guarded(() => native.screen(settingsJson(this.#sources()), method, headers));
        if (refusal) refuse(answering, refusal.status, -32600, refusal.why);
        return refusal !== null;
    }

    /** Called by v2 before `start`. */
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

    /** Closes the event stream of a request; the client reconnects for the rest of the answer. */
    closeSSEStream(requestId: Id): void {
        if (!this.#options.enableJsonResponse) this.#bridge?.release(requestId, this.#options.retryInterval ?? 1000);
    }

    /** Closes the session. */
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

    /** Handles the end of the session by the client, once. */
    #leave(): Promise<void> {
        return (this.#left ??= (async () => {
            try {
                if (this.sessionId !== undefined) await this.#options.onsessionclosed?.(this.sessionId);
            } finally {
                await this.close();
            }
        })());
    }

    /** Opens the session under an id of the program's. */
    async #opened(id: string): Promise<Answer | undefined> {
        try {
            await this.#options.onsessioninitialized?.(id);
            return undefined;
        } catch (error) {
            try {
                this.onerror?.(error as Error);
            } catch {
                // The client is answered all the same.
            }
            // In the SDK's words.
            return refusal(400, -32700, 'Parse error', String(error));
        }
    }

    async #closed(): Promise<Answer | undefined> {
        try {
            await this.#leave();
            return undefined;
        } catch {
            return { status: 500, headers: [], text: '' };
        }
    }

    /** @internal The endpoint of the session; `undefined` without a session. */
    protected get endpoint(): Endpoint | undefined {
        if (this.#bridge === undefined) throw new McpError('ERR_MCP_MISUSE', 'no server is connected to this transport');
        return this.#endpoint;
    }

    /** @internal Translates between the program's session id and the engine's. */
    protected readonly names: Names = {
        maxBody: MAX_BODY,
        tooLong: () => refusal(413, -32000, `Payload Too Large: Request body must not exceed ${this.maxBody} bytes`),
        in: headers => {
            for (let i = 0; i < headers.length; i += 2)
                if (headers[i]!.toLowerCase() === HEADER && headers[i + 1] === this.sessionId) headers[i + 1] = this.#name ?? '';
        },
        out: (headers, status, method) => {
            let told: Promise<Answer | undefined> | undefined;
            for (let i = 0; i < headers.length; i += 2) {
                if (headers[i] !== HEADER) continue;
                this.#name = headers[i + 1]!;
                if (this.sessionId === undefined) {
                    this.sessionId = this.#options.sessionIdGenerator!();
                    if (this.#own) this.#bridge!.sessionId = this.sessionId;
                    told = this.#options.onsessioninitialized && this.#opened(this.sessionId);
                }
                headers[i + 1] = this.sessionId;
            }
            return method === 'DELETE' && status < 300 ? this.#closed() : told;
        }
    };

    /** @internal The same for a body that is passed as parsed, which its parser has bounded. */
    protected readonly namesOfParsed: Names = { ...this.names, maxBody: Infinity };

    /** @internal Serves one POST without a session. */
    protected alone(answering: Taker, method: string, body: unknown, extra: (generation: 1 | 2) => object): void {
        if (this.#isClosed) return refuse(answering, 404, -32001, 'Session not found');
        if (method !== 'POST') return refuse(answering, 405, -32000, 'Method not allowed.');
        const received = extra(this.#generation);
        const messages: Message[] = [];
        const exchange: StatelessExchange = new StatelessExchange(answering, body, message => messages.push(message));
        for (const { method, id } of messages) if (method !== undefined && id !== undefined) this.#exchanges.set(id, exchange);
        for (const message of messages) this.onmessage?.(message, received);
    }

    /** @internal Maximum size of a body in bytes. */
    protected get maxBody(): number {
        return this.#options.maxRequestBodySize ?? MAX_BODY;
    }

    /** @internal Called when nothing reads the answer any more. */
    protected gone(): void {
        if (this.#exchanges.size > 0) void this.close();
    }
}

const FOREVER = 2 ** 31 - 1;

type Requesting = IncomingMessage & { auth?: unknown; originalUrl?: string; body?: unknown };

/**
 * Streamable HTTP of revisions with a handshake, for a server of either SDK in an HTTP server of yours. Replaces v1's
 * class of this name and v2's `NodeStreamableHTTPServerTransport`. Each instance is one session. The engine stores what
 * a client missed; an event store is refused.
 */
export class StreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request; resolves when it has been taken. Pass `parsedBody` if the body has already been read. */
    async handleRequest(request: IncomingMessage & { auth?: unknown }, response: ServerResponse, parsedBody?: unknown): Promise<void> {
        const { endpoint } = this;
        const incoming = request as Requesting;
        if (parsedBody !== undefined) incoming.body = parsedBody;
        if (endpoint) return endpoint.serve(incoming, response, this.names);
        const answering = toNode(response);
        if (this.isRefused(answering, request.method ?? 'GET', headersOf(incoming, false))) return;
        const body = parsedBody ?? (request.method === 'POST' ? await readBody(request, this.maxBody) : undefined);
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

/** Like `StreamableHTTPServerTransport`, for web-standard `Request`s. Replaces the class of this name of either SDK. */
export class WebStandardStreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request. Pass `parsedBody` if the body has already been read. */
    async handleRequest(request: Request, options: { authInfo?: unknown; parsedBody?: unknown } = {}): Promise<Response> {
        const { endpoint } = this;
        const { authInfo, parsedBody } = options;
        const whole = parsedBody === undefined ? request : withBody(request, parsedBody);
        if (endpoint) return endpoint.serveWeb(whole, authInfo, parsedBody === undefined ? this.names : this.namesOfParsed);
        const { answering, response } = toWeb(() => this.gone());
        if (this.isRefused(answering, request.method, webHeadersOf(request))) return response;
        // The unread rest of a body stays with its creator: cancelling it could close the connection.
        const body = request.method === 'POST' ? await readBody(whole.body?.values({ preventCancel: true }) ?? [], this.maxBody) : undefined;
        if (body === TOO_LONG) refuse(answering, 413, -32000, 'the body is too long');
        else if (body === NO_JSON) refuse(answering, 400, -32700, 'Parse error: Invalid JSON');
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

/** Reads a body as JSON; stops once it has more than `max` bytes. */
async function readBody(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, max: number): Promise<unknown> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of body) {
        bytes += piece.length;
        if (bytes > max) return TOO_LONG;
        pieces.push(piece);
    }
    try {
        return JSON.parse(new TextDecoder().decode(Buffer.concat(pieces)));
    } catch {
        return NO_JSON;
    }
}

/** @internal Recreates a request whose body has been read. */
export function withBody(request: Request, body: unknown): Request {
    const headers = new Headers(request.headers);
    headers.delete('content-length');
    return new Request(request.url, { method: request.method, headers, body: JSON.stringify(body), signal: request.signal });
}
