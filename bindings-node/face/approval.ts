import type { Context } from './context';
import type { Approve, Clean } from './definitions';
import { ActionError, ToolError } from './errors';
import { readJson, writeJson } from './numbers';

type Handler = (args: any, context: Context<any>) => unknown;

/** @internal Those who look at the calls of a tool, by its name. */
export interface Hooks {
    approval?: Readonly<Record<string, Approve>>;
    sanitise?: Readonly<Record<string, Clean>>;
}

/** @internal A handler behind those who look at the calls of the tool first; `misfit` says why arguments break its schema. */
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
        // What one of them changes in place is nobody else's.
        const given = () => readJson(json, context.integers);
        if (clean !== undefined) {
            json = cleaned(await clean(tool, args, context));
            const why = misfit(json);
            if (why !== null) throw new ActionError('VALIDATION_ERROR', why);
            context.clean(json);
        }
        if (approve !== undefined) {
            const isApproved = await approve(tool, given(), context);
            if (typeof isApproved !== 'boolean') throw new TypeError(`what approves ${tool} gave no boolean`);
            if (!isApproved) throw new ToolError('the call was not approved');
        }
        // It was given up meanwhile: nobody hears of this.
        if (!context.isLive) throw new ToolError('the call was cancelled');
        return handler(given(), context);
    };
}

function of<Hook>(tool: string, hooks: Readonly<Record<string, Hook>> = {}): Hook | undefined {
    return Object.hasOwn(hooks, tool) ? hooks[tool] : hooks['*'];
}

function cleaned(args: unknown): string {
    const json = typeof args === 'object' ? writeJson(args) : undefined;
    if (!json?.startsWith('{')) throw new TypeError('what cleans arguments gave no object');
    return json;
}
