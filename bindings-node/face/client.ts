import { onAbort } from './abort';
import { Json } from './content';
import { guarded, McpError, revive, type Failure } from './errors';
import { Link } from './link';
import { native, type NativeClientOptions, type NativeLink, type NativeOffer } from './native';
import type {
    CallToolResult,
    GetPromptResult,
    Implementation,
    LogLevel,
    LogMessage,
    Progress,
    Prompt,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Revision,
    Tool,
    Trace
} from './protocol';
import type { Server } from './server';

export interface ClientOptions {
    /** The client's name, as the server is told; `mcpbolt` by default. */
    name?: string;
    /** The client's version, as the server is told; `0` by default. */
    version?: string;
    /**
     * How the connection opens: `probe` asks for the stateless era first and falls back to the handshake, `handshake`
     * and `stateless` take one for granted.
     */
    opening?: 'probe' | 'handshake' | 'stateless';
    /** The one revision to speak; what both sides speak, by default. */
    revision?: Revision;
    /** How long each request waits for news, in ms, unless it says otherwise; 60 s by default. */
    timeout?: number;
    /** Shown each message. */
    trace?: Trace;
    /** Told of the server's log messages. */
    onLog?: (message: LogMessage) => void;
    /** Told of every other notification of the server. */
    onNotification?: (method: string, params: unknown) => void;
}

export interface SpawnOptions extends ClientOptions {
    /** The directory that it runs in; ours by default. */
    cwd?: string;
    /** Variables besides the few harmless ones that are inherited. */
    env?: Record<string, string>;
    /** What becomes of its stderr: as ours, thrown away, or handed over line by line. */
    stderr?: 'inherit' | 'ignore' | ((line: string) => void);
    /** How long it may take to end after its stdin is closed, and again after SIGTERM, in ms; 2000 by default. */
    closeMs?: number;
}

export interface RequestOptions {
    /** Gives the request up, and tells the server. */
    signal?: AbortSignal;
    /** How long to wait without news, in ms; progress starts it again. */
    timeout?: number;
    /** How long to wait in all, in ms. */
    maxTimeout?: number;
    /** Asks the server for progress. */
    onProgress?: (progress: Progress) => void;
}

/** How a server's process ended. */
export interface Exit {
    code: number | null;
    signal: number | null;
}

interface Waiting {
    resolve: (result: any) => void;
    reject: (error: unknown) => void;
    onProgress: ((progress: Progress) => void) | undefined;
    /** The result is wanted as the JSON that it came in. */
    isRaw: boolean;
}

interface Opened {
    revision: Revision;
    /** The method that asks for a sign of life in this revision. */
    ping: string;
    server?: Implementation;
    capabilities?: Record<string, unknown>;
    instructions?: string;
}

/** Most pages of one list that are followed. */
const MAX_PAGES = 10_000;

/** A server, seen from the client's side. */
export class Client implements AsyncDisposable {
    readonly #options: ClientOptions;
    readonly #link: Link;
    readonly #waiting: (Waiting | undefined)[] = [];
    readonly #opening = withResolvers<Opened>();
    readonly #ended = withResolvers<Exit>();
    #opened: Opened | undefined;
    #closed: McpError | undefined;

    private constructor(options: ClientOptions, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        this.#options = options;
        this.#link = new Link(
            {
                opened: text => this.#opening.resolve((this.#opened = JSON.parse(text))),
                answer: (number, text) => this.#answer(number, text),
                failure: (number, text) => this.#fail(number, revive(JSON.parse(text) as Failure)),
                progress: (number, text) => this.#waiting[number]?.onProgress?.(JSON.parse(text)),
                notification: text => this.#notified(JSON.parse(text)),
                closed: text => this.#close(revive(JSON.parse(text) as Failure)),
                traced: (isOut, text) => options.trace!(isOut ? 'out' : 'in', text),
                ended: text => this.#ended.resolve(text ? JSON.parse(text) : { code: null, signal: null }),
                ...(onLine && { line: onLine })
            },
            connect
        );
    }

    /** Starts a server program and connects to it. It ends when the client is closed. */
    static spawn(command: string, args: readonly string[] = [], options: SpawnOptions = {}): Promise<Client> {
        const { cwd, env = {}, stderr = 'inherit', closeMs, ...rest } = options;
        const child = {
            command,
            args: [...args],
            env: Object.entries(env).flat(),
            stderr: typeof stderr === 'function' ? 'lines' : stderr,
            ...(cwd !== undefined && { cwd }),
            ...(closeMs !== undefined && { closeMs })
        };
        const connect = (wake: () => void) => guarded(() => native.spawnChild(introduction(rest), child, wake));
        return Client.#open(async () => new Client(rest, connect, typeof stderr === 'function' ? stderr : undefined));
    }

    /** Connects to a server in this process, without a wire: for tests. */
    static connect(server: Server<any>, options: ClientOptions = {}): Promise<Client> {
        return Client.#open(async () => {
            const client = new Client(options);
            const link = client.#link;
            const join = (offer: NativeOffer, wake: () => void) =>
                guarded(() => native.pair(offer, wake, introduction(options), link.wake));
            await server.connect(link, join).catch(error => {
                link.abandon();
                throw error;
            });
            return client;
        });
    }

    static async #open(make: () => Promise<Client>): Promise<Client> {
        const client = await make();
        await client.#opening.promise;
        return client;
    }

    /** The protocol revision in force. */
    get revision(): Revision {
        return this.#opened!.revision;
    }

    /** The server's name, version and more, if it named them. */
    get server(): Implementation | undefined {
        return this.#opened!.server;
    }

    /** What the server offers, by name. */
    get capabilities(): Record<string, unknown> {
        return this.#opened!.capabilities ?? {};
    }

    /** What the server tells the model about itself. */
    get instructions(): string | undefined {
        return this.#opened!.instructions;
    }

    /** How many answers came that nobody waited for, and frames that were no messages. */
    get strayCount(): number {
        return this.#link.native.strays();
    }

    /** Why the connection has ended, if it has. */
    get closed(): McpError | undefined {
        return this.#closed;
    }

    /** The server's tools, all pages. */
    listTools(options?: RequestOptions): Promise<Tool[]> {
        return this.#list('tools', 'tools/list', 'tools', options);
    }

    /** Calls a tool. A failure of the tool itself is a result with `isError`. */
    callTool(name: string, args: object | Json = {}, options?: RequestOptions): Promise<CallToolResult> {
        const params =
            args instanceof Json
                ? new Json(`{"name":${JSON.stringify(name)},"arguments":${args.text}}`)
                : { name, arguments: args };
        return this.#ask('tools', 'tools/call', params, options);
    }

    /** The server's resources, all pages. */
    listResources(options?: RequestOptions): Promise<Resource[]> {
        return this.#list('resources', 'resources/list', 'resources', options);
    }

    /** The server's resource templates, all pages. */
    listResourceTemplates(options?: RequestOptions): Promise<ResourceTemplate[]> {
        return this.#list('resources', 'resources/templates/list', 'resourceTemplates', options);
    }

    /** Reads a resource. */
    async readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]> {
        const result = await this.#ask<{ contents?: ResourceContents[] }>('resources', 'resources/read', { uri }, options);
        return arrayOf(result.contents, 'contents');
    }

    /** The server's prompts, all pages. */
    listPrompts(options?: RequestOptions): Promise<Prompt[]> {
        return this.#list('prompts', 'prompts/list', 'prompts', options);
    }

    /** Renders a prompt. */
    getPrompt(name: string, args: Record<string, string> = {}, options?: RequestOptions): Promise<GetPromptResult> {
        return this.#ask('prompts', 'prompts/get', { name, arguments: args }, options);
    }

    /** Tells the server the least severe log messages that are wanted. */
    async setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void> {
        await this.#ask('logging', 'logging/setLevel', { level }, options);
    }

    /** Asks for a sign of life. */
    async ping(options?: RequestOptions): Promise<void> {
        await this.request(this.#opened!.ping, undefined, options);
    }

    /** Sends a notification. */
    notify(method: string, params?: object | Json): void {
        if (!this.#closed) this.#link.native.notify(method, jsonOf(params));
    }

    /** Sends any request; gives its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result> {
        return this.#send(method, params, options, false);
    }

    /**
     * Sends any request; gives its result as the JSON that it came in, for what JavaScript's numbers cannot hold, as
     * integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string> {
        return this.#send(method, params, options, true);
    }

    #send(method: string, params: object | undefined, options: RequestOptions = {}, isRaw: boolean): Promise<any> {
        const { signal, onProgress, maxTimeout } = options;
        const timeout = options.timeout ?? this.#options.timeout;
        return new Promise((resolve, reject) => {
            if (signal?.aborted) return reject(cancelled(signal));
            const json = jsonOf(params);
            const { native } = this.#link;
            const number = guarded(() => native.request(method, json, timeout, maxTimeout, onProgress !== undefined));
            if (signal === undefined) {
                this.#waiting[number] = { resolve, reject, onProgress, isRaw };
                return;
            }
            const forget = onAbort(signal, () => {
                this.#waiting[number] = undefined;
                native.cancel(number, reasonOf(signal));
                reject(cancelled(signal));
            });
            const after = <T>(settle: (value: T) => void) => (value: T) => {
                forget();
                settle(value);
            };
            this.#waiting[number] = { resolve: after(resolve), reject: after(reject), onProgress, isRaw };
        });
    }

    /** Ends the connection; with a program that was started, ends it too and says how it went. */
    async close(): Promise<Exit> {
        this.#link.native.stop();
        return this.#ended.promise;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    #take(number: number): Waiting | undefined {
        const waiting = this.#waiting[number];
        this.#waiting[number] = undefined;
        return waiting;
    }

    #answer(number: number, text: string): void {
        const waiting = this.#take(number);
        if (waiting === undefined) return;
        const result = JSON.parse(text);
        const { resultType } = result;
        if (resultType === undefined || resultType === 'complete') return waiting.resolve(waiting.isRaw ? text : result);
        waiting.reject(new McpError('ERR_MCP_UNSUPPORTED', `an answer of type ${resultType} is not supported`));
    }

    #fail(number: number, error: McpError): void {
        // Who waits for an answer may learn of the end first.
        if (error.code === 'ERR_MCP_CLOSED') this.#closed ??= error.cause as McpError;
        this.#take(number)?.reject(error);
    }

    #notified({ method, params }: { method: string; params?: unknown }): void {
        if (method === 'notifications/message' && this.#options.onLog) this.#options.onLog(params as LogMessage);
        else this.#options.onNotification?.(method, params);
    }

    #close(reason: McpError): void {
        this.#closed = reason;
        this.#opening.promise.catch(() => {});
        this.#opening.reject(new McpError('ERR_MCP_CLOSED', `the connection did not open: ${reason.message}`, { cause: reason }));
    }

    #ask<Result>(capability: string, method: string, params: object, options?: RequestOptions): Promise<Result> {
        const { capabilities } = this.#opened!;
        if (capabilities !== undefined && !(capability in capabilities))
            return Promise.reject(new McpError('ERR_MCP_UNSUPPORTED', `the server does not offer ${capability}`));
        return this.request(method, params, options);
    }

    async #list<Item>(capability: string, method: string, key: string, options?: RequestOptions): Promise<Item[]> {
        const items: Item[] = [];
        let cursor: string | undefined;
        for (let page = 0; page < MAX_PAGES; page++) {
            const params = cursor === undefined ? {} : { cursor };
            const result = await this.#ask<{ nextCursor?: string | null }>(capability, method, params, options);
            items.push(...arrayOf<Item>((result as Record<string, unknown>)[key], key));
            const next = result.nextCursor ?? undefined;
            if (next === undefined) return items;
            if (next === cursor) break;
            cursor = next;
        }
        throw new McpError('ERR_MCP_BAD_ANSWER', `the list of ${key} has no end`);
    }
}

function introduction({ name, version, opening, revision, trace }: ClientOptions): NativeClientOptions {
    const known = { name: name ?? 'mcpbolt', version: version ?? '0', trace: trace !== undefined };
    return { ...known, ...(opening && { opening }), ...(revision && { revision }) };
}

function jsonOf(params: object | undefined): string | undefined {
    return params instanceof Json ? params.text : params && JSON.stringify(params);
}

function arrayOf<Item>(value: unknown, key: string): Item[] {
    if (!Array.isArray(value)) throw new McpError('ERR_MCP_BAD_ANSWER', `the answer has no ${key}`);
    return value;
}

function cancelled(signal: AbortSignal): McpError {
    return new McpError('ERR_MCP_CANCELLED', 'the request was cancelled', { cause: signal.reason });
}

/** What the server is told: only what the caller said in words. */
function reasonOf(signal: AbortSignal): string | undefined {
    return typeof signal.reason === 'string' ? signal.reason : undefined;
}

function withResolvers<T>() {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
    return { promise, resolve, reject };
}
