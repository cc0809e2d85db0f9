import type { Replies } from './call';
import type { Context } from './context';
import { FORMS, type Entry } from './entry';
import { ActionError, McpError } from './errors';
import { readJson, writeJson } from './numbers';

/** @internal A call on its way to its handler: a `Call`. */
export class Passing {
    #args: unknown;
    #shown: Readonly<Record<string, any>> | undefined;
    readonly #entry: Entry;
    readonly context: Context<any>;

    constructor(entry: Entry, args: unknown, context: Context<any>) {
        this.#entry = entry;
        this.#args = args;
        this.context = context;
    }

    get method(): keyof Replies {
        return FORMS[this.#entry.kind].method(this.#args);
    }

    get name(): string | undefined {
        return FORMS[this.#entry.kind].name(this.#args, this.#entry.key);
    }

    get arguments(): Readonly<Record<string, any>> {
        return (this.#shown ??= frozen(FORMS[this.#entry.kind].arguments(this.#args)) as Record<string, any>);
    }

    set arguments(given: Readonly<Record<string, any>>) {
        const json = typeof given === 'object' ? writeJson(given) : undefined;
        if (!json?.startsWith('{')) throw this.#misuse('the arguments are not an object');
        const { replace } = FORMS[this.#entry.kind];
        if (replace === undefined) throw this.#misuse('its arguments cannot be replaced');
        const args = readJson(json, this.context.integers);
        this.#check(json, args);
        this.context.clean(json);
        this.#args = replace(this.#args, args);
        this.#shown = undefined;
    }

    get principal(): string | undefined {
        return this.context.principal;
    }

    /** The arguments as the handler takes them. */
    get taken(): unknown {
        return this.#args;
    }

    #check(json: string, args: Record<string, unknown>): void {
        const { misfit, parameters } = this.#entry;
        if (misfit !== undefined) {
            const why = misfit(json);
            if (why !== null) throw new ActionError('VALIDATION_ERROR', why);
            return;
        }
        const known = parameters ?? Object.keys(this.arguments);
        const wrong = Object.keys(args).find(name => !known.includes(name) || typeof args[name] !== 'string');
        if (wrong !== undefined) throw this.#misuse(`${JSON.stringify(wrong)} is not one of its arguments (${known.join(', ')}), or is not text`);
    }

    #misuse(why: string): McpError {
        return new McpError('ERR_MCP_MISUSE', `${this.method} of ${JSON.stringify(this.name)}: ${why}`);
    }
}

/** A frozen copy of JSON: what is shown was checked, so the handler's own must not be changed through it. */
function frozen(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return Object.freeze(value.map(frozen));
    return Object.freeze(Object.fromEntries(Object.entries(value).map(([name, one]) => [name, frozen(one)])));
}
