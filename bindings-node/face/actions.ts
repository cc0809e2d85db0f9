import { Connection } from './connection';
import type { Json } from './content';
import { ActionError, revive, type Failure } from './errors';
import { native, type NativeLink } from './native';
import { writeJson } from './numbers';
import { jsonOf, type RequestOptions } from './requests';

/** How failures that may pass are retried. */
export interface RetryPolicy {
    /** Maximum number of tries, the first included; 3 by default. */
    tries?: number;
    /** The first wait in ms, 1000 by default. Each further wait is twice as long, plus a random part of up to half. */
    base?: number;
    /** The longest wait in ms, 30,000 by default. If the server asks for a longer wait, the call is not retried. */
    longest?: number;
}

/** A circuit breaker: when to stop sending to a server that keeps failing. */
export interface BreakerPolicy {
    /** Consecutive failures that open the breaker; 5 by default. 0 disables the breaker. */
    failures?: number;
    /** How long the breaker stays open, in ms; 30,000 by default. Nothing is sent meanwhile. */
    pause?: number;
}

export interface ActionOptions extends Pick<RequestOptions, 'signal' | 'timeout'> {
    /** The tool, or the namespace, to call. */
    tool?: string;
    /** The process or state that the action belongs to. */
    context?: string;
    /** Additional members of its metadata: `client_id`, `auth`, `timestamp`. */
    metadata?: Readonly<Record<string, unknown>>;
    /** Called with each part of the answer as it arrives. */
    onPartial?: (part: any) => void;
    /** Asks for the answer in parts, which `ActionAnswer.partials` collects; `onPartial` implies it. */
    streamed?: boolean;
    /**
     * Retries failures that may pass. Setting it also declares that the action may run twice: without it, an action is
     * not retried if its stream broke off after some parts and could not be resumed.
     */
    retry?: RetryPolicy;
    /** When to stop sending to a server that keeps failing. */
    breaker?: BreakerPolicy;
    /** The name and params of an action to call if this one finally fails, unless the call itself is wrong. */
    fallback?: readonly [name: string, params: object | Json];
}

/** The answer to an action. */
export class ActionAnswer<Data = any> {
    /** The result. */
    readonly data: Data;
    /** The metadata of the answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata: Readonly<Record<string, any>>;
    /** The parts that came before the result, in order. */
    readonly partials: readonly any[];

    /** @internal */
    constructor({ data, metadata, partials }: Outcome) {
        this.data = data as Data;
        this.metadata = metadata;
        this.partials = partials;
    }

    /** Joins the string member of that name in all parts, for a text that was streamed. */
    joined(member: string): string {
        const texts = this.partials.map(part => part?.[member]);
        return texts.filter(text => typeof text === 'string').join('');
    }

    /** The outcome of each operation of a batch that was carried out: its data, or its error. */
    results(): (any | ActionError)[] {
        const results: Outcome[] = JSON.parse(native.actionResults(writeJson(this.data)!));
        return results.map(({ data, failure }) => (failure ? revive(failure) : data));
    }
}

/** The outcome of a call as the engine reports it. */
interface Outcome {
    data: unknown;
    metadata: Record<string, any>;
    partials: any[];
    failure?: Failure;
}

/** Calls to a server of the action dialect; needs the option `opening: 'actions'`. */
export abstract class Actions extends Connection {
    /**
     * Calls an action. Rejects with an `ActionError` if the server answers with one; `McpError.forPeople` explains any
     * failure in a sentence for people without technical knowledge.
     */
    action<Data = any>(name: string, params: object | Json = {}, options: ActionOptions = {}): Promise<ActionAnswer<Data>> {
        const { onPartial } = options;
        const settings = settingsOf(options, this.requests.timeout);
        return this.#outcome(link => link.action(name, jsonOf(params)!, settings, onPartial !== undefined), {
            ...(options.signal && { signal: options.signal }),
            ...(onPartial && { onProgress: onPartial })
        });
    }

    /**
     * Calls several actions, given by name and params, one after the other in one request. Stops at the first failure
     * unless `continueOnError` is set: see `ActionAnswer.results`.
     */
    actionBatch(
        operations: Iterable<readonly [name: string, params: object]>,
        { continueOnError = false, ...options }: ActionOptions & { continueOnError?: boolean } = {}
    ): Promise<ActionAnswer> {
        const calls = Array.from(operations, ([action, params]) => ({ action, params }));
        return this.action('batch.execute', { operations: calls, continue_on_error: continueOnError }, options);
    }

    /**
     * Fetches the server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From
     * then on params are validated before they are sent: a mismatch fails with `ERR_MCP_INVALID_PARAMS`.
     */
    async actionSchemas(): Promise<Record<string, any>> {
        return (await this.#outcome(link => link.actionSchemas())).data;
    }

    /** Fetches the server's name and version, and the versions of the dialect that it supports. */
    async actionVersion(): Promise<Record<string, any>> {
        return (await this.action('mcp.get_version')).data;
    }

    /** Checks once, without retries, whether the server is healthy; rejects if it is not. */
    async actionHealth(): Promise<void> {
        await this.action('mcp.health_check', {}, { retry: { tries: 1 } });
    }

    async #outcome(begin: (link: NativeLink) => number, options?: RequestOptions): Promise<ActionAnswer> {
        const outcome: Outcome = await this.requests.wait(begin, options);
        if (outcome.failure) throw revive(outcome.failure);
        return new ActionAnswer(outcome);
    }
}

/** The engine's part of the options, as JSON. */
function settingsOf(options: ActionOptions, usual: number | undefined): string {
    const { tool, context, metadata, timeout = usual, streamed = false, retry, breaker, fallback } = options;
    const json = writeJson({ streamed, tool, context, metadata, timeout, retry, breaker })!;
    if (fallback === undefined) return json;
    return `${json.slice(0, -1)},"fallback":[${JSON.stringify(fallback[0])},${jsonOf(fallback[1])}]}`;
}
