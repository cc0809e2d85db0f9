import { Connection } from './connection';
import type { Json } from './content';
import { ActionError, revive, type Failure } from './errors';
import { native, type NativeActionOptions, type NativeLink } from './native';
import { writeJson } from './numbers';
import { jsonOf, type RequestOptions } from './requests';

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
export class ActionAnswer<Data = any> {
    /** Its result. */
    readonly data: Data;
    /** What the server says of the answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata: Readonly<Record<string, any>>;
    /** The parts that came before it, in their order. */
    readonly partials: readonly any[];

    /** @internal */
    constructor({ data, metadata, partials }: Outcome) {
        this.data = data as Data;
        this.metadata = metadata;
        this.partials = partials;
    }

    /** The values of a string member of the parts, joined: what a text was made up of. */
    joined(member: string): string {
        const texts = this.partials.map(part => part?.[member]);
        return texts.filter(text => typeof text === 'string').join('');
    }

    /** What became of each operation of a batch, as far as they were carried out: its data, or its error. */
    results(): (any | ActionError)[] {
        const results: Outcome[] = JSON.parse(native.actionResults(writeJson(this.data)!));
        return results.map(({ data, failure }) => (failure ? revive(failure) : data));
    }
}

/** What the engine says of a call. */
interface Outcome {
    data: unknown;
    metadata: Record<string, any>;
    partials: any[];
    failure?: Failure;
}

/** What a client with the option `opening: 'actions'` asks a server of the action dialect for. */
export abstract class Actions extends Connection {
    /**
     * Calls an action. Fails with an `ActionError` where the server answers with one; `McpError.forPeople` says any failure
     * in a sentence for people.
     */
    action<Data = any>(name: string, params: object | Json = {}, options: ActionOptions = {}): Promise<ActionAnswer<Data>> {
        const { onPartial } = options;
        const settings = settingsOf(options, this.requests.timeout);
        return this.#outcome(link => link.action(name, jsonOf(params)!, settings), {
            ...(options.signal && { signal: options.signal }),
            ...(onPartial && { onProgress: onPartial })
        });
    }

    /**
     * Calls actions, names and params, one after the other in one request, and stops at the first that fails unless it
     * continues: see `ActionAnswer.results`.
     */
    actionBatch(
        operations: Iterable<readonly [name: string, params: object]>,
        { continueOnError = false, ...options }: ActionOptions & { continueOnError?: boolean } = {}
    ): Promise<ActionAnswer> {
        const calls = Array.from(operations, ([action, params]) => ({ action, params }));
        return this.action('batch.execute', { operations: calls, continue_on_error: continueOnError }, options);
    }

    /**
     * The server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From now on params
     * are held against them before they are sent: what does not fit fails with `ERR_MCP_INVALID_PARAMS`.
     */
    async actionSchemas(): Promise<Record<string, any>> {
        return (await this.#outcome(link => link.actionSchemas())).data;
    }

    /** The server's name and version, and the versions of the dialect that it speaks. */
    async actionVersion(): Promise<Record<string, any>> {
        return (await this.action('mcp.get_version')).data;
    }

    /** Asks once whether the server is in working order; fails where it is not. */
    async actionHealth(): Promise<void> {
        await this.action('mcp.health_check', {}, { retry: { tries: 1 } });
    }

    async #outcome(begin: (link: NativeLink) => number, options?: RequestOptions): Promise<ActionAnswer> {
        const outcome: Outcome = await this.requests.wait(begin, options);
        if (outcome.failure) throw revive(outcome.failure);
        return new ActionAnswer(outcome);
    }
}

function settingsOf(options: ActionOptions, usual: number | undefined): NativeActionOptions {
    const { tool, context, metadata, timeout = usual, onPartial, streamed = false, retry, breaker, fallback } = options;
    return {
        streamed,
        wantsPartials: onPartial !== undefined,
        ...(tool !== undefined && { tool }),
        ...(context !== undefined && { context }),
        ...(metadata && { metadata: writeJson(metadata)! }),
        ...(timeout !== undefined && { timeoutMs: timeout }),
        ...(retry && { retry }),
        ...(breaker && { breaker }),
        ...(fallback && { fallback: [fallback[0], jsonOf(fallback[1])!] as [string, string] })
    };
}
