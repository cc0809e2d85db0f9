import { Actions } from './actions';
import { type ConnectOptions } from './address';
import { type StartOptions } from './calls';
import type { Json } from './content';
import type { Listening } from './listening';
import type { ListOptions } from './lists';
import { type ClientOptions, type SpawnOptions } from './options';
import type { CallToolResult, Completions, GetPromptResult, Interests, LogLevel, Prompt, Resource, ResourceContents, ResourceTemplate, Root, Tool } from './protocol';
import { type RequestOptions } from './requests';
import type { Server } from './server';
import { Skills } from './skills';
import type { TaskInfo, ToolTask } from './task';
/** Which argument is to be completed. */
export type CompletionTarget = {
    prompt: string;
} | {
    template: string;
};
/**
 * A server, seen from the client's side. What it tells without being asked are events: see `ClientEvents`.
 *
 * Where the server has questions to answer before it can (2026-07-28), they are answered by the handlers of the options
 * and the request is repeated, unseen.
 */
export declare class Client extends Actions {
    #private;
    /** The server's skills. */
    readonly skills: Skills;
    private constructor();
    /** Starts a server program and connects to it. It ends when the client is closed. */
    static spawn(command: string, args?: readonly string[], options?: SpawnOptions): Promise<Client>;
    /**
     * Connects to a server at an address, as `https://example.com/mcp`: `http:`, `https:`, `ws:`, `wss:`, `tcp:host:port`,
     * `unix:/path`, `stdio:COMMAND ARGS`. Or to a server in this process, without a wire: for tests.
     */
    static connect(address: string | URL, options?: ConnectOptions): Promise<Client>;
    static connect(server: Server<any>, options?: ClientOptions): Promise<Client>;
    /**
     * The server's tools, all pages. From then on, results are held against the output schemas of this list. This and
     * the other lists are kept for as long as the server says, or until it tells that they are others.
     */
    listTools(options?: ListOptions): Promise<Tool[]>;
    /** The server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void>;
    /** Calls a tool. A failure of the tool itself is a result with `isError`. What becomes a task is waited for. */
    callTool(name: string, args?: object | Json, options?: RequestOptions): Promise<CallToolResult>;
    /**
     * Calls a tool, and gives the task that the call becomes: at once in 2025-11-25, where the client asks for it; later
     * where the server makes it one, if the client was opened with `tasks`. See `ToolTask`.
     */
    startTool(name: string, args?: object | Json, options?: StartOptions): Promise<ToolTask>;
    /** A task by its id, which may come from an earlier connection where tasks outlive it (2026-07-28). */
    task(id: string, options?: Pick<RequestOptions, 'signal'>): ToolTask;
    /** The tasks of this connection, all pages (2025-11-25). */
    listTasks(options?: RequestOptions): Promise<TaskInfo[]>;
    /** The server's resources, all pages. */
    listResources(options?: ListOptions): Promise<Resource[]>;
    /** The server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void>;
    /** The server's resource templates, all pages. */
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]>;
    /** The server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void>;
    /** Reads a resource. */
    readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]>;
    /** The server's prompts, all pages. */
    listPrompts(options?: ListOptions): Promise<Prompt[]>;
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
     * there are none without it, and the requests of this client that take `meta` say it.
     */
    setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void>;
}
