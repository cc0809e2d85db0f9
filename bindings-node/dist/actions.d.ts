import { Connection } from './connection';
import type { Json } from './content';
import { ActionError } from './errors';
import { type RequestOptions } from './requests';
/** How often, and after what waits, a call is tried again whose failure may pass. */
export interface RetryPolicy {
    /** How often it is tried in all; 3 by default. */
    tries?: number;
    /** The first wait, 1000 by default; each further one is twice as long, and up to half as much is added by chance. */
    baseMs?: number;
    /** The longest wait, 30,000 by default. A server that asks for a longer one is not asked again. */
    longestMs?: number;
}
/** When a server counts as one that keeps failing. */
export interface BreakerPolicy {
    /** So many failures in a row, 5 by default; never when 0. */
    failures?: number;
    /** For how long nothing is sent then; 30,000 by default. */
    pauseMs?: number;
}
export interface ActionOptions extends Pick<RequestOptions, 'signal' | 'timeout'> {
    /** The tool, or the namespace, that is asked. */
    tool?: string;
    /** The process or state that it belongs to. */
    context?: string;
    /** More members of its metadata: `client_id`, `auth`, `timestamp`. */
    metadata?: Readonly<Record<string, unknown>>;
    /** Told each part of the answer as it comes. */
    onPartial?: (part: any) => void;
    /** Asks for the answer in parts, which `ActionAnswer.partials` gathers; `onPartial` does so, too. */
    streamed?: boolean;
    /**
     * How often it is tried again where that may help. Given, it also says that the action may be carried out twice:
     * without it, one whose stream broke off under its parts and could not be resumed is not tried again.
     */
    retry?: RetryPolicy;
    /** When a server that keeps failing is left alone. */
    breaker?: BreakerPolicy;
    /** What is called instead when this fails for good, but for what is wrong with the call itself: its name and params. */
    fallback?: readonly [name: string, params: object | Json];
}
/** What an action answered. */
export declare class ActionAnswer<Data = any> {
    /** Its result. */
    readonly data: Data;
    /** What the server says of the answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata: Readonly<Record<string, any>>;
    /** The parts that came before it, in their order. */
    readonly partials: readonly any[];
    /** The values of a string member of the parts, joined: what a text was made up of. */
    joined(member: string): string;
    /** What became of each operation of a batch, as far as they were carried out: its data, or its error. */
    results(): (any | ActionError)[];
}
/** What a client with the option `opening: 'actions'` asks a server of the action dialect for. */
export declare abstract class Actions extends Connection {
    #private;
    /**
     * Calls an action. Fails with an `ActionError` where the server answers with one; `McpError.forPeople` says any failure
     * in a sentence for people.
     */
    action<Data = any>(name: string, params?: object | Json, options?: ActionOptions): Promise<ActionAnswer<Data>>;
    /**
     * Calls actions, names and params, one after the other in one request, and stops at the first that fails unless it
     * continues: see `ActionAnswer.results`.
     */
    actionBatch(operations: Iterable<readonly [name: string, params: object]>, { continueOnError, ...options }?: ActionOptions & {
        continueOnError?: boolean;
    }): Promise<ActionAnswer>;
    /**
     * The server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From now on params
     * are held against them before they are sent: what does not fit fails with `ERR_MCP_INVALID_PARAMS`.
     */
    actionSchemas(): Promise<Record<string, any>>;
    /** The server's name and version, and the versions of the dialect that it speaks. */
    actionVersion(): Promise<Record<string, any>>;
    /** Asks once whether the server is in working order; fails where it is not. */
    actionHealth(): Promise<void>;
}
