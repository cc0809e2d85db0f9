import { McpError } from './errors';
import { Outbound, type Link } from './link';
import { LEVELS, type LogLevel } from './protocol';

/** A call under way, as its handler sees it. */
export class Context<State = unknown> {
    readonly #link: Link;
    readonly #number: number;
    readonly #wantsProgress: boolean;
    #json: string;
    #live = true;
    #reason: string | undefined;
    #controller: AbortController | undefined;

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
     * The arguments of a tool or a prompt as they came, in JSON, until the call is answered: for what JavaScript's
     * numbers cannot hold, as integers beyond 2^53, which lose digits in `args`.
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

    /** Sends a log message, if the client wants messages of that level. `data` is anything that JSON can say. */
    log(level: LogLevel, data: unknown, logger = ''): void {
        const severity = LEVELS.indexOf(level);
        if (severity < 0) throw new McpError('ERR_MCP_MISUSE', `a level is one of ${LEVELS.join(', ')}`);
        if (!this.#live) return;
        const json = JSON.stringify(data) ?? 'null';
        this.#link.push(Outbound.Log, this.#number, logger + json, severity, logger.length);
    }

    /** @internal Answers; does nothing when the call is over. */
    answer(kind: Outbound, text: string, code = 0): void {
        if (!this.#live) return;
        this.#live = false;
        this.#json = '';
        this.#link.push(kind, this.#number, text, code);
    }

    /** @internal */
    get isLive(): boolean {
        return this.#live;
    }

    /** @internal */
    cancel(reason: string): void {
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
