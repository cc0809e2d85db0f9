import type { Call } from './call';
import type { Context } from './context';
import type { Entry } from './entry';
import { Passing } from './passing';
import { refuse } from './results';
import { isThenable } from './thenable';

/** @internal Runs an operation, from its handler to its answer; `enter` runs the handler alone, within its span. */
export function carryOut(entry: Entry, text: string, context: Context<any>, enter?: (run: () => unknown) => unknown): void {
    let args: unknown;
    const fail = (error: unknown) => {
        context.settle();
        // A handler that throws because it was cancelled is not reported.
        if (!context.isLive) return;
        // While the call can still be asked who makes it.
        entry.failures.report(error, entry.what, new Passing(entry, args ?? {}, context) as Call);
        refuse(context, error, entry.isTool);
    };
    try {
        args = text === '' ? {} : context.read(text);
        const settle = (value: unknown) => {
            context.settle();
            if (!context.isLive) return;
            try {
                const [kind, text] = entry.answer(value, args);
                context.answer(kind, text, 0, entry.checked);
            } catch (error) {
                fail(error);
            }
        };
        const made = enter ? enter(() => entry.call(args, context)) : entry.call(args, context);
        if (isThenable(made)) made.then(settle, fail);
        else settle(made);
    } catch (error) {
        fail(error);
    }
}
