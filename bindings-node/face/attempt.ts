import type { Context } from './context';
import type { Outbound } from './link';
import type { NativeEncoded } from './native';
import type { Results } from './resultcache';

type Handler = (args: any, context: Context<any>, steps: Steps) => unknown;
type Called = (args: any, context: Context<any>) => unknown;
type Answer = [kind: Outbound, text: string];

/**
 * The undo log of one call of an `atomic` tool. Unless the call succeeds, all steps are undone, the last one first,
 * before it is answered.
 */
export class Steps {
    readonly #undos: (() => unknown)[] = [];
    #isUndone = false;

    /** Records how to undo the step that was just taken; undoes it at once if the call has already failed. */
    taken(undo: () => unknown): void {
        if (this.#isUndone) undo();
        else this.#undos.push(undo);
    }

    /** @internal */
    async undo(failed: (error: unknown) => void): Promise<void> {
        this.#isUndone = true;
        for (const undo of this.#undos.splice(0).reverse()) {
            // If one fails, the others are still undone.
            try {
                await undo();
            } catch (error) {
                failed(error);
            }
        }
    }
}

/** @internal How results of a tool are cached, and failed calls undone. */
export interface Care {
    atomic: boolean | undefined;
    kept: Results | undefined;
    answer: (value: unknown) => Answer;
    isGood: (made: NativeEncoded) => boolean;
    /** Called with each exception of an undo function. */
    failed: (error: unknown) => void;
}

/** @internal A result that is encoded already. */
export class Made {
    constructor(readonly made: NativeEncoded) {}
}

/** @internal Wraps a handler: returns cached results, and undoes the steps of a call that fails. */
export function attempted(tool: string, handler: Handler, { atomic, kept, answer, isGood, failed }: Care): Called {
    if (!atomic && kept === undefined) return handler as Called;
    return async (args, context) => {
        const asked = kept?.native.ask(tool, context.argumentsJson, context.principal);
        const found = asked?.found();
        if (found) return new Made(found);
        const steps = new Steps();
        try {
            const [kind, text] = answer(await handler(args, context, steps));
            const made = { kind, text };
            if (context.isLive && isGood(made)) asked?.keep(made);
            else await steps.undo(failed);
            return new Made(made);
        } catch (error) {
            await steps.undo(failed);
            throw error;
        }
    };
}

/** @internal */
export const answered = (answer: (value: unknown) => Answer) => (value: unknown): Answer =>
    value instanceof Made ? [value.made.kind, value.made.text] : answer(value);
