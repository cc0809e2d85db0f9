import type { Call } from './call';
import { ActionError, ProtocolError, ToolError } from './errors';
import { logTo, type Logger } from './logger';

/** @internal Called with an exception, what failed, and the call, if one did. */
export type OnError = (error: unknown, what: string, call?: Call) => unknown;

/** @internal Reports of failures: those of a mounted server go to the outer one, too. */
export type Reports = Pick<Failures, 'report' | 'tell'>;

/** @internal The log and the hook for the failures of a server or a client. */
export class Failures {
    readonly #hook: OnError | undefined;
    readonly #log: (error: unknown, what: string) => void;

    /** Without a logger, exceptions are printed to stderr, unless there is a hook. */
    constructor(hook: OnError | undefined, logger: Logger | undefined) {
        this.#hook = hook;
        this.#log = logger ? logTo(logger) : hook ? () => {} : print;
    }

    /** Logs an exception, unless it is meant for clients, and calls the hooks. */
    report(error: unknown, what: string, call?: Call): void {
        if (!isAnswer(error)) guarded('the logger', () => this.#log(error, what), print);
        this.tell(error, what, call);
    }

    /** Calls the hooks; an exception of one is printed. */
    tell(error: unknown, what: string, call?: Call): void {
        guarded('onError', () => this.#hook?.(error, what, call), print);
    }

    /** Runs a callback of the program, whose exception is reported. */
    heed(what: string, callback: () => unknown): void {
        guarded(what, callback, (error, what) => this.report(error, what));
    }
}

/** Runs a function of the program; its exception goes to `fail`. */
function guarded(what: string, run: () => unknown, fail: (error: unknown, what: string) => void): void {
    try {
        const made = run();
        if (made instanceof Promise) made.catch(error => fail(error, what));
    } catch (error) {
        fail(error, what);
    }
}

/** @internal Failures of a mounted server, which logs them; the hooks of the outer one are called, too. */
export function within(inner: Reports, outer: Reports): Reports {
    return {
        report: (...told) => (inner.report(...told), outer.tell(...told)),
        tell: (...told) => (inner.tell(...told), outer.tell(...told))
    };
}

function print(error: unknown, what: string): void {
    console.error(`mcpbolt: ${what} failed:`, error);
}

/** Whether an error is meant for clients. */
function isAnswer(error: unknown): boolean {
    return error instanceof ToolError || error instanceof ProtocolError || error instanceof ActionError;
}
