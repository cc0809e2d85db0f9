import type { ClientInfo } from './definitions';
import { guarded, McpError, ProtocolError } from './errors';
import { checkContent, readForm } from './form';
import { Outbound, type Link } from './link';
import { writeJson, type Integers } from './numbers';
import { LEVELS } from './protocol';
import type { NativeCaller } from './native';
import type { FormResult, Implementation, LogLevel, PageResult, Revision, Root, SamplingMessage, SamplingRequest, SamplingResult } from './protocol';
import { Question, Questions, type AskOptions } from './questions';
import type { Schema } from './schema';

/** A call under way, as its handler sees it. */
export class Context<State = unknown> {
    readonly #link: Link;
    readonly #number: number;
    readonly #wantsProgress: boolean;
    #json: string;
    #live = true;
    #isSettled = false;
    #reason: string | undefined;
    #controller: AbortController | undefined;
    #questions: Questions | undefined;
    #client: ClientInfo | undefined;
    #caller: NativeCaller | null = null;
    #meta: Readonly<Record<string, unknown>> | undefined;

    /** What `lifespan.start` gave. */
    readonly state: State;

    /** @internal */
    constructor(link: Link, number: number, wantsProgress: boolean, state: State, json: string) {
        this.#link = link;
        this.#number = number;
        this.#wantsProgress = wantsProgress;
        this.state = state;
        this.#json = json;
    }

    /**
     * The arguments of a tool or a prompt as they came, or as `sanitise` has left them, in JSON, until the call is
     * answered: for what JavaScript's numbers cannot hold, as long decimals, and integers beyond 2^53 unless the option
     * `integers` keeps them.
     */
    get argumentsJson(): string {
        return this.#json || '{}';
    }

    /** Aborted when the client gives up or goes away; what the handler gives back then is discarded. */
    get signal(): AbortSignal {
        if (this.#controller === undefined) {
            this.#controller = new AbortController();
            if (this.#reason !== undefined) this.#abort();
        }
        return this.#controller.signal;
    }

    /** Whether the client asked for progress. */
    get wantsProgress(): boolean {
        return this.#wantsProgress;
    }

    /**
     * Reports progress, if the client asked for it. It must increase from call to call. Delivered in order, and before
     * the answer.
     */
    progress(progress: number, total?: number, message = ''): void {
        if (!this.#wantsProgress || !this.#live) return;
        this.#link.push(Outbound.Progress, this.#number, message, progress, total ?? NaN);
    }

    /**
     * Hands on a part of the result that is there already, anything that JSON can say, to a client of the action dialect
     * that reads the answer as a stream; nothing happens for others, who get the whole. Delivered in order, and before
     * the answer.
     */
    partial(data: unknown): void {
        if (this.#live) this.#link.push(Outbound.Partial, this.#number, writeJson(data) ?? 'null');
    }

    /** The process or state that an action belongs to, as its client names it. */
    get actionContext(): string | undefined {
        return (this.#live && this.#link.native.actionContext(this.#number)) || undefined;
    }

    /** Who calls, as the policy has verified; `undefined` where nobody knows. */
    get principal(): string | undefined {
        return (this.#live && this.#link.native.principal(this.#number)) || undefined;
    }

    /** Whether that was granted to who calls: to filter what it may see. */
    hasScope(scope: string): boolean {
        return this.#live && this.#link.native.hasScope(this.#number, scope);
    }

    /**
     * Has the call of a tool with `taskSupport` go on as a task: the client is answered that it is one, and finds there
     * what comes of it. Whether it is one; `false` when the client cannot follow it or there is no room, and the call
     * goes on as before.
     *
     * What is asked of the client before is answered in rounds, what is asked after through the task: the handler does
     * not run again. In 2025-11-25 the client asks for tasks, and calls are tasks from their beginning.
     */
    beginTask(): boolean {
        if (!this.#live) return false;
        // What was reported before belongs to the call.
        this.#link.flush();
        return this.#link.native.beginTask(this.#number);
    }

    /** Whether the call has become a task. */
    get isTask(): boolean {
        return this.#live && this.#link.native.isTask(this.#number);
    }

    /** Says in a sentence how far the task is, if the call has become one; until its status changes. */
    taskMessage(message: string): void {
        if (this.#live) this.#link.push(Outbound.TaskMessage, this.#number, message);
    }

    /** Sends a log message, if the client wants messages of that level. `data` is anything that JSON can say. */
    log(level: LogLevel, data: unknown, logger = ''): void {
        const severity = LEVELS.indexOf(level);
        if (severity < 0) throw new McpError('ERR_MCP_MISUSE', `a level is one of ${LEVELS.join(', ')}`);
        if (!this.#live) return;
        const json = writeJson(data) ?? 'null';
        this.#link.push(Outbound.Log, this.#number, logger + json, severity, logger.length);
    }

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
    elicit<Content = Record<string, unknown>>(
        message: string,
        schema: Schema<Content>,
        options?: AskOptions
    ): Promise<FormResult<Content>> {
        return this.#quiet(async () => {
            const { form, check } = readForm(schema);
            const result = await this.#ask<FormResult<Content>>(Question.Form, { message, schema: form }, options);
            if (result.action !== 'accept' || check === undefined) return result;
            return { action: 'accept', content: (await checkContent(result.content, check)) as Content };
        });
    }

    /**
     * Asks the user to visit a page, outside the client's reach: for what a client should not see, as credentials.
     * `id` names the errand; `elicitationComplete` repeats it.
     */
    elicitUrl(message: string, url: string | URL, id: string = crypto.randomUUID(), options?: AskOptions): Promise<PageResult> {
        this.#keepCaller();
        return this.#quiet(() => this.#ask(Question.Page, { message, url: String(url), id }, options));
    }

    /**
     * Tells the client that the user has done what a page asked for. May be called after the call is over, if it was
     * this call that asked.
     */
    elicitationComplete(id: string): void {
        this.#keepCaller();
        this.#caller?.pageDone(id);
    }

    #keepCaller(): void {
        if (this.#live) this.#caller ??= this.#link.native.caller(this.#number);
    }

    /** Has the client's model continue a conversation; a text is what the user says. See `elicit`. */
    sample(request: SamplingRequest<SamplingMessage[] | string>, options?: AskOptions): Promise<SamplingResult> {
        const { messages, ...rest } = request;
        const said = (text: string) => [{ role: 'user' as const, content: { type: 'text' as const, text } }];
        const params = { ...rest, messages: typeof messages === 'string' ? said(messages) : messages };
        return this.#quiet(() => this.#ask(Question.Sample, params, options));
    }

    /** The folders and files that the client wants servers to keep to. See `elicit`. */
    roots(options?: AskOptions): Promise<Root[]> {
        return this.#quiet(() => this.#ask(Question.Roots, {}, options));
    }

    async #ask<Result>(what: Question, params: object, { name }: AskOptions = {}): Promise<Result> {
        if (!this.#live) throw new McpError('ERR_MCP_CANCELLED', 'the call is over');
        this.#questions ??= new Questions(this.#link, this.#number, () => this.#endRound());
        return this.#questions.ask<Result>(what, params, name);
    }

    /** A question that nobody waits for fails without an unhandled rejection. */
    #quiet<Result>(ask: () => Promise<Result>): Promise<Result> {
        const result = ask();
        result.catch(() => {});
        return result;
    }

    #endRound(): void {
        this.#end('the client is asked first');
        this.#questions?.end(new McpError('ERR_MCP_ROUND_OVER', 'the client is asked first: the handler runs anew with its answers'));
    }

    /**
     * Ends the stream of events on which this call is answered, where it has one in a session of 2025-11-25: the client
     * comes back after that time for what is said from now on, and costs no connection meanwhile. Elsewhere nothing
     * happens.
     */
    releaseStream(retryMs: number): void {
        if (!this.#live) return;
        this.#link.flush();
        guarded(() => this.#link.native.releaseStream(this.#number, retryMs));
    }

    /**
     * The settings that the client declared with this call for an extension; `undefined` when it did not declare it.
     * Before 2026-07-28 there are none.
     */
    extension(id: string): object | undefined {
        const json = this.#live ? this.#link.native.extension(this.#number, id) : null;
        return json === null ? undefined : JSON.parse(json);
    }

    /** What the client said of itself: with this call from 2026-07-28 on, when it connected before. */
    get client(): ClientInfo {
        if (this.#client === undefined) {
            const json = this.#live ? this.#link.native.introduction(this.#number) : null;
            if (json === null) throw new McpError('ERR_MCP_CANCELLED', 'the call is over');
            this.#client = clientOf(JSON.parse(json));
        }
        return this.#client;
    }

    /** The protocol revision that the call is made in. */
    get revision(): Revision {
        return this.client.revision;
    }

    /** The `_meta` of the request, the trace context of its caller included (`traceparent`, `tracestate`, `baggage`). */
    get meta(): Readonly<Record<string, unknown>> {
        if (this.#live) this.#meta ??= Object.freeze(JSON.parse(this.#link.native.meta(this.#number)));
        return this.#meta ?? {};
    }

    /**
     * Refuses the call unless the client declared a capability, named by its path: `require('elicitation', 'url')`. The
     * client is told which one to declare.
     */
    require(...path: string[]): void {
        const json = this.#live ? this.#link.native.missing(this.#number, path) : null;
        if (json === null) return;
        const { message, data } = JSON.parse(json);
        throw new ProtocolError('missing capability', message, data);
    }

    /** @internal Answers, with what its row wants besides; does nothing when the call is over. */
    answer(kind: Outbound, text: string, a = 0, b = 0): void {
        if (!this.#live) return;
        this.#live = false;
        this.#json = '';
        this.#questions?.end(new McpError('ERR_MCP_CANCELLED', 'the call is over'));
        this.#link.push(kind, this.#number, text, a, b);
    }

    /** @internal Its arguments are these. */
    clean(json: string): void {
        if (this.#live) this.#json = json;
    }

    /** @internal What becomes of integers beyond 2^53. */
    get integers(): Integers {
        return this.#link.integers;
    }

    /** @internal Its handler has ended, answered or not. */
    settle(): void {
        this.#isSettled = true;
    }

    /** @internal */
    get isUnderWay(): boolean {
        return !this.#isSettled;
    }

    /** @internal */
    get isLive(): boolean {
        return this.#live;
    }

    /** @internal */
    cancel(reason: string): void {
        this.#end(reason);
        this.#questions?.end(new McpError('ERR_MCP_CANCELLED', 'the call was cancelled'));
    }

    #end(reason: string): void {
        this.#live = false;
        this.#json = '';
        this.#reason = reason;
        this.#abort();
    }

    #abort(): void {
        const message = this.#reason ? `the call was cancelled: ${this.#reason}` : 'the call was cancelled';
        this.#controller?.abort(new DOMException(message, 'AbortError'));
    }
}

/** @internal What the engine says of a client. */
export interface Introduction {
    revision: Revision;
    connection?: number;
    peer?: Implementation;
    capabilities?: Record<string, unknown>;
}

/** @internal */
export function clientOf({ revision, connection, peer: info, capabilities = {} }: Introduction): ClientInfo {
    return { revision, connection, info, capabilities };
}
