import { Connection } from './connection';
import type { Json } from './content';
import { ActionError } from './errors';
import { type RequestOptions } from './requests';
/** How failures that may pass are retried. */
export interface RetryPolicy {
    /** Maximum number of tries, the first included; 3 by default. */
    tries?: number;
    /** The first wait in ms, 1000 by default. Each further wait is twice as long, plus a random part of up to half. */
    baseMs?: number;
    /** The longest wait in ms, 30,000 by default. If the server asks for a longer wait, the call is not retried. */
    longestMs?: number;
}
/** A circuit breaker: when to stop sending to a server that keeps failing. */
export interface BreakerPolicy {
    /** Consecutive failures that open the breaker; 5 by default. 0 disables the breaker. */
    failures?: number;
    /** How long the breaker stays open, in ms; 30,000 by default. Nothing is sent meanwhile. */
    pauseMs?: number;
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
export declare class ActionAnswer<Data = any> {
    /** The result. */
    readonly data: Data;
    /** The metadata of the answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata: Readonly<Record<string, any>>;
    /** The parts that came before the result, in order. */
    readonly partials: readonly any[];
    /** Joins the string member of that name in all parts, for a text that was streamed. */
    joined(member: string): string;
    /** The outcome of each operation of a batch that was carried out: its data, or its error. */
    results(): (any | ActionError)[];
}
/** Calls to a server of the action dialect; needs the option `opening: 'actions'`. */
export declare abstract class Actions extends Connection {
    #private;
    /**
     * Calls an action. Rejects with an `ActionError` if the server answers with one; `McpError.forPeople` explains any
     * failure in a sentence for people without technical knowledge.
     */
    action<Data = any>(name: string, params?: object | Json, options?: ActionOptions): Promise<ActionAnswer<Data>>;
    /**
     * Calls several actions, given by name and params, one after the other in one request. Stops at the first failure
     * unless `continueOnError` is set: see `ActionAnswer.results`.
     */
    actionBatch(operations: Iterable<readonly [name: string, params: object]>, { continueOnError, ...options }?: ActionOptions & {
        continueOnError?: boolean;
    }): Promise<ActionAnswer>;
    /**
     * Fetches the server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From
     * then on params are validated before they are sent: a mismatch fails with `ERR_MCP_INVALID_PARAMS`.
     */
    actionSchemas(): Promise<Record<string, any>>;
    /** Fetches the server's name and version, and the versions of the dialect that it supports. */
    actionVersion(): Promise<Record<string, any>>;
    /** Checks once, without retries, whether the server is healthy; rejects if it is not. */
    actionHealth(): Promise<void>;
}
