import { guarded, McpError, ProtocolError } from './errors';
import { checkContent, readForm } from './form';
import { Outbound, type Link } from './link';
import { readJson, writeJson, type Integers } from './numbers';
import { LEVELS } from './protocol';
import type { ClientInfo, FormResult, Implementation, LogLevel, PageResult, Revision, Root, SamplingMessage, SamplingRequest, SamplingResult } from './protocol';
import { Questions, type AskOptions, type Question } from './questions';
import type { Described, Schema } from './schema';

/** A call in progress, as its handler sees it. */
export class Context<State = unknown> {
    readonly #link: Link;
    readonly #number: number;
    readonly #wantsProgress: boolean;
    /** The arguments; `undefined` until they are asked for, if long texts were passed aside. */
    #json: string | undefined;
    #live = true;
    #isSettled = false;
    #reason: string | undefined;
    #controller: AbortController | undefined;
    #questions: Questions | undefined;
    #client: ClientInfo | undefined;
    #meta: Readonly<Record<string, unknown>> | undefined;

    /** The value that `lifespan.start` returned. */
    readonly state: State;

    /** @internal */
    constructor(link: Link, number: number, wantsProgress: boolean, state: State, json: string | undefined) {
        this.#link = link;
        this.#number = number;
        this.#wantsProgress = wantsProgress;
        this.state = state;
        this.#json = json;
    }

    /**
     * The arguments of a tool or a prompt as JSON, as received or as `sanitise` changed them, until the call is
     * answered. For values that JavaScript's numbers cannot hold, such as long decimals, and integers beyond 2^53
     * unless the option `integers` preserves them.
     */
    get argumentsJson(): string {
        this.#json ??= this.#link.native.arguments(this.#number);
        return this.#json || '{}';
    }

    /** Aborts when the client cancels the call or disconnects; the handler's result is then discarded. */
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
     * Reports progress, if the client asked for it. The value must increase from call to call. Delivered in order, and
     * before the answer.
     */
    progress(progress: number, total?: number, message = ''): void {
        if (!this.#wantsProgress || !this.#live) return;
        this.#link.push(Outbound.Progress, this.#number, message, progress, total ?? NaN);
    }

    /**
     * Streams a part of the result that is available already, any JSON value, to a client of the action dialect that
     * reads the answer as a stream. Has no effect for other clients, which get the whole result. Delivered in order,
     * and before the answer.
     */
    partial(data: unknown): void {
        if (this.#live) this.#link.push(Outbound.Partial, this.#number, writeJson(data) ?? 'null');
    }

    /** The process or state that an action belongs to, as named by its client. */
    get actionContext(): string | undefined {
        return (this.#live && this.#link.native.actionContext(this.#number)) || undefined;
    }

    /** The caller, as verified by the policy; `undefined` if nothing verified it. */
    get principal(): string | undefined {
        return (this.#live && this.#link.native.principal(this.#number)) || undefined;
    }

    /** Whether the caller was granted this scope: use it to filter what the caller may see. */
    hasScope(scope: string): boolean {
        return this.#live && this.#link.native.hasScope(this.#number, scope);
    }

    /**
     * Turns the call of a tool with `taskSupport` into a task: the client is answered that the call is now a task, and
     * fetches its result from the task. Returns whether the call is a task; `false` if the client cannot follow tasks
     * or there is no room, and the call continues as before.
     *
     * Questions to the client that were asked before are answered in rounds; those asked after, through the task,
     * without running the handler again. In 2025-11-25 the client asks for tasks, and such calls are tasks from their
     * start.
     */
    beginTask(): boolean {
        if (!this.#live) return false;
        // Reports made so far belong to the call, not to the task.
        this.#link.flush();
        return this.#link.native.beginTask(this.#number);
    }

    /** Whether the call has become a task. */
    get isTask(): boolean {
        return this.#live && this.#link.native.isTask(this.#number);
    }

    /**
     * Sets a sentence on the progress of the task, if the call has become one; it holds until the task's status
     * changes.
     */
    taskMessage(message: string): void {
        if (this.#live) this.#link.push(Outbound.TaskMessage, this.#number, message);
    }

    /** Sends a log message, if the client wants messages of that level. `data` is any JSON value. */
    log(level: LogLevel, data: unknown, logger = ''): void {
        const severity = LEVELS.indexOf(level);
        if (severity < 0) throw new McpError('ERR_MCP_MISUSE', `unknown log level ${JSON.stringify(level)}; use one of ${LEVELS.join(', ')}`);
        if (!this.#live) return;
        const json = writeJson(data) ?? 'null';
        this.#link.push(Outbound.Log, this.#number, logger + json, severity, logger.length);
    }

    /** Logs at the level `debug`: see `log`. */
    debug(data: unknown, logger?: string): void {
        this.log('debug', data, logger);
    }

    /** Logs at the level `info`: see `log`. */
    info(data: unknown, logger?: string): void {
        this.log('info', data, logger);
    }

    /** Logs at the level `warning`: see `log`. */
    warning(data: unknown, logger?: string): void {
        this.log('warning', data, logger);
    }

    /** Logs at the level `error`: see `log`. */
    error(data: unknown, logger?: string): void {
        this.log('error', data, logger);
    }

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
    elicit<S extends object>(
        message: string,
        schema: S,
        options?: AskOptions
    ): Promise<FormResult<Described<S, Record<string, unknown>>>>;
    /** A form whose content has a type of your own. */
    elicit<Content = Record<string, unknown>>(message: string, schema: Schema, options?: AskOptions): Promise<FormResult<Content>>;
    elicit(message: string, schema: Schema, options?: AskOptions): Promise<FormResult<any>> {
        return this.#quiet(async () => {
            const { form, check } = readForm(schema);
            const result = await this.#ask<FormResult<any>>('form', { message, schema: form }, options);
            if (result.action !== 'accept' || check === undefined) return result;
            return { action: 'accept', content: await checkContent(result.content, check) };
        });
    }

    /**
     * Asks the user to visit a page outside the client: for data that the client should not see, such as credentials.
     * `id` identifies the request; `elicitationComplete` repeats it.
     */
    elicitUrl(message: string, url: string | URL, id: string = crypto.randomUUID(), options?: AskOptions): Promise<PageResult> {
        // `elicitationComplete` needs it, perhaps after the call is over.
        if (this.#live) void this.client;
        return this.#quiet(() => this.#ask('page', { message, url: String(url), id }, options));
    }

    /**
     * Tells the client that the user has completed the page with that `id`. May be called after the call is over, if
     * this call asked for the page.
     */
    elicitationComplete(id: string): void {
        const { connection } = this.#live || this.#client ? this.client : {};
        if (connection !== undefined) this.#link.native.pageDone(connection, id);
    }

    /** Asks the client's model to continue a conversation; a string is one user message. See `elicit`. */
    sample(request: SamplingRequest<SamplingMessage[] | string>, options?: AskOptions): Promise<SamplingResult> {
        const { messages, ...rest } = request;
        const said = (text: string) => [{ role: 'user' as const, content: { type: 'text' as const, text } }];
        const params = { ...rest, messages: typeof messages === 'string' ? said(messages) : messages };
        return this.#quiet(() => this.#ask('sample', params, options));
    }

    /** Asks the client for its roots: the folders and files that servers should keep to. See `elicit`. */
    roots(options?: AskOptions): Promise<Root[]> {
        return this.#quiet(() => this.#ask('roots', {}, options));
    }

    async #ask<Result>(what: Question, params: object, { name }: AskOptions = {}): Promise<Result> {
        if (!this.#live) throw new McpError('ERR_MCP_CANCELLED', 'the call is over');
        this.#questions ??= new Questions(this.#link, this.#number, () => this.#endRound());
        return this.#questions.ask<Result>(what, params, name);
    }

    /** Keeps a question that nothing awaits from failing as an unhandled rejection. */
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
     * Closes the event stream on which this call is answered, if it has one in a session of 2025-11-25. The client
     * reconnects after `retryMs` for everything sent from now on, and holds no connection meanwhile. Has no effect
     * elsewhere.
     */
    releaseStream(retryMs: number): void {
        if (!this.#live) return;
        this.#link.flush();
        guarded(() => this.#link.native.releaseStream(this.#number, retryMs));
    }

    /**
     * The settings that the client declared with this call for an extension; `undefined` if it did not declare the
     * extension. Always `undefined` before 2026-07-28.
     */
    extension(id: string): object | undefined {
        const json = this.#live ? this.#link.native.extension(this.#number, id) : null;
        return json === null ? undefined : JSON.parse(json);
    }

    /**
     * The client's description of itself: from this call since 2026-07-28, in earlier revisions from when it connected.
     */
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

    /** The `_meta` of the request, including the caller's trace context (`traceparent`, `tracestate`, `baggage`). */
    get meta(): Readonly<Record<string, unknown>> {
        if (this.#live) this.#meta ??= Object.freeze(JSON.parse(this.#link.native.meta(this.#number)));
        return this.#meta ?? {};
    }

    /**
     * Refuses the call unless the client declared a capability, named by its path: `require('elicitation', 'url')`. The
     * error tells the client which capability to declare.
     */
    require(...path: string[]): void {
        const json = this.#live ? this.#link.native.missing(this.#number, path) : null;
        if (json === null) return;
        const { message, data } = JSON.parse(json);
        throw new ProtocolError('missing capability', message, data);
    }

    /** @internal Answers the call with a row of that kind; has no effect when the call is over. */
    answer(kind: Outbound, text: string, a = 0, b = 0): void {
        if (!this.#live) return;
        this.#live = false;
        this.#json = '';
        this.#questions?.end(new McpError('ERR_MCP_CANCELLED', 'the call is over'));
        this.#link.push(kind, this.#number, text, a, b);
    }

    /** @internal Replaces the arguments. */
    clean(json: string): void {
        if (this.#live) this.#json = json;
    }

    /** @internal Parses the arguments of the call, with the texts that were passed aside. */
    read(json: string): unknown {
        const args = readJson(json, this.integers);
        if (this.#json !== undefined) return args;
        const aside = this.#link.native.aside(this.#number);
        for (let i = 0; i < aside.length; i += 2) args[aside[i]!] = aside[i + 1];
        return args;
    }

    /** @internal How integers beyond 2^53 appear. */
    get integers(): Integers {
        return this.#link.integers;
    }

    /** @internal Notes that the handler has ended, whether or not the call was answered. */
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

/** @internal A client as the engine describes it. */
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
