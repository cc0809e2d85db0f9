import type { Context } from './context';
import type { CallToolResult, Completions, GetPromptResult, Prompt, Resource, ResourceContents, ResourceTemplate, Tool } from './protocol';

/** What `next` of a middleware resolves to, by the method of the call: what the method of `Client` returns. */
export interface Replies {
    'tools/call': CallToolResult;
    'resources/read': ResourceContents[];
    'prompts/get': GetPromptResult;
    'completion/complete': Completions;
    'tools/list': Tool[];
    'resources/list': Resource[];
    'resources/templates/list': ResourceTemplate[];
    'prompts/list': Prompt[];
}

/** A call of one method on its way to its handler, as middleware sees it. */
export interface CallOf<Method extends keyof Replies, State = any> {
    /** The method of MCP. An action is a `tools/call`. */
    readonly method: Method;
    /**
     * The name of the tool or prompt, or the URI that is read; for completions, the name of the prompt or the URI
     * template. `undefined` for a list. The middleware of a mounted server sees the server's own names.
     */
    readonly name: Method extends `${string}/list` ? undefined : string;
    /**
     * The arguments of the tool or prompt, the variables of the template, or the argument to complete: a frozen object.
     * Assign another object to replace them; the new ones are checked, and the assignment throws if they do not fit.
     */
    arguments: Readonly<Record<string, any>>;
    /** The context that the handler gets. */
    readonly context: Context<State>;
    /** The caller, as verified by the policy; `undefined` if nothing verified it. */
    readonly principal: string | undefined;
}

/** A call on its way to its handler, as middleware sees it: narrow it by `method`. */
export type Call<State = any> = { [Method in keyof Replies]: CallOf<Method, State> }[keyof Replies];

/**
 * Carries on, and resolves to the reply; rejects with what the handler throws. Passing the call narrows the type of the
 * reply to the call's method.
 */
export type Next = <Method extends keyof Replies>(call?: CallOf<Method>) => Promise<Replies[Method]>;

/**
 * A function around calls: see `Server.use`. It returns the reply, or whatever a handler may return.
 */
export type Middleware<State = any> = (call: Call<State>, next: Next) => unknown;
