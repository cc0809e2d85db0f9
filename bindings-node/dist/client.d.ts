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
/** The prompt or resource template that has the argument to complete. */
export type CompletionTarget = {
    prompt: string;
} | {
    template: string;
};
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
export declare class Client extends Actions {
    #private;
    /** The server's skills. */
    readonly skills: Skills;
    private constructor();
    /** Starts a server program and connects to it over stdio. The program ends when the client is closed. */
    static spawn(command: string, args?: readonly string[], options?: SpawnOptions): Promise<Client>;
    /**
     * Connects to a server by its address, such as `https://example.com/mcp`: `http:`, `https:`, `ws:`, `wss:`,
     * `tcp:host:port`, `unix:/path` or `stdio:COMMAND ARGS`. For tests, connects to a `Server` in this process, without
     * a transport.
     */
    static connect(address: string | URL, options?: ConnectOptions): Promise<Client>;
    static connect(server: Server<any>, options?: ClientOptions): Promise<Client>;
    /**
     * Lists the server's tools, all pages. From then on, results are validated against the output schemas of this list.
     * This and the other lists are cached for as long as the server allows, or until it reports that they changed.
     */
    listTools(options?: ListOptions): Promise<Tool[]>;
    /** Lists the server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void>;
    /**
     * Calls a tool. If the tool itself fails, the result has `isError`. If the call becomes a task, waits for its
     * result.
     */
    callTool(name: string, args?: object | Json, options?: RequestOptions): Promise<CallToolResult>;
    /**
     * Calls a tool as a task. In 2025-11-25 the client asks for the task, and it starts at once; from 2026-07-28 on the
     * server decides, if the client was opened with `tasks`. See `ToolTask`.
     */
    startTool(name: string, args?: object | Json, options?: StartOptions): Promise<ToolTask>;
    /**
     * Returns a task by its id, which may come from an earlier connection if the server keeps tasks that long
     * (2026-07-28).
     */
    task(id: string, options?: Pick<RequestOptions, 'signal'>): ToolTask;
    /** Lists the tasks of this connection, all pages (2025-11-25). */
    listTasks(options?: RequestOptions): Promise<TaskInfo[]>;
    /** Lists the server's resources, all pages. */
    listResources(options?: ListOptions): Promise<Resource[]>;
    /** Lists the server's resources, page by page. */
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void>;
    /** Lists the server's resource templates, all pages. */
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]>;
    /** Lists the server's resource templates, page by page. */
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void>;
    /** Reads a resource. */
    readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]>;
    /** Lists the server's prompts, all pages. */
    listPrompts(options?: ListOptions): Promise<Prompt[]>;
    /** Lists the server's prompts, page by page. */
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void>;
    /** Renders a prompt. */
    getPrompt(name: string, args?: Record<string, string>, options?: RequestOptions): Promise<GetPromptResult>;
    /**
     * Suggests values for an argument of a prompt or resource template, given the start of the value and the other
     * arguments that are already decided.
     */
    complete(target: CompletionTarget, argument: string, value: string, args?: Record<string, string>, options?: Pick<RequestOptions, 'signal'>): Promise<Completions>;
    /** Subscribes to a resource: each change emits the event `resourceUpdated`. */
    subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    /** Ends a subscription. */
    unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    /**
     * Listens for changes, from the moment at which this resolves; see `Listening`. Interests that the server does not
     * offer are left out. Before 2026-07-28 servers report list changes without being asked; there this call subscribes
     * to the resources, and unsubscribes at the end. The client emits its events in any case.
     */
    listen(interests: Interests, { signal }?: Pick<RequestOptions, 'signal'>): Promise<Listening>;
    /** Replaces the roots and notifies the server. The client must have been opened with roots. */
    setRoots(roots: readonly (Root | string)[]): void;
    /**
     * Sets the least severe level of log messages that the server should send; they arrive as `log` events. From
     * 2026-07-28 on servers send none without a level, and each request of this client that takes `meta` carries it.
     */
    setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void>;
}
