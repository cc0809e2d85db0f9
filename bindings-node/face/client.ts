import { EventEmitter } from 'node:events';
import { Answering, rootsJson } from './answering';
import { Json } from './content';
import { guarded, McpError } from './errors';
import { readNotice, type ClientEvents } from './events';
import { Link } from './link';
import type { Listening } from './listening';
import { Lists, type ListOptions } from './lists';
import { native, type NativeLink, type NativeOffer } from './native';
import { introduction, type ClientOptions, type Exit, type SpawnOptions } from './options';
import { LEVELS } from './protocol';
import type {
    CallToolResult,
    Completions,
    GetPromptResult,
    Implementation,
    Interests,
    LogLevel,
    Prompt,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Revision,
    Root,
    Tool
} from './protocol';
import { arrayOf, cancelled, jsonOf, Requests, type RequestOptions } from './requests';
import type { Server } from './server';
import { Streams } from './streams';

/** Which argument is to be completed. */
export type CompletionTarget = { prompt: string } | { template: string };

interface Opened {
    revision: Revision;
    /** The method that asks for a sign of life in this revision. */
    ping: string;
    /** Whether it has `subscriptions/listen`. */
    listens: boolean;
    /** Whether it has `logging/setLevel`. */
    setsLevel: boolean;
    peer?: Implementation;
    capabilities?: Record<string, unknown>;
    instructions?: string;
}

/**
 * A server, seen from the client's side. What it tells without being asked are events: see `ClientEvents`.
 *
 * Where the server has questions to answer before it can (2026-07-28), they are answered by the handlers of the options
 * and the request is repeated, unseen.
 */
export class Client extends EventEmitter<ClientEvents> implements AsyncDisposable {
    readonly #link: Link;
    readonly #opening = withResolvers<Opened>();
    readonly #ended = withResolvers<Exit>();
    readonly #requests: Requests;
    readonly #lists = new Lists((capability, method, params, options) => this.#ask(capability, method, params, options));
    readonly #streams: Streams;
    #opened: Opened | undefined;
    #closed: McpError | undefined;
    /** Tools whose results are held against a schema. */
    #outputs: Set<string> | undefined;

    private constructor(options: ClientOptions, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        super();
        this.setMaxListeners(0);
        for (const [name, listener] of Object.entries(options.on ?? {})) this.on(name as keyof ClientEvents, listener);
        const answering = new Answering(options, this, () => this.#link);
        this.#link = new Link(
            {
                opened: text => this.#opening.resolve((this.#opened = JSON.parse(text))),
                asked: (number, topic, text) => void answering.asked(number, topic, text),
                withdrawn: number => answering.withdrawn(number),
                notification: text => this.#notified(JSON.parse(text)),
                closed: reason => this.#close(reason),
                traced: (isOut, text) => options.trace!(isOut ? 'out' : 'in', text),
                ended: text => this.#ended.resolve(text ? JSON.parse(text) : { code: null, signal: null }),
                ...(onLine && { line: onLine })
            },
            connect
        );
        this.#requests = new Requests(this.#link, options.timeout);
        this.#streams = new Streams(this.#link);
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
        return this.#opened!.peer;
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

    /**
     * The server's tools, all pages. From then on, results are held against the output schemas of this list. This and
     * the other lists are kept for as long as the server says, or until it tells that they are others.
     */
    async listTools(options?: ListOptions): Promise<Tool[]> {
        const tools = await this.#lists.all<Tool>('tools', options);
        const described = tools.filter(tool => tool.outputSchema !== undefined);
        const outputs = described.map(({ name, outputSchema }) => [name, outputSchema]);
        this.#outputs = outputs.length > 0 ? new Set(described.map(({ name }) => name)) : undefined;
        if (this.#outputs) this.#link.native.learnOutputs(JSON.stringify(outputs));
        return tools;
    }

    /** The server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void> {
        return this.#lists.pages('tools', options);
    }

    /** Calls a tool. A failure of the tool itself is a result with `isError`. */
    callTool(name: string, args: object | Json = {}, options?: RequestOptions): Promise<CallToolResult> {
        const params =
            args instanceof Json
                ? new Json(`{"name":${JSON.stringify(name)},"arguments":${args.text}}`)
                : { name, arguments: args };
        const result = this.#ask<CallToolResult>('tools', 'tools/call', params, options);
        return this.#outputs?.has(name) ? result.then(result => this.#held(name, result)) : result;
    }

    /** R-STR-02, R-STR-07 */
    #held(tool: string, result: CallToolResult): CallToolResult {
        if (result.isError) return result;
        const { structuredContent: content } = result;
        const wrong =
            content === undefined ? 'there is none' : this.#link.native.misfit(tool, JSON.stringify(content));
        if (wrong === null) return result;
        throw new McpError('ERR_MCP_BAD_ANSWER', `the structured content does not fit the output schema of ${tool}: ${wrong}`);
    }

    /** The server's resources, all pages. */
    listResources(options?: ListOptions): Promise<Resource[]> {
        return this.#lists.all('resources', options);
    }

    /** The server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void> {
        return this.#lists.pages('resources', options);
    }

    /** The server's resource templates, all pages. */
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
        return this.#lists.all('resourceTemplates', options);
    }

    /** The server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void> {
        return this.#lists.pages('resourceTemplates', options);
    }

    /** Reads a resource. */
    async readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]> {
        const result = await this.#ask<{ contents?: ResourceContents[] }>('resources', 'resources/read', { uri }, options);
        return arrayOf(result.contents, 'contents');
    }

    /** The server's prompts, all pages. */
    listPrompts(options?: ListOptions): Promise<Prompt[]> {
        return this.#lists.all('prompts', options);
    }

    /** The server's prompts, page by page. */
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void> {
        return this.#lists.pages('prompts', options);
    }

    /** Renders a prompt. */
    getPrompt(name: string, args: Record<string, string> = {}, options?: RequestOptions): Promise<GetPromptResult> {
        return this.#ask('prompts', 'prompts/get', { name, arguments: args }, options);
    }

    /**
     * The values that an argument of a prompt or resource template may take, given how it begins and the other
     * arguments, as far as they are decided.
     */
    complete(
        target: CompletionTarget,
        argument: string,
        value: string,
        args: Record<string, string> = {},
        options?: Pick<RequestOptions, 'signal'>
    ): Promise<Completions> {
        const json = JSON.stringify({ ...target, argument: [argument, value], context: Object.entries(args) });
        return this.#requests.wait(link => link.complete(json), options);
    }

    /** Has the server tell whenever a resource changes: the event `resourceUpdated`. */
    async subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.#requests.wait(link => link.subscribe(String(uri), true), options);
    }

    /** Has it tell no more. */
    async unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.#requests.wait(link => link.subscribe(String(uri), false), options);
    }

    /**
     * Has the server tell of changes, from the moment at which this resolves; see `Listening`. What it does not offer
     * is left out. Before 2026-07-28 servers tell of lists without being asked; there this subscribes to the resources,
     * and unsubscribes at the end. The events of this client come in any case.
     */
    async listen(interests: Interests, { signal }: Pick<RequestOptions, 'signal'> = {}): Promise<Listening> {
        if (signal?.aborted) throw cancelled(signal);
        if (this.#opened!.listens) return this.#streams.listen(interests, signal);
        const subscribe = (uri: string, wanted: boolean) => (wanted ? this.subscribe(uri) : this.unsubscribe(uri));
        return this.#streams.tune(interests, signal, () => this.ping(), subscribe);
    }

    /** Replaces the roots that servers see, and tells this one. The client must have been given roots at first. */
    setRoots(roots: readonly (Root | string)[]): void {
        guarded(() => this.#link.native.setRoots(rootsJson(roots)));
    }

    /**
     * Tells the server the least severe log messages that are wanted; they come as `log` events. From 2026-07-28 on
     * there are none without it, and each request of this client says it.
     */
    async setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void> {
        if (!LEVELS.includes(level)) throw new McpError('ERR_MCP_MISUSE', `a level is one of ${LEVELS.join(', ')}`);
        if (this.#opened!.setsLevel) await this.#ask('logging', 'logging/setLevel', { level }, options);
        else this.#requests.level = level;
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
        return this.#requests.send(method, params, options, false);
    }

    /**
     * Sends any request; gives its result as the JSON that it came in, for what JavaScript's numbers cannot hold, as
     * integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string> {
        return this.#requests.send(method, params, options, true);
    }

    /** Ends the connection; with a program that was started, ends it too and says how it went. */
    async close(): Promise<Exit> {
        this.#link.native.stop();
        return this.#ended.promise;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    #notified({ method, params }: { method: string; params?: Record<string, any> }): void {
        const notice = readNotice(method, params);
        if (notice.change) this.#lists.changed(notice.change.type);
        this.#streams.tell(notice);
        notice.emit(this);
    }

    #close(reason: McpError): void {
        if (this.#closed) return;
        this.#closed = reason;
        const failure = new McpError('ERR_MCP_CLOSED', 'the connection has ended', { cause: reason });
        const isMeant = reason.code === 'ERR_MCP_CLOSED_LOCALLY';
        this.#streams.end(isMeant ? undefined : failure);
        this.#opening.promise.catch(() => {});
        this.#opening.reject(new McpError('ERR_MCP_CLOSED', `the connection did not open: ${reason.message}`, { cause: reason }));
        this.emit('closed', reason);
    }

    #ask<Result>(capability: string, method: string, params: object, options?: RequestOptions): Promise<Result> {
        const { capabilities } = this.#opened!;
        if (capabilities !== undefined && !(capability in capabilities))
            return Promise.reject(new McpError('ERR_MCP_UNSUPPORTED', `the server does not offer ${capability}`));
        return this.request(method, params, options);
    }
}

function withResolvers<T>() {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
    return { promise, resolve, reject };
}
