import type { Context } from './context';
import type { Outbound } from './link';
import type { NativeMade } from './native';
import type { Results } from './kept';

type Handler = (args: any, context: Context<any>, steps: Steps) => unknown;
type Called = (args: any, context: Context<any>) => unknown;
type Answer = [kind: Outbound, text: string];

/**
 * The steps that a call of an `atomic` tool has taken, each with how it is taken back: unless the call comes to a good
 * end, all are, the last one first, before it is answered.
 */
export class Steps {
    readonly #undos: (() => unknown)[] = [];
    #isUndone = false;

    /** Notes how a step that was just taken is taken back; at once, if the call has failed meanwhile. */
    taken(undo: () => unknown): void {
        if (this.#isUndone) undo();
        else this.#undos.push(undo);
    }

    /** @internal */
    async undo(failed: (error: unknown) => void): Promise<void> {
        this.#isUndone = true;
        for (const undo of this.#undos.splice(0).reverse()) {
            // One that fails leaves the others their turn.
            try {
                await undo();
            } catch (error) {
                failed(error);
            }
        }
    }
}

/** @internal How calls of a tool are kept, or undone. */
export interface Care {
    atomic: boolean | undefined;
    kept: Results | undefined;
    answer: (value: unknown) => Answer;
    isGood: (made: NativeMade) => boolean;
    /** Told of what taking steps back throws. */
    failed: (error: unknown) => void;
}

/** @internal What is the answer already. */
export class Made {
    constructor(readonly made: NativeMade) {}
}

/** @internal A handler behind what is kept of its results; what it did is undone where it fails. */
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
