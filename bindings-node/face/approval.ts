import type { Context } from './context';
import type { Approve, Clean } from './definitions';
import { ActionError, ToolError } from './errors';
import { readJson, writeJson } from './numbers';

type Handler = (args: any, context: Context<any>) => unknown;

/** @internal The hooks that run before a handler, by tool name. */
export interface Hooks {
    approval?: Readonly<Record<string, Approve>>;
    sanitise?: Readonly<Record<string, Clean>>;
}

/** @internal Runs the hooks of a tool before its handler; `misfit` returns why arguments break the schema. */
export function lookedAt(
    tool: string,
    { approval, sanitise }: Hooks,
    handler: Handler,
    misfit: (json: string) => string | null
): Handler {
    const [clean, approve] = [of(tool, sanitise), of(tool, approval)];
    if (clean === undefined && approve === undefined) return handler;
    return async (args, context) => {
        let json = context.argumentsJson;
        // Each hook gets a copy of its own, so that changes in place affect nothing else.
        const given = () => readJson(json, context.integers);
        if (clean !== undefined) {
            json = cleaned(await clean(tool, args, context));
            const why = misfit(json);
            if (why !== null) throw new ActionError('VALIDATION_ERROR', why);
            context.clean(json);
        }
        if (approve !== undefined) {
            const isApproved = await approve(tool, given(), context);
            if (typeof isApproved !== 'boolean') throw new TypeError(`approval of ${tool}: return true or false, not ${typeof isApproved}`);
            if (!isApproved) throw new ToolError('the call was not approved');
        }
        // The call was cancelled meanwhile: this error is not reported.
        if (!context.isLive) throw new ToolError('the call was cancelled');
        return handler(given(), context);
    };
}

function of<Hook>(tool: string, hooks: Readonly<Record<string, Hook>> = {}): Hook | undefined {
    return Object.hasOwn(hooks, tool) ? hooks[tool] : hooks['*'];
}

function cleaned(args: unknown): string {
    const json = typeof args === 'object' ? writeJson(args) : undefined;
    if (!json?.startsWith('{')) throw new TypeError('sanitise: return the arguments as an object');
    return json;
}
