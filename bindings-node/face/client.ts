import { Actions } from './actions';
import { connectSettings, type ConnectOptionsOf } from './address';
import { rootsOf, type AnswersOf, type AskedOf } from './answering';
import { Calls, type StartOptions } from './calls';
import { endAll, Front, giveUp, type Ends } from './chain';
import type { Json } from './content';
import { guarded, McpError } from './errors';
import type { Failures } from './failures';
import type { Listening } from './listening';
import type { ListOptions } from './lists';
import { OAuth } from './login';
import { native, type NativeLink, type NativeEntries } from './native';
import { childSettings, clientSettings, watchOf, type ClientOptionsOf, type SpawnOptionsOf } from './options';
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

/** The context of a request that the server makes of the client. */
export interface Asked extends AskedOf<Client> {}

/** Handlers for requests of the server. */
export interface Answers extends AnswersOf<Client> {}

export interface ClientOptions extends ClientOptionsOf<Client> {}

export interface SpawnOptions extends SpawnOptionsOf<Client> {}

/** Options of a connection to an address. */
export interface ConnectOptions extends ConnectOptionsOf<Client> {}

/** Ends the servers at the ends of a front whose client was collected: nothing refers to the client, so nothing awaits its end. */
const dropped = new FinalizationRegistry(({ ends, failures }: { ends: Ends; failures: Failures }) => {
    endAll(ends).catch(error => failures.report(error, 'lifespan.stop'));
});

/** The prompt or resource template that has the argument to complete. */
export type CompletionTarget = { prompt: string } | { template: string };

/**
 * A connection to an MCP server. The server's notifications are events: see `ClientEvents`.
 *
 * In 2026-07-28 a server may ask the client questions before it answers a request. The handlers in the options answer
 * them, and the request is then repeated automatically.
 *
 * A client that nothing refers to any more is closed when it is garbage-collected, unless a request is pending, a
 * `listen` stream is open or an event has a listener. Collection has no set time, so close clients that you no longer
 * need.
 */
export class Client extends Actions {
    readonly #calls = new Calls(this);
    /** The server's skills. */
    readonly skills = new Skills(this);

    private constructor(options: ClientOptions, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        super(options, connect, onLine);
    }

    /** Starts a server program and connects to it over stdio. The program ends when the client is closed. */
    static spawn(command: string, args: readonly string[] = [], options: SpawnOptions = {}): Promise<Client> {
        const [child, settings, { stderr }] = [childSettings(command, args, options), clientSettings(options), options];
        const connect = (wake: () => void) => guarded(() => native.spawnChild(settings, ...watchOf(options), child, wake));
        return Client.#open(async () => new Client(options, connect, typeof stderr === 'function' ? stderr : undefined));
    }

    /**
     * Connects to a server by its address, such as `https://example.com/mcp`: `http:`, `https:`, `ws:`, `wss:`,
     * `tcp:host:port`, `unix:/path` or `stdio:COMMAND ARGS`. For tests, connects to a `Server` or a `Front` in this process,
     * without a transport.
     */
    static connect(address: string | URL, options?: ConnectOptions): Promise<Client>;
    static connect(server: Server<any> | Front, options?: ClientOptions): Promise<Client>;
    static connect(to: string | URL | Server<any> | Front, options: ConnectOptions = {}): Promise<Client> {
        if (typeof to === 'string' || to instanceof URL) return Client.#at(String(to), options);
        const front = to instanceof Front ? to : to.front;
        return front ? Client.#through(front, options) : Client.#near(to as Server<any>, options);
    }

    static async #at(address: string, options: ConnectOptions): Promise<Client> {
        const command = guarded(() => native.commandOf(address));
        if (command) return Client.spawn(command[0]!, command.slice(1), options);
        const settings = clientSettings(options);
        const transport = connectSettings(options);
        const login = options.auth instanceof OAuth ? options.auth.native : undefined;
        const connect = (wake: () => void) => guarded(() => native.openAddress(settings, ...watchOf(options), address, transport, login, wake));
        return Client.#open(async () => new Client(options, connect));
    }

    static #through(front: Front, options: ClientOptions): Promise<Client> {
        return Client.#open(async () => {
            const { front: made, end, ends } = await front.assembled();
            const settings = clientSettings(options);
            const connect = (wake: () => void) => guarded(() => native.connectFront(settings, ...watchOf(options), made, wake));
            try {
                const client = new Client(options, connect);
                client.ending.then(end).catch(error => front.failures.report(error, 'lifespan.stop'));
                dropped.register(client, { ends, failures: front.failures });
                return client;
            } catch (error) {
                return giveUp(end, error);
            }
        });
    }

    static #near(server: Server<any>, options: ClientOptions): Promise<Client> {
        return Client.#open(async () => {
            const client = new Client(options);
            const link = client.link;
            const join = (entries: NativeEntries, wake: () => void) =>
                guarded(() => native.pair(entries, wake, clientSettings(options), ...watchOf(options), link.wake));
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
     * Lists the server's tools, all pages. From then on, results are validated against the output schemas of this list.
     * This and the other lists are cached for as long as the server allows, or until it reports that they changed.
     */
    async listTools(options?: ListOptions): Promise<Tool[]> {
        const tools = await this.lists.all<Tool>('tools', options);
        this.#calls.learn(tools);
        return tools;
    }

    /** Lists the server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void> {
        return this.lists.pages('tools', options);
    }

    /**
     * Calls a tool. If the tool itself fails, the result has `isError`. If the call becomes a task, waits for its
     * result.
     */
    callTool(name: string, args: object | Json = {}, options?: RequestOptions): Promise<CallToolResult> {
        return this.#calls.call(name, args, options);
    }

    /**
     * Calls a tool as a task. In 2025-11-25 the client asks for the task, and it starts at once; from 2026-07-28 on the
     * server decides, if the client was opened with `tasks`. See `ToolTask`.
     */
    startTool(name: string, args: object | Json = {}, options?: StartOptions): Promise<ToolTask> {
        return this.#calls.start(name, args, options);
    }

    /**
     * Returns a task by its id, which may come from an earlier connection if the server keeps tasks that long
     * (2026-07-28).
     */
    task(id: string, options?: Pick<RequestOptions, 'signal'>): ToolTask {
        return this.#calls.task(id, options);
    }

    /** Lists the tasks of this connection, all pages (2025-11-25). */
    listTasks(options?: RequestOptions): Promise<TaskInfo[]> {
        return this.#calls.tasks(options);
    }

    /** Lists the server's resources, all pages. */
    listResources(options?: ListOptions): Promise<Resource[]> {
        return this.lists.all('resources', options);
    }

    /** Lists the server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void> {
        return this.lists.pages('resources', options);
    }

    /** Lists the server's resource templates, all pages. */
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
        return this.lists.all('resourceTemplates', options);
    }

    /** Lists the server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void> {
        return this.lists.pages('resourceTemplates', options);
    }

    /** Reads a resource. */
    async readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]> {
        const result = await this.ask<{ contents?: ResourceContents[] }>('resources', 'resources/read', { uri }, options);
        return arrayOf(result.contents, 'contents');
    }

    /** Lists the server's prompts, all pages. */
    listPrompts(options?: ListOptions): Promise<Prompt[]> {
        return this.lists.all('prompts', options);
    }

    /** Lists the server's prompts, page by page. */
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void> {
        return this.lists.pages('prompts', options);
    }

    /** Renders a prompt. */
    getPrompt(name: string, args: Record<string, string> = {}, options?: RequestOptions): Promise<GetPromptResult> {
        return this.ask('prompts', 'prompts/get', { name, arguments: args }, options);
    }

    /**
     * Suggests values for an argument of a prompt or resource template, given the start of the value and the other
     * arguments that are already decided.
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

    /** Subscribes to a resource: each change emits the event `resourceUpdated`. */
    async subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.requests.wait(link => link.subscribe(String(uri), true), options);
    }

    /** Ends a subscription. */
    async unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void> {
        await this.requests.wait(link => link.subscribe(String(uri), false), options);
    }

    /**
     * Listens for changes, from the moment at which this resolves; see `Listening`. Interests that the server does not
     * offer are left out. Before 2026-07-28 servers report list changes without being asked; there this call subscribes
     * to the resources, and unsubscribes at the end. The client emits its events in any case.
     */
    async listen(interests: Interests, { signal }: Pick<RequestOptions, 'signal'> = {}): Promise<Listening> {
        if (signal?.aborted) throw cancelled(signal);
        if (this.opened.listens) return this.streams.listen(interests, signal);
        const subscribe = (uri: string, wanted: boolean) => (wanted ? this.subscribe(uri) : this.unsubscribe(uri));
        return this.streams.tune(interests, signal, () => this.ping(), subscribe);
    }

    /** Replaces the roots and notifies the server. The client must have been opened with roots. */
    setRoots(roots: readonly (Root | string)[]): void {
        guarded(() => this.link.native.setRoots(JSON.stringify(rootsOf(roots))));
    }

    /**
     * Sets the least severe level of log messages that the server should send; they arrive as `log` events. From
     * 2026-07-28 on servers send none without a level, and each request of this client that takes `meta` carries it.
     */
    async setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void> {
        if (!LEVELS.includes(level)) throw new McpError('ERR_MCP_MISUSE', `unknown log level ${JSON.stringify(level)}; use one of ${LEVELS.join(', ')}`);
        this.requests.hasLevel = true;
        if (this.opened.setsLevel) await this.ask('logging', 'logging/setLevel', { level }, options);
        else this.requests.level = level;
    }
}
