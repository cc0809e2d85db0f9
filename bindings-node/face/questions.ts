import { McpError } from './errors';
import type { Link } from './link';
import { readJson, writeJson } from './numbers';

/** How a question is asked. */
export interface AskOptions {
    /**
     * What clients of 2026-07-28 see the question as; the questions of one call have different names. Numbered by
     * default.
     */
    name?: string;
}

/** @internal What a handler may ask: see `src/ask.rs`. */
export const enum Question {
    Sample,
    Form,
    Page,
    Roots
}

/**
 * @internal What one call has asked and not yet been told.
 *
 * Where the client is sent requests, their answers are waited for. From 2026-07-28 on it is not: once the handler can
 * go no further without an answer, the call is answered with everything that it has asked, and the client repeats it;
 * the handler runs anew and is told at once what it asked before.
 */
export class Questions {
    readonly #link: Link;
    readonly #call: number;
    readonly #open = new Map<number, (error: McpError) => void>();
    readonly #roundOver: () => void;
    #isChecked = false;

    /** `roundOver` is called when the call is answered with what it asked. */
    constructor(link: Link, call: number, roundOver: () => void) {
        this.#link = link;
        this.#call = call;
        this.#roundOver = roundOver;
    }

    ask<Result>(what: Question, params: object, name?: string): Promise<Result> {
        const link = this.#link;
        // What the handler reported before goes out before.
        link.flush();
        const answer = link.native.ask(this.#call, what, writeJson(params)!, name);
        if (typeof answer === 'string') return Promise.resolve(readJson(answer, link.integers));
        if (answer === null) return Promise.reject(new McpError('ERR_MCP_CANCELLED', 'the call is over'));
        return new Promise<Result>((resolve, reject) => {
            const settle = <T>(act: (value: T) => void) => (value: T) => {
                this.#open.delete(answer);
                act(value);
            };
            this.#open.set(answer, reject);
            link.waiting.set(answer, { resolve: settle(resolve), reject: settle(reject) });
            this.#check();
        });
    }

    /** Looks whether the round is over, once everything that could go on has. */
    #check(): void {
        if (this.#isChecked) return;
        this.#isChecked = true;
        process.nextTick(() => {
            this.#isChecked = false;
            if (this.#open.size === 0) return;
            this.#link.flush();
            if (this.#link.native.endRound(this.#call)) this.#roundOver();
        });
    }

    /** The call is over: nothing is waited for any more. */
    end(error: McpError): void {
        for (const [number, reject] of this.#open) {
            this.#link.giveUp(number);
            reject(error);
        }
        this.#open.clear();
    }
}
