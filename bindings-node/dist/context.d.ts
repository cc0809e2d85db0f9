import type { ClientInfo } from './definitions';
import type { FormResult, LogLevel, PageResult, Revision, Root, SamplingMessage, SamplingRequest, SamplingResult } from './protocol';
import { type AskOptions } from './questions';
import type { Schema } from './schema';
/** A call in progress, as its handler sees it. */
export declare class Context<State = unknown> {
    #private;
    /** The value that `lifespan.start` returned. */
    readonly state: State;
    /**
     * The arguments of a tool or a prompt as JSON, as received or as `sanitise` changed them, until the call is
     * answered. For values that JavaScript's numbers cannot hold, such as long decimals, and integers beyond 2^53
     * unless the option `integers` preserves them.
     */
    get argumentsJson(): string;
    /** Aborts when the client cancels the call or disconnects; the handler's result is then discarded. */
    get signal(): AbortSignal;
    /** Whether the client asked for progress. */
    get wantsProgress(): boolean;
    /**
     * Reports progress, if the client asked for it. The value must increase from call to call. Delivered in order, and
     * before the answer.
     */
    progress(progress: number, total?: number, message?: string): void;
    /**
     * Streams a part of the result that is available already, any JSON value, to a client of the action dialect that
     * reads the answer as a stream. Has no effect for other clients, which get the whole result. Delivered in order,
     * and before the answer.
     */
    partial(data: unknown): void;
    /** The process or state that an action belongs to, as named by its client. */
    get actionContext(): string | undefined;
    /** The caller, as verified by the policy; `undefined` if nothing verified it. */
    get principal(): string | undefined;
    /** Whether the caller was granted this scope: use it to filter what the caller may see. */
    hasScope(scope: string): boolean;
    /**
     * Turns the call of a tool with `taskSupport` into a task: the client is answered that the call is now a task, and
     * fetches its result from the task. Returns whether the call is a task; `false` if the client cannot follow tasks
     * or there is no room, and the call continues as before.
     *
     * Questions to the client that were asked before are answered in rounds; those asked after, through the task,
     * without running the handler again. In 2025-11-25 the client asks for tasks, and such calls are tasks from their
     * start.
     */
    beginTask(): boolean;
    /** Whether the call has become a task. */
    get isTask(): boolean;
    /**
     * Sets a sentence on the progress of the task, if the call has become one; it holds until the task's status
     * changes.
     */
    taskMessage(message: string): void;
    /** Sends a log message, if the client wants messages of that level. `data` is any JSON value. */
    log(level: LogLevel, data: unknown, logger?: string): void;
    /**
     * Asks the user to fill in a form: a flat object of strings, numbers, booleans and choices. The input is validated
     * against the schema. Not for secrets.
     *
     * This and the other questions fail with `ERR_MCP_UNSUPPORTED` if the client did not declare the capability they
     * need. From 2026-07-28 on a question ends the call, and the client repeats the call with the answers: **the
     * handler runs again from its beginning**, and questions that it asked before resolve at once. In the call that
     * ended, questions without an answer fail with `ERR_MCP_ROUND_OVER`, so that `finally` blocks run. Questions that
     * are asked together (`Promise.all`) are sent together.
     */
    elicit<Content = Record<string, unknown>>(message: string, schema: Schema<Content>, options?: AskOptions): Promise<FormResult<Content>>;
    /**
     * Asks the user to visit a page outside the client: for data that the client should not see, such as credentials.
     * `id` identifies the request; `elicitationComplete` repeats it.
     */
    elicitUrl(message: string, url: string | URL, id?: string, options?: AskOptions): Promise<PageResult>;
    /**
     * Tells the client that the user has completed the page with that `id`. May be called after the call is over, if
     * this call asked for the page.
     */
    elicitationComplete(id: string): void;
    /** Asks the client's model to continue a conversation; a string is one user message. See `elicit`. */
    sample(request: SamplingRequest<SamplingMessage[] | string>, options?: AskOptions): Promise<SamplingResult>;
    /** Asks the client for its roots: the folders and files that servers should keep to. See `elicit`. */
    roots(options?: AskOptions): Promise<Root[]>;
    /**
     * Closes the event stream on which this call is answered, if it has one in a session of 2025-11-25. The client
     * reconnects after `retryMs` for everything sent from now on, and holds no connection meanwhile. Has no effect
     * elsewhere.
     */
    releaseStream(retryMs: number): void;
    /**
     * The settings that the client declared with this call for an extension; `undefined` if it did not declare the
     * extension. Always `undefined` before 2026-07-28.
     */
    extension(id: string): object | undefined;
    /**
     * The client's description of itself: from this call since 2026-07-28, in earlier revisions from when it connected.
     */
    get client(): ClientInfo;
    /** The protocol revision that the call is made in. */
    get revision(): Revision;
    /** The `_meta` of the request, including the caller's trace context (`traceparent`, `tracestate`, `baggage`). */
    get meta(): Readonly<Record<string, unknown>>;
    /**
     * Refuses the call unless the client declared a capability, named by its path: `require('elicitation', 'url')`. The
     * error tells the client which capability to declare.
     */
    require(...path: string[]): void;
}
