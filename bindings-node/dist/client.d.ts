import { EventEmitter } from 'node:events';
import { Json } from './content';
import { McpError } from './errors';
import { type ClientEvents } from './events';
import type { Listening } from './listening';
import { type ListOptions } from './lists';
import { type ClientOptions, type Exit, type SpawnOptions } from './options';
import type { CallToolResult, Completions, GetPromptResult, Implementation, Interests, LogLevel, Prompt, Resource, ResourceContents, ResourceTemplate, Revision, Root, Tool } from './protocol';
import { type RequestOptions } from './requests';
import type { Server } from './server';
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
    /**
     * The server's tools, all pages. From then on, results are held against the output schemas of this list. This and
     * the other lists are kept for as long as the server says, or until it tells that they are others.
     */
    listTools(options?: ListOptions): Promise<Tool[]>;
    /** The server's tools, page by page. */
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void>;
    /** Calls a tool. A failure of the tool itself is a result with `isError`. */
    callTool(name: string, args?: object | Json, options?: RequestOptions): Promise<CallToolResult>;
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
