import { Actions } from './actions';
import { credentialsOf, type ConnectOptions } from './address';
import { rootsJson } from './answering';
import { Calls, type StartOptions } from './calls';
import type { Json } from './content';
import { guarded, McpError } from './errors';
import type { Listening } from './listening';
import type { ListOptions } from './lists';
import { native, type NativeLink, type NativeOffer } from './native';
import { introduction, type ClientOptions, type SpawnOptions } from './options';
import { LEVELS } from './protocol';
import type {
    CallToolResult,
    Completions,
    GetPromptResult,
    Interests,
    LogLevel,
    Prompt,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Root,
    Tool
} from './protocol';
import { arrayOf, cancelled, type RequestOptions } from './requests';
import type { Server } from './server';
import { Skills } from './skills';
import type { TaskInfo, ToolTask } from './task';

/** Which argument is to be completed. */
export type CompletionTarget = { prompt: string } | { template: string };

/**
 * A server, seen from the client's side. What it tells without being asked are events: see `ClientEvents`.
 *
 * Where the server has questions to answer before it can (2026-07-28), they are answered by the handlers of the options
 * and the request is repeated, unseen.
 */
export class Client extends Actions {
    readonly #calls = new Calls(this);
    /** The server's skills. */
    readonly skills = new Skills(this);

    private constructor(options: ClientOptions, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        super(options, connect, onLine);
    }

    /** @internal */
    protected override get client(): this {
        return this;
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

    /**
     * Connects to a server at an address, as `https://example.com/mcp`: `http:`, `https:`, `ws:`, `wss:`, `tcp:host:port`,
     * `unix:/path`, `stdio:COMMAND ARGS`. Or to a server in this process, without a wire: for tests.
     */
    static connect(address: string | URL, options?: ConnectOptions): Promise<Client>;
    static connect(server: Server<any>, options?: ClientOptions): Promise<Client>;
    static connect(to: string | URL | Server<any>, options: ConnectOptions = {}): Promise<Client> {
        return typeof to === 'string' || to instanceof URL ? Client.#at(String(to), options) : Client.#near(to, options);
    }

    static async #at(address: string, options: ConnectOptions): Promise<Client> {
        const command = guarded(() => native.commandOf(address));
        if (command) return Client.spawn(command[0]!, command.slice(1), options);
        const credentials = credentialsOf(options);
        const connect = (wake: () => void) => guarded(() => native.openAddress(introduction(options), address, credentials, wake));
        return Client.#open(async () => new Client(options, connect));
    }

    static #near(server: Server<any>, options: ClientOptions): Promise<Client> {
        return Client.#open(async () => {
            const client = new Client(options);
            const link = client.link;
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
        await client.opening;
        return client;
    }

    /**
     * The server's tools, all pages. From then on, results are held against the output schemas of this list. This and
     * the other lists are kept for as long as the server says, or until it tells that they are others.
     */
    async listTools(options?: ListOptions): Promise<Tool[]> {
        const tools = await this.lists.all<Tool>('tools', options);
        this.#calls.learn(tools);
        return tools;
    }

    /** The server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void> {
        return this.lists.pages('tools', options);
    }

    /** Calls a tool. A failure of the tool itself is a result with `isError`. What becomes a task is waited for. */
    callTool(name: string, args: object | Json = {}, options?: RequestOptions): Promise<CallToolResult> {
        return this.#calls.call(name, args, options);
    }

    /**
     * Calls a tool, and gives the task that the call becomes: at once in 2025-11-25, where the client asks for it; later
     * where the server makes it one, if the client was opened with `tasks`. See `ToolTask`.
     */
    startTool(name: string, args: object | Json = {}, options?: StartOptions): Promise<ToolTask> {
        return this.#calls.start(name, args, options);
    }

    /** A task by its id, which may come from an earlier connection where tasks outlive it (2026-07-28). */
    task(id: string, options?: Pick<RequestOptions, 'signal'>): ToolTask {
        return this.#calls.task(id, options);
    }

    /** The tasks of this connection, all pages (2025-11-25). */
    listTasks(options?: RequestOptions): Promise<TaskInfo[]> {
        return this.#calls.tasks(options);
    }

    /** The server's resources, all pages. */
    listResources(options?: ListOptions): Promise<Resource[]> {
        return this.lists.all('resources', options);
    }

    /** The server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void> {
        return this.lists.pages('resources', options);
    }

    /** The server's resource templates, all pages. */
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
        return this.lists.all('resourceTemplates', options);
    }

    /** The server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void> {
        return this.lists.pages('resourceTemplates', options);
    }

    /** Reads a resource. */
    async readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]> {
        const result = await this.ask<{ contents?: ResourceContents[] }>('resources', 'resources/read', { uri }, options);
        return arrayOf(result.contents, 'contents');
    }

    /** The server's prompts, all pages. */
    listPrompts(options?: ListOptions): Promise<Prompt[]> {
        return this.lists.all('prompts', options);
    }

    /** The server's prompts, page by page. */
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void> {
        return this.lists.pages('prompts', options);
    }

    /** Renders a prompt. */
    getPrompt(name: string, args: Record<string, string> = {}, options?: RequestOptions): Promise<GetPromptResult> {
        return this.ask('prompts', 'prompts/get', { name, arguments: args }, options);
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
        return this.requests.wait(link => link.complete(json), options);
    }

    /** Has the server tell whenever a resource changes: the event `resourceUpdated`. */
    async subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.requests.wait(link => link.subscribe(String(uri), true), options);
    }

    /** Has it tell no more. */
    async unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.requests.wait(link => link.subscribe(String(uri), false), options);
    }

    /**
     * Has the server tell of changes, from the moment at which this resolves; see `Listening`. What it does not offer
     * is left out. Before 2026-07-28 servers tell of lists without being asked; there this subscribes to the resources,
     * and unsubscribes at the end. The events of this client come in any case.
     */
    async listen(interests: Interests, { signal }: Pick<RequestOptions, 'signal'> = {}): Promise<Listening> {
        if (signal?.aborted) throw cancelled(signal);
        if (this.opened.listens) return this.streams.listen(interests, signal);
        const subscribe = (uri: string, wanted: boolean) => (wanted ? this.subscribe(uri) : this.unsubscribe(uri));
        return this.streams.tune(interests, signal, () => this.ping(), subscribe);
    }

    /** Replaces the roots that servers see, and tells this one. The client must have been given roots at first. */
    setRoots(roots: readonly (Root | string)[]): void {
        guarded(() => this.link.native.setRoots(rootsJson(roots)));
    }

    /**
     * Tells the server the least severe log messages that are wanted; they come as `log` events. From 2026-07-28 on
     * there are none without it, and the requests of this client that take `meta` say it.
     */
    async setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void> {
        if (!LEVELS.includes(level)) throw new McpError('ERR_MCP_MISUSE', `a level is one of ${LEVELS.join(', ')}`);
        if (this.opened.setsLevel) await this.ask('logging', 'logging/setLevel', { level }, options);
        else this.requests.level = level;
    }
}
