import type { ClientInfo } from './definitions';
import type { FormResult, LogLevel, PageResult, Revision, Root, SamplingMessage, SamplingRequest, SamplingResult } from './protocol';
import { type AskOptions } from './questions';
import type { Schema } from './schema';
/** A call under way, as its handler sees it. */
export declare class Context<State = unknown> {
    #private;
    /** What `lifespan.start` gave. */
    readonly state: State;
    /**
     * The arguments of a tool or a prompt as they came, or as `sanitise` has left them, in JSON, until the call is
     * answered: for what JavaScript's numbers cannot hold, as long decimals, and integers beyond 2^53 unless the option
     * `integers` keeps them.
     */
    get argumentsJson(): string;
    /** Aborted when the client gives up or goes away; what the handler gives back then is discarded. */
    get signal(): AbortSignal;
    /** Whether the client asked for progress. */
    get wantsProgress(): boolean;
    /**
     * Reports progress, if the client asked for it. It must increase from call to call. Delivered in order, and before
     * the answer.
     */
    progress(progress: number, total?: number, message?: string): void;
    /**
     * Hands on a part of the result that is there already, anything that JSON can say, to a client of the action dialect
     * that reads the answer as a stream; nothing happens for others, who get the whole. Delivered in order, and before
     * the answer.
     */
    partial(data: unknown): void;
    /** The process or state that an action belongs to, as its client names it. */
    get actionContext(): string | undefined;
    /** Who calls, as the policy has verified; `undefined` where nobody knows. */
    get principal(): string | undefined;
    /** Whether that was granted to who calls: to filter what it may see. */
    hasScope(scope: string): boolean;
    /**
     * Has the call of a tool with `taskSupport` go on as a task: the client is answered that it is one, and finds there
     * what comes of it. Whether it is one; `false` when the client cannot follow it or there is no room, and the call
     * goes on as before.
     *
     * What is asked of the client before is answered in rounds, what is asked after through the task: the handler does
     * not run again. In 2025-11-25 the client asks for tasks, and calls are tasks from their beginning.
     */
    beginTask(): boolean;
    /** Whether the call has become a task. */
    get isTask(): boolean;
    /** Says in a sentence how far the task is, if the call has become one; until its status changes. */
    taskMessage(message: string): void;
    /** Sends a log message, if the client wants messages of that level. `data` is anything that JSON can say. */
    log(level: LogLevel, data: unknown, logger?: string): void;
    /**
     * Asks the user to fill a form in: a flat object of strings, numbers, booleans and choices. What is filled in is
     * held against the schema. Not for secrets.
     *
     * This and the other questions fail with `ERR_MCP_UNSUPPORTED` when the client did not declare what they need.
     * From 2026-07-28 on they end the call, and the client repeats it with the answers: **the handler runs from its
     * beginning again** and is told at once what it asked before. What it had asked and not been told fails with
     * `ERR_MCP_ROUND_OVER`, so that `finally` blocks run. Questions that are asked together (`Promise.all`) go out
     * together.
     */
    elicit<Content = Record<string, unknown>>(message: string, schema: Schema<Content>, options?: AskOptions): Promise<FormResult<Content>>;
    /**
     * Asks the user to visit a page, outside the client's reach: for what a client should not see, as credentials.
     * `id` names the errand; `elicitationComplete` repeats it.
     */
    elicitUrl(message: string, url: string | URL, id?: string, options?: AskOptions): Promise<PageResult>;
    /**
     * Tells the client that the user has done what a page asked for. May be called after the call is over, if it was
     * this call that asked.
     */
    elicitationComplete(id: string): void;
    /** Has the client's model continue a conversation; a text is what the user says. See `elicit`. */
    sample(request: SamplingRequest<SamplingMessage[] | string>, options?: AskOptions): Promise<SamplingResult>;
    /** The folders and files that the client wants servers to keep to. See `elicit`. */
    roots(options?: AskOptions): Promise<Root[]>;
    /**
     * Ends the stream of events on which this call is answered, where it has one in a session of 2025-11-25: the client
     * comes back after that time for what is said from now on, and costs no connection meanwhile. Elsewhere nothing
     * happens.
     */
    releaseStream(retryMs: number): void;
    /**
     * The settings that the client declared with this call for an extension; `undefined` when it did not declare it.
     * Before 2026-07-28 there are none.
     */
    extension(id: string): object | undefined;
    /** What the client said of itself: with this call from 2026-07-28 on, when it connected before. */
    get client(): ClientInfo;
    /** The protocol revision that the call is made in. */
    get revision(): Revision;
    /** The `_meta` of the request, the trace context of its caller included (`traceparent`, `tracestate`, `baggage`). */
    get meta(): Readonly<Record<string, unknown>>;
    /**
     * Refuses the call unless the client declared a capability, named by its path: `require('elicitation', 'url')`. The
     * client is told which one to declare.
     */
    require(...path: string[]): void;
}
