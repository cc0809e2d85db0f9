import type { Approve, Clean } from './definitions';
import type { Called } from './entry';
import { ActionError, ToolError } from './errors';
import { readJson, writeJson } from './numbers';

/** @internal The hooks that run before a handler, by tool name. */
export interface Hooks {
    approval?: Readonly<Record<string, Approve>>;
    sanitise?: Readonly<Record<string, Clean>>;
}

/** @internal Cleans the arguments of a tool; `misfit` returns why arguments break the schema. */
export function cleaning(tool: string, { sanitise }: Hooks, rest: Called, misfit: (json: string) => string | null): Called {
    const clean = of(tool, sanitise);
    if (clean === undefined) return rest;
    return async (args, context) => {
        const json = cleaned(await clean(tool, args, context));
        const why = misfit(json);
        if (why !== null) throw new ActionError('VALIDATION_ERROR', why);
        context.clean(json);
        if (!context.isLive) throw cancelled();
        return rest(readJson(json, context.integers), context);
    };
}

/** @internal Asks whether a call of a tool may run. */
export function approving(tool: string, { approval }: Hooks, rest: Called): Called {
    const approve = of(tool, approval);
    if (approve === undefined) return rest;
    return async (_, context) => {
        if (!context.isLive) throw cancelled();
        // A copy of its own, so that its changes in place affect nothing else.
        const own = readJson(context.argumentsJson, context.integers);
        const isApproved = await approve(tool, own, context);
        if (typeof isApproved !== 'boolean') throw new TypeError(`approval of ${tool}: return true or false, not ${typeof isApproved}`);
        if (!isApproved) throw new ToolError('the call was not approved');
        if (!context.isLive) throw cancelled();
        // Read anew: nobody can have changed these since the hook saw their copy.
        return rest(readJson(context.argumentsJson, context.integers), context);
    };
}

/** @internal The call was cancelled meanwhile: this error is not reported. */
export const cancelled = () => new ToolError('the call was cancelled');

function of<Hook>(tool: string, hooks: Readonly<Record<string, Hook>> = {}): Hook | undefined {
    return Object.hasOwn(hooks, tool) ? hooks[tool] : hooks['*'];
}

function cleaned(args: unknown): string {
    const json = typeof args === 'object' ? writeJson(args) : undefined;
    if (!json?.startsWith('{')) throw new TypeError('sanitise: return the arguments as an object');
    return json;
}
