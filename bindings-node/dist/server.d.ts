import { Context } from './context';
import type { JsonSchema, PromptArgument, ToolAnnotations, Trace } from './protocol';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
import { type Schema } from './schema';
export interface ServerOptions<State = unknown> {
    /** What the server tells the model about itself. */
    instructions?: string;
    /** What is made before the first call and unmade after the last; `ctx.state` is what `start` gave. */
    lifespan?: {
        start: () => State | Promise<State>;
        stop?: (state: State) => unknown;
    };
    /** Told of what handlers throw; printed to stderr by default, `ToolError`s excepted. */
    onError?: (error: unknown, what: string) => void;
}
export interface ToolDefinition<Args = any> {
    /** A name for people. */
    title?: string;
    /** What it does, for the model. */
    description?: string;
    /** What its arguments look like: a JSON Schema, or a schema object of zod and the like. */
    inputSchema?: Schema<Args>;
    /** What its structured content looks like. */
    outputSchema?: JsonSchema;
    annotations?: ToolAnnotations;
    icons?: readonly object[];
}
export interface ResourceDefinition {
    name?: string;
    title?: string;
    description?: string;
    mimeType?: string;
}
export interface PromptDefinition {
    title?: string;
    description?: string;
    arguments?: readonly PromptArgument[];
}
export interface RunOptions {
    /** How long what is in flight may still be answered after the end of stdin or a signal, in ms; 5000 by default. */
    graceMs?: number;
    /** Take SIGTERM, SIGINT and SIGHUP while the server runs; by default when nobody listens for them. */
    signals?: boolean;
    /** Shown each message. */
    trace?: Trace;
}
/** How a server's run ended. */
export interface RunReport {
    reason: 'end of input' | 'signal' | 'parent died' | 'broken pipe' | 'stopped' | 'closed';
    /** Calls whose handlers had not answered in time. */
    unanswered: number;
    signal?: number;
}
type Awaitable<T> = T | Promise<T>;
/** A server: what it offers, and the handlers of it. */
export declare class Server<State = undefined> {
    #private;
    constructor(name: string, version: string, options?: ServerOptions<State>);
    /** Adds a tool. Arguments that break its schema never reach the handler. */
    tool<Args = Record<string, any>>(name: string, definition: ToolDefinition<Args>, handler: (args: Args, context: Context<State>) => Awaitable<ToolOutput>): this;
    /** Adds a resource. */
    resource(uri: string, definition: ResourceDefinition, handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds resources by URI template; the handler takes the URI and the template's variables. */
    resourceTemplate(template: string, definition: ResourceDefinition, handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds a prompt. */
    prompt(name: string, definition: PromptDefinition, handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>): this;
    /**
     * Serves on stdin and stdout until the client goes away, a signal comes or `close` is called. Meanwhile what else
     * the process prints goes to stderr.
     */
    run(options?: RunOptions): Promise<RunReport>;
    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void;
}
export {};
