import { guarded, McpError } from './errors';
import type { Failures } from './failures';
import { checkLimit, HookClock } from './hookclock';
import type { HookRunner } from './hooks';
import { weakly } from './kept';
import { native, type NativeRule } from './native';
import { settingsJson, writeJson } from './numbers';

/**
 * Middleware of the engine, for `rules` of an `External`, or among the `middleware` of a `Front`. Messages that pass it do not pass
 * through JavaScript.
 */
export type Rule = Pins | Approval | Masking | Breaker | Retry | CallReports;

/** @internal Middleware of the engine, whose callbacks report their exceptions to `failures`. `runner` keeps what lasts as long as the chain. */
export interface EngineMiddleware {
    made(failures: Failures, runner: HookRunner): NativeRule;
}

/**
 * Middleware of the engine that gives the names and URIs of a server a prefix: `find` becomes `library_find`, and `book://list`
 * becomes `book://library/list`.
 */
export class Prefix {
    readonly #native: NativeRule;

    /** A prefix of ASCII letters, digits, `-` and `_`. */
    constructor(prefix: string) {
        this.#native = guarded(() => native.prefixRule(prefix));
    }

    /** @internal */
    made(): NativeRule {
        return this.#native;
    }
}

/** A tool that is not as it was pinned. */
export interface PinDrift {
    /** The name of the server. */
    server: string;
    /** The tool, by the server's own name. */
    tool: string;
    /** Its pin; `null` if it has none. */
    pinned: string | null;
    /** The pin that it would have as it is. */
    found: string;
}

/** Options of `Pins`. */
export interface PinsOptions {
    /** Called once for each tool that is not as it was pinned. */
    onDrift?: (drift: PinDrift) => unknown;
}

/**
 * The pin of a tool, as a server lists it: `sha256:` and the hash of its name, title, description, schemas and annotations, in
 * whatever order and with whatever white space they are written.
 */
export function toolPin(tool: object): string {
    return native.toolPin(writeJson(tool)!);
}

/**
 * Passes on only the tools of a server that are as they were pinned. Others are left out of lists, and calls of them are refused
 * (-32602). A tool that was not listed before it is called is looked up first. A server may describe a tool differently in different
 * revisions: pin it in the revision in which it is used.
 */
export class Pins {
    readonly #pins: Record<string, string>;
    readonly #onDrift: PinsOptions['onDrift'];

    /** The pins by tool, under the server's own names: see `toolPin`. */
    constructor(pins: Readonly<Record<string, string>>, { onDrift }: PinsOptions = {}) {
        this.#pins = { ...pins };
        this.#onDrift = onDrift;
        guarded(() => native.pinsRule(this.#pins));
    }

    /** @internal */
    made(failures: Failures): NativeRule {
        const told = this.#onDrift;
        const drift = told && ((json: string) => failures.heed('onDrift', () => told(JSON.parse(json))));
        return guarded(() => native.pinsRule(this.#pins, drift));
    }
}

/** A call of a tool that needs approval. */
export interface ApprovalCall {
    /** The tool, by the name that it has where the rule stands. */
    readonly tool: string;
    readonly arguments: Readonly<Record<string, any>>;
    /** The revision in which the client speaks. */
    readonly revision: string;
    /** The verified client; absent if nobody verified it. */
    readonly principal?: string;
    /** Aborts when the client cancels the call, and when the time for the approval is over. */
    readonly signal: AbortSignal;
}

/** Options of `Approval`. */
export interface ApprovalOptions {
    /**
     * Says whether a call may pass: `true`, or `false`, or a text that says why not, which the client gets (-32602). An exception refuses
     * the call, and is reported. Without this function the user of the client is asked, by elicitation.
     */
    approve?: (call: ApprovalCall) => boolean | string | Promise<boolean | string>;
    /** How long `approve` may take, in ms; 5 minutes by default, `Infinity` for no limit. Then the call is refused. */
    timeout?: number;
}

/**
 * Passes on calls of some tools only when they are approved: by the program, or by the user of the client, who sees the name of the
 * tool and its arguments. Calls of clients without elicitation are then refused.
 *
 * A call that goes on after questions of its server (`input_required`) is a further call for `approve`. The user is not asked about it
 * again, if its arguments are the same.
 */
export class Approval {
    readonly #tools: string[];
    readonly #approve: ApprovalOptions['approve'];
    readonly #timeout: number;

    /** The names of the tools, in which `*` stands for any text: `delete*`. */
    constructor(tools: readonly string[], { approve, timeout = 300_000 }: ApprovalOptions = {}) {
        checkLimit('timeout', timeout);
        this.#tools = [...tools];
        this.#approve = approve;
        this.#timeout = timeout;
        guarded(() => native.approvalRule(this.#tools));
    }

    /** @internal */
    made(failures: Failures, runner: HookRunner): NativeRule {
        const approve = this.#approve;
        if (!approve) return guarded(() => native.approvalRule(this.#tools));
        const running = new Map<number, AbortController>();
        const decide = async (number: number, call: Omit<ApprovalCall, 'signal'>) => {
            const controller = new AbortController();
            const { signal } = controller;
            running.set(number, controller);
            const over = () => controller.abort(new McpError('ERR_MCP_TIMEOUT', `no decision within ${this.#timeout / 1000} s`));
            const clock = new HookClock(this.#timeout, over);
            const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
            try {
                const verdict = await Promise.race([(async () => approve({ ...call, signal }))(), aborted]);
                rule.approved(number, refusal(verdict));
            } catch (error) {
                const isLate = signal.aborted && error === signal.reason;
                rule.approved(number, isLate ? signal.reason.message : 'the approval failed unexpectedly');
                if (!isLate) failures.report(error, 'the approval');
            } finally {
                clock.stop();
                running.delete(number);
            }
        };
        const ask = (json: string) => {
            const { number, ...call } = JSON.parse(json);
            if (call.tool !== undefined) void decide(number, call);
            else running.get(number)?.abort(new McpError('ERR_MCP_CANCELLED', 'the call was cancelled'));
        };
        runner.keep(ask);
        const rule: NativeRule = guarded(() => native.approvalRule(this.#tools, weakly(ask)));
        return rule;
    }
}

/** Why a call is refused, if it is. */
function refusal(verdict: unknown): string | undefined {
    if (verdict === true) return undefined;
    if (verdict === false) return 'the program has refused it';
    if (typeof verdict === 'string') return verdict;
    throw new TypeError(`approve: return true, false or a text that says why not, not ${typeof verdict}`);
}

/** Options of `Masking`. */
export interface MaskingOptions {
    /** Which texts are masked: of results, errors, log messages and tasks; of arguments; or both. `results` by default. */
    texts?: 'results' | 'arguments' | 'both';
    /** Texts that are masked wherever they stand. */
    secrets?: readonly string[];
    /** Also masks what looks like a credential: tokens of known forms, what follows `Bearer`, passwords in URLs, private keys. */
    credentials?: boolean;
    /** The size of a result, or of arguments, above which nothing is passed on but an error, in bytes; 16 MiB by default. */
    maxBytes?: number;
}

/**
 * Masks texts on their way, by `***`. Names of members, types, URIs and base64 data stay as they are. Lists, reports of progress and
 * questions of the server are not masked.
 */
export class Masking {
    readonly #native: NativeRule;

    /**
     * At most 64 regular expressions, in the syntax of Rust's crate `regex`: without look-around and back-references, so that they
     * take time linear in the text.
     */
    constructor(patterns: readonly string[], options: MaskingOptions = {}) {
        this.#native = guarded(() => native.maskingRule(settingsJson({ ...options, patterns })));
    }

    /** @internal */
    made(): NativeRule {
        return this.#native;
    }
}

/** Options of `Breaker`. */
export interface BreakerOptions {
    /** How many failures within `window` it takes, from 1 to 1000; 5 by default. */
    failures?: number;
    /** In ms; 10 s by default. */
    window?: number;
    /** How long the server is left alone, in ms; 10 s by default. */
    rest?: number;
}

/**
 * Refuses requests to a server for a time after it has failed often: it was lost, did not answer in time, or answered what is not valid.
 * Then one request at a time is let through, until one has an answer. An answer that is an error is an answer. Wherever it is used,
 * one breaker counts together: give each server one of its own.
 */
export class Breaker {
    readonly #native: NativeRule;

    constructor(options: BreakerOptions = {}) {
        this.#native = guarded(() => native.breakerRule(settingsJson(options)));
    }

    /** Whether requests are refused at present. */
    get isOpen(): boolean {
        return this.#native.isOpen();
    }

    /** @internal */
    made(): NativeRule {
        return this.#native;
    }
}

/** Options of `Retry`. */
export interface RetryOptions {
    /** Also repeats calls of tools that the server lists with `readOnlyHint` or `idempotentHint`; `false` by default. */
    trustAnnotations?: boolean;
}

/**
 * Sends a request again, over a new connection, when the connection was lost before the server began to answer. It does so with
 * lists, reads, `prompts/get`, completions and `ping`, which change nothing; everything else is sent once. Put it behind a `Breaker`, which
 * then counts all attempts as one.
 */
export class Retry {
    readonly #native: NativeRule;

    /** How often a request is sent again, from 0 to 10. */
    constructor(times: number, options: RetryOptions = {}) {
        this.#native = guarded(() => native.retryRule(settingsJson({ ...options, times })));
    }

    /** @internal */
    made(): NativeRule {
        return this.#native;
    }
}

/** One request to a server, and its outcome. It has neither arguments nor results. */
export interface UpstreamCall {
    /** The name of the server, or of the front. */
    server: string;
    method: string;
    /** The tool, the prompt or the URI; `null` for other requests. */
    name: string | null;
    /** The verified client. */
    principal: string | null;
    outcome: 'done' | 'tool_failed' | 'failed' | 'timed_out' | 'cancelled';
    /** The error, if the request ended with one. */
    error: string | null;
    /** Seconds until the answer. */
    seconds: number;
    /** How many reports before this one were dropped, because 8,192 waited. */
    dropped: number;
}

/**
 * Reports each request when it is answered or cancelled. Put it first, so that the refusals of other rules are reported, too. Streams
 * of changes are not reported.
 */
export class CallReports {
    readonly #report: (call: UpstreamCall) => unknown;

    constructor(report: (call: UpstreamCall) => unknown) {
        if (typeof report !== 'function') throw new McpError('ERR_MCP_MISUSE', 'CallReports takes a function, which gets each call');
        this.#report = report;
    }

    /** @internal */
    made(failures: Failures): NativeRule {
        return guarded(() => native.callReportsRule(json => failures.heed('the call report', () => this.#report(JSON.parse(json)))));
    }
}
