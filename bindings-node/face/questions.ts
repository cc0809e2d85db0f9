import { McpError } from './errors';
import type { Link } from './link';
import { readJson, writeJson } from './numbers';

/** How a question is asked. */
export interface AskOptions {
    /** The name under which clients of 2026-07-28 see the question, unique within a call. Numbered by default. */
    name?: string;
}

/** @internal The questions that a handler may ask: see `Question` in `src/handler.rs`. */
export type Question = 'sample' | 'form' | 'page' | 'roots';

/**
 * @internal The questions of one call without an answer.
 *
 * Before 2026-07-28 the client is sent requests, and the handler waits for their answers. From then on, once the
 * handler cannot continue without an answer, the call is answered with all its open questions, and the client repeats
 * the call with the answers. The handler then runs again, and questions that it asked before resolve at once.
 */
export class Questions {
    readonly #open = new Map<number, (error: McpError) => void>();
    readonly #roundOver: () => void;
    #isChecked = false;

    /** `roundOver` is called when the call is answered with its questions. */
    constructor(private readonly link: Link, private readonly call: number, roundOver: () => void) {
        this.#roundOver = roundOver;
    }

    ask<Result>(what: Question, params: object, name?: string): Promise<Result> {
        const link = this.link;
        // Reports that the handler made before must be sent before.
        link.flush();
        const answer = link.native.ask(this.call, writeJson({ [what]: params })!, name);
        if (typeof answer === 'string') return Promise.resolve(readJson(answer, link.integers));
        if (answer === null) return Promise.reject(new McpError('ERR_MCP_CANCELLED', 'the call is over'));
        return new Promise<Result>((resolve, reject) => {
            const settle = <T>(act: (value: T) => void) => (value: T) => {
                this.#open.delete(answer);
                act(value);
            };
            this.#open.set(answer, reject);
            link.await(answer, { resolve: settle(resolve), reject: settle(reject) });
            this.#check();
        });
    }

    /** Checks whether the round is over, after everything that can continue has continued. */
    #check(): void {
        if (this.#isChecked) return;
        this.#isChecked = true;
        process.nextTick(() => {
            this.#isChecked = false;
            if (this.#open.size === 0) return;
            this.link.flush();
            if (this.link.native.endRound(this.call)) this.#roundOver();
        });
    }

    /** Rejects all open questions: the call is over. */
    end(error: McpError): void {
        for (const [number, reject] of this.#open) {
            this.link.giveUp(number);
            reject(error);
        }
        this.#open.clear();
    }
}
