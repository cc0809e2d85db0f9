import { guarded, McpError } from '../errors';
import { Link } from '../link';
import { native } from '../native';
import { refuseOptions, type Message, type SdkTransport } from './shapes';

/** As the SDKs' classes take them. */
export interface StreamableHTTPClientTransportOptions {
    /** Headers of every request. */
    requestInit?: { headers?: HeadersInit };
    /** The name of a session that has begun elsewhere. */
    sessionId?: string;
    /** These are the SDK's own class's. */
    authProvider?: undefined;
    fetch?: undefined;
    reconnectionOptions?: undefined;
    reconnectionScheduler?: undefined;
}

const CONNECTS = 'the engine makes the connections';
const RESUMES = 'the engine resumes streams, as soon as the server says';

/** What takes the place of options that the SDKs' classes have. */
const REFUSED = {
    authProvider: 'a token goes into requestInit.headers, or per message into the headers of send()',
    fetch: CONNECTS,
    reconnectionOptions: RESUMES,
    reconnectionScheduler: RESUMES
};

type HeadersInit = ConstructorParameters<typeof Headers>[0];

/** What goes along with a message. */
interface SendOptions {
    resumptionToken?: string | undefined;
    onresumptiontoken?: ((token: string) => void) | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
    requestSignal?: AbortSignal | undefined;
    onRequestStreamEnd?: (() => void) | undefined;
}

/** A message that was not carried. */
export class StreamableHTTPError extends Error {
    /** The status of the answer, if there was one. */
    readonly code: number | undefined;

    /** @internal */
    constructor(code: number | undefined, message: string) {
        super(`Streamable HTTP error: ${message}`);
        this.name = 'StreamableHTTPError';
        this.code = code;
    }
}

/** What waits for the end of a message. */
interface Sent {
    message: Message | undefined;
    options: SendOptions;
    resolve: () => void;
    reject: (error: Error) => void;
}

/**
 * A server over Streamable HTTP, for a client of either SDK: in place of the SDK's own class of that name. Streams are
 * resumed by the engine. Who has to sign in by OAuth uses the SDK's own class.
 */
export class StreamableHTTPClientTransport implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** A request has a stream of its own, whose end gives it up: v2 asks for that. */
    readonly hasPerRequestStream = true;
    readonly #url: string;
    readonly #options: StreamableHTTPClientTransportOptions;
    readonly #sent = new Map<number, Sent>();
    /** What came and was not handed over. */
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

    /** The name of the session, once the server has given one. */
    get sessionId(): string | undefined {
        return this.#sessionId;
    }

    get protocolVersion(): string | undefined {
        return this.#version;
    }

    /** The revision of what is sent from now on. */
    setProtocolVersion(version: string): void {
        this.#version = version;
    }

    /** Begins to carry messages; called by whoever connects to it. */
    async start(): Promise<void> {
        if (this.#link) throw new McpError('ERR_MCP_MISUSE', 'it is started already: connect() does that');
        let end!: () => void;
        this.#ended = new Promise(resolve => (end = resolve));
        const receiver = {
            frame: (text: string, of: number) => this.#receive(JSON.parse(text), this.#sent.get(of)),
            bad: (why: string) => this.onerror?.(new SyntaxError(why)),
            position: (of: number, position: string) => this.#sent.get(of)?.options.onresumptiontoken?.(position),
            session: (name: string) => void (this.#sessionId = name || undefined),
            done: (of: number, why: string) => this.#done(of, why),
            ended: () => {
                for (const { reject } of this.#sent.values()) reject(new McpError('ERR_MCP_CLOSED', 'it was closed'));
                this.#sent.clear();
                end();
                this.onclose?.();
            }
        };
        this.#link = new Link(receiver, wake => guarded(() => native.wireHttp(this.#url, this.#sessionId, wake)));
    }

    #receive(message: Message | Message[], sent: Sent | undefined): void {
        for (const each of Array.isArray(message) ? message : [message]) {
            // What could not be read is answered without its id.
            if (each.error && (each.id === undefined || each.id === null) && sent?.message?.id !== undefined) each.id = sent.message.id;
            this.#arrived.push(each);
        }
        if (!this.#isDelivering) void this.#deliver();
    }

    /** The SDKs tell of progress later than of an answer that comes in the same turn: so each has its own. */
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

    /** Sends a message; resolves when nothing more comes of it. */
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
        if (link === undefined) throw new McpError('ERR_MCP_CLOSED', 'it is not connected');
        const number = guarded(() => begin(link));
        return new Promise((resolve, reject) => this.#sent.set(number, { message, options, resolve, reject }));
    }

    /** To the server it is given up by the end of its stream. */
    #giveUp({ id }: Message): void {
        const given = { jsonrpc: '2.0' as const, method: 'notifications/cancelled', params: { requestId: id } };
        void this.send(given).catch(() => {});
    }

    /** Goes on with a stream behind what was read of it. */
    async resumeStream(lastEventId: string, options: { onresumptiontoken?: (token: string) => void } = {}): Promise<void> {
        await this.send({ jsonrpc: '2.0', method: 'ping' }, { ...options, resumptionToken: lastEventId });
    }

    /** Ends the session on the server. */
    async terminateSession(): Promise<void> {
        if (this.#sessionId === undefined) return;
        await this.#await(undefined, {}, link => link.native.endSession());
        this.#sessionId = undefined;
    }

    /** Ends it; what is under way is given up. */
    async close(): Promise<void> {
        if (this.#link === undefined) return this.onclose?.();
        this.#link.native.stop();
        await this.#ended;
    }
}
