import type { Context } from './context';
import { ActionError, ProtocolError, ToolError } from './errors';
import { readJson } from './numbers';
import type { Entry } from './entries';
import { refuse } from './results';

/** @internal Called with exceptions of handlers. */
export type Report = (error: unknown, what: string) => void;

/** @internal Runs an operation, from its handler to its answer. */
export function carryOut(entry: Entry, text: string, context: Context<any>, report: Report = print): void {
    const fail = (error: unknown) => {
        context.settle();
        // A handler that throws because it was cancelled is not reported.
        if (!context.isLive) return;
        refuse(context, error, entry.isTool);
        report(error, entry.what);
    };
    try {
        const args = text === '' ? {} : readJson(text, context.integers);
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
        const made = entry.call(args, context);
        const isPromise = typeof (made as Promise<unknown> | undefined)?.then === 'function';
        if (isPromise) (made as Promise<unknown>).then(settle, fail);
        else settle(made);
    } catch (error) {
        fail(error);
    }
}

/** @internal */
export function print(error: unknown, what: string): void {
    if (!(error instanceof ToolError || error instanceof ProtocolError || error instanceof ActionError)) console.error(`mcpbolt: ${what} failed:`, error);
}
