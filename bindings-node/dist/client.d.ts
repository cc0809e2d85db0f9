import { EventEmitter } from 'node:events';
import { type Answers } from './answering';
import { Json } from './content';
import { McpError } from './errors';
import { type ClientEvents } from './events';
import { Listening } from './listening';
import type { CallToolResult, Completions, GetPromptResult, Implementation, Interests, LogLevel, Progress, Prompt, Resource, ResourceContents, ResourceTemplate, Revision, Root, Tool, Trace } from './protocol';
import type { Server } from './server';
export interface ClientOptions extends Answers {
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
    /** Extensions that the client declares, from 2026-07-28 on: settings by name. See `capabilities`, too. */
    extensions?: Readonly<Record<string, object>>;
    /** Shown each message. */
    trace?: Trace;
    /** Listeners that are there before anything is told; `client.on(…)` adds more. */
    on?: {
        readonly [Name in keyof ClientEvents]?: (...args: ClientEvents[Name]) => void;
    };
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
    /** More members of the request's `_meta`. */
    meta?: Readonly<Record<string, unknown>>;
}
/** Which argument is to be completed. */
export type CompletionTarget = {
    prompt: string;
} | {
    template: string;
};
/** How a server's process ended. */
export interface Exit {
    code: number | null;
    signal: number | null;
}
/**
 * A server, seen from the client's side. What it tells without being asked are events: see `ClientEvents`.
 *
 * Where the server has questions to answer before it can (2026-07-28), they are answered by the handlers of the options
 * and the request is repeated, unseen.
 */
export declare class Client extends EventEmitter<ClientEvents> implements AsyncDisposable {
    #private;
    private constructor();
    /** Starts a server program and connects to it. It ends when the client is closed. */
    static spawn(command: string, args?: readonly string[], options?: SpawnOptions): Promise<Client>;
    /** Connects to a server in this process, without a wire: for tests. */
    static connect(server: Server<any>, options?: ClientOptions): Promise<Client>;
    /** The protocol revision in force. */
    get revision(): Revision;
    /** The server's name, version and more, if it named them. */
    get server(): Implementation | undefined;
    /** What the server offers, by name. */
    get capabilities(): Record<string, unknown>;
    /** What the server tells the model about itself. */
    get instructions(): string | undefined;
    /** How many answers came that nobody waited for, and frames that were no messages. */
    get strayCount(): number;
    /** Why the connection has ended, if it has. */
    get closed(): McpError | undefined;
    /** The server's tools, all pages. From then on, results are held against the output schemas of this list. */
    listTools(options?: RequestOptions): Promise<Tool[]>;
    /** The server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void>;
    /** Calls a tool. A failure of the tool itself is a result with `isError`. */
    callTool(name: string, args?: object | Json, options?: RequestOptions): Promise<CallToolResult>;
    /** The server's resources, all pages. */
    listResources(options?: RequestOptions): Promise<Resource[]>;
    /** The server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void>;
    /** The server's resource templates, all pages. */
    listResourceTemplates(options?: RequestOptions): Promise<ResourceTemplate[]>;
    /** The server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void>;
    /** Reads a resource. */
    readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]>;
    /** The server's prompts, all pages. */
    listPrompts(options?: RequestOptions): Promise<Prompt[]>;
    /** The server's prompts, page by page. */
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void>;
    /** Renders a prompt. */
    getPrompt(name: string, args?: Record<string, string>, options?: RequestOptions): Promise<GetPromptResult>;
    /**
     * The values that an argument of a prompt or resource template may take, given how it begins and the other
     * arguments, as far as they are decided.
     */
    complete(target: CompletionTarget, argument: string, value: string, args?: Record<string, string>, options?: Pick<RequestOptions, 'signal'>): Promise<Completions>;
    /** Has the server tell whenever a resource changes: the event `resourceUpdated`. */
    subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    /** Has it tell no more. */
    unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    /**
     * Has the server tell of changes, from the moment at which this resolves; see `Listening`. What it does not offer
     * is left out. Before 2026-07-28 servers tell of lists without being asked; there this subscribes to the resources,
     * and unsubscribes at the end. The events of this client come in any case.
     */
    listen(interests: Interests, { signal }?: Pick<RequestOptions, 'signal'>): Promise<Listening>;
    /** Replaces the roots that servers see, and tells this one. The client must have been given roots at first. */
    setRoots(roots: readonly (Root | string)[]): void;
    /**
     * Tells the server the least severe log messages that are wanted; they come as `log` events. From 2026-07-28 on
     * there are none without it, and each request of this client says it.
     */
    setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void>;
    /** Asks for a sign of life. */
    ping(options?: RequestOptions): Promise<void>;
    /** Sends a notification. */
    notify(method: string, params?: object | Json): void;
    /** Sends any request; gives its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result>;
    /**
     * Sends any request; gives its result as the JSON that it came in, for what JavaScript's numbers cannot hold, as
     * integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string>;
    /** Ends the connection; with a program that was started, ends it too and says how it went. */
    close(): Promise<Exit>;
    [Symbol.asyncDispose](): Promise<void>;
}
