import { McpError } from './errors';

/** The longest time of a timer. */
const MAX = 2 ** 31 - 1;

/** @internal Checks an option that limits how long a function of the program may take. */
export function checkLimit(option: string, limit: number): void {
    if (!(limit > 0)) throw new McpError('ERR_MCP_MISUSE', `${option}: a time in ms is a number above 0, or Infinity, not ${limit}`);
}

/** @internal The time that a function of the program takes by itself: it does not pass while the function waits for the other side. */
export class HookClock {
    readonly #limit: number;
    readonly #late: () => void;
    #timer: NodeJS.Timeout | undefined;

    /** Calls `late` when the function has taken `limit` ms without a pause; never if that is longer than 24 days. */
    constructor(limit: number, late: () => void) {
        this.#limit = limit;
        this.#late = late;
        this.go();
    }

    /** Begins anew. */
    go(): void {
        this.stop();
        if (this.#limit <= MAX) this.#timer = setTimeout(this.#late, this.#limit).unref();
    }

    stop(): void {
        clearTimeout(this.#timer);
    }
}
