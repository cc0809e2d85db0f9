import { guarded, McpError } from '../errors';
import { Link } from '../link';
import { native } from '../native';
import { refuseOptions, type Message, type SdkTransport } from './shapes';

/** The options of the SDKs' classes. */
export interface StreamableHTTPClientTransportOptions {
    /** Headers of every request. */
    requestInit?: { headers?: HeadersInit };
    /** The id of a session that was opened earlier. */
    sessionId?: string;
    /** Supported by the SDK's own class only; likewise the next three. */
    authProvider?: undefined;
    fetch?: undefined;
    reconnectionOptions?: undefined;
    reconnectionScheduler?: undefined;
}

const CONNECTS = 'the engine makes the connections';
const RESUMES = 'the engine resumes streams, as soon as the server says';

/** The replacements of unsupported options of the SDKs' classes. */
const REFUSED = {
    authProvider: 'a token goes into requestInit.headers, or per message into the headers of send()',
    fetch: CONNECTS,
    reconnectionOptions: RESUMES,
    reconnectionScheduler: RESUMES
};

type HeadersInit = ConstructorParameters<typeof Headers>[0];

/** Options of one message. */
interface SendOptions {
    resumptionToken?: string | undefined;
    onresumptiontoken?: ((token: string) => void) | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
    requestSignal?: AbortSignal | undefined;
    onRequestStreamEnd?: (() => void) | undefined;
}

/** A message could not be delivered. */
export class StreamableHTTPError extends Error {
    /** The HTTP status of the answer, if there was one. */
    readonly code: number | undefined;

    /** @internal */
    constructor(code: number | undefined, message: string) {
        super(`Streamable HTTP error: ${message}`);
        this.name = 'StreamableHTTPError';
        this.code = code;
    }
}

/** A message whose exchange has not ended. */
interface Sent {
    message: Message | undefined;
    options: SendOptions;
    resolve: () => void;
    reject: (error: Error) => void;
}

/**
 * A Streamable HTTP transport for a client of either SDK. Replaces the SDK's own class of this name. The engine resumes
 * streams. For OAuth, use the SDK's own class.
 */
export class StreamableHTTPClientTransport implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** Each request has a stream of its own, and closing the stream cancels the request; read by v2. */
    readonly hasPerRequestStream = true;
    readonly #url: string;
    readonly #options: StreamableHTTPClientTransportOptions;
    readonly #sent = new Map<number, Sent>();
    /** Messages that arrived and have not been delivered. */
    readonly #arrived: Message[] = [];
    #isDelivering = false;
    #sessionId: string | undefined;
    #version: string | undefined;
    #link: Link | undefined;
    #ended: Promise<void> | undefined;

    constructor(url: URL | string, options: StreamableHTTPClientTransportOptions = {}) {
        refuseOptions(options, REFUSED);
        const { headers: _, ...rest } = options.requestInit ?? {};
        for (const name of Object.keys(rest)) refuseOptions(rest, { [name]: `${CONNECTS}, and requestInit has headers alone` });
        this.#url = String(url);
        this.#options = options;
        this.#sessionId = options.sessionId;
    }

    /** The id of the session, once the server has assigned one. */
    get sessionId(): string | undefined {
        return this.#sessionId;
    }

    get protocolVersion(): string | undefined {
        return this.#version;
    }

    /** Sets the protocol revision of messages sent from now on. */
    setProtocolVersion(version: string): void {
        this.#version = version;
    }

    /** Starts to carry messages; called by `connect()`. */
    async start(): Promise<void> {
        if (this.#link) throw new McpError('ERR_MCP_MISUSE', 'already started; connect() calls start()');
        let end!: () => void;
        this.#ended = new Promise(resolve => (end = resolve));
        const receiver = {
            frame: (text: string, of: number) => this.#receive(JSON.parse(text), this.#sent.get(of)),
            bad: (why: string) => this.onerror?.(new SyntaxError(why)),
            position: (position: string, of: number) => this.#sent.get(of)?.options.onresumptiontoken?.(position),
            session: (name: string) => void (this.#sessionId = name || undefined),
            done: (why: string, of: number) => this.#done(of, why),
            ended: () => {
                for (const { reject } of this.#sent.values()) reject(new McpError('ERR_MCP_CLOSED', 'the transport was closed'));
                this.#sent.clear();
                end();
                this.onclose?.();
            }
        };
        this.#link = new Link(receiver, wake => guarded(() => native.wireHttp(this.#url, this.#sessionId, wake)));
    }

    #receive(message: Message | Message[], sent: Sent | undefined): void {
        for (const each of Array.isArray(message) ? message : [message]) {
            // The server answers a message that it could not read without its id.
            if (each.error && (each.id === undefined || each.id === null) && sent?.message?.id !== undefined) each.id = sent.message.id;
            this.#arrived.push(each);
        }
        if (!this.#isDelivering) void this.#deliver();
    }

    /**
     * The SDKs handle progress later than a response that arrives in the same turn, so each message gets its own turn.
     */
    async #deliver(): Promise<void> {
        this.#isDelivering = true;
        for (let message; (message = this.#arrived.shift()); await undefined) this.onmessage?.(message);
        this.#isDelivering = false;
    }

    #done(of: number, why: string): void {
        const sent = this.#sent.get(of);
        if (sent === undefined) return;
        this.#sent.delete(of);
        if (sent.message?.method !== undefined && sent.message.id !== undefined) sent.options.onRequestStreamEnd?.();
        if (why === '') return sent.resolve();
        const { status, message } = JSON.parse(why);
        const error = new StreamableHTTPError(status ?? undefined, message);
        this.onerror?.(error);
        sent.reject(error);
    }

    /** Sends a message; resolves when its exchange has ended. */
    send(message: Message, options: SendOptions = {}): Promise<void> {
        const { requestSignal, resumptionToken, headers } = options;
        const all = new Headers(this.#options.requestInit?.headers);
        if (this.#version !== undefined && message.method !== 'initialize') all.set('mcp-protocol-version', this.#version);
        for (const [name, value] of Object.entries(headers ?? {})) all.set(name, value);
        const giveUp = () => this.#giveUp(message);
        requestSignal?.addEventListener('abort', giveUp, { once: true });
        const sent = this.#await(message, options, link => link.native.carry(JSON.stringify(message), [...all].flat(), resumptionToken));
        return sent.finally(() => requestSignal?.removeEventListener('abort', giveUp));
    }

    async #await(message: Message | undefined, options: SendOptions, begin: (link: Link) => number): Promise<void> {
        const link = this.#link;
        if (link === undefined) throw new McpError('ERR_MCP_CLOSED', 'the transport is not connected');
        const number = guarded(() => begin(link));
        return new Promise((resolve, reject) => this.#sent.set(number, { message, options, resolve, reject }));
    }

    /** Cancels a request; the engine tells the server by closing the request's stream. */
    #giveUp({ id }: Message): void {
        const given = { jsonrpc: '2.0' as const, method: 'notifications/cancelled', params: { requestId: id } };
        void this.send(given).catch(() => {});
    }

    /** Resumes a stream after the last event that was read. */
    async resumeStream(lastEventId: string, options: { onresumptiontoken?: (token: string) => void } = {}): Promise<void> {
        await this.send({ jsonrpc: '2.0', method: 'ping' }, { ...options, resumptionToken: lastEventId });
    }

    /** Ends the session on the server. */
    async terminateSession(): Promise<void> {
        if (this.#sessionId === undefined) return;
        await this.#await(undefined, {}, link => link.native.endSession());
        this.#sessionId = undefined;
    }

    /** Closes the transport; pending requests are cancelled. */
    async close(): Promise<void> {
        if (this.#link === undefined) return this.onclose?.();
        this.#link.native.stop();
        await this.#ended;
    }
}
