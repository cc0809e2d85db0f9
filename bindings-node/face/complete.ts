import type { Context } from './context';
import { Outbound } from './link';
import type { Completions } from './protocol';

/**
 * Suggests values for an argument, best first, given the start of the value and the other arguments that are already
 * decided.
 */
export type Completer<State = any> = (
    value: string,
    args: Record<string, string>,
    context: Context<State>
) => readonly string[] | Completions | Promise<readonly string[] | Completions>;

/** @internal The params of `completion/complete`. */
export interface CompletionParams {
    ref: { type: string; name?: string; uri?: string };
    argument: { name: string; value: string };
    context?: { arguments?: Record<string, string> };
}

/** Maximum number of values in one answer. */
const MAX_VALUES = 100;

/** @internal The completers of prompts and resource templates. */
export class Completers {
    readonly #of = new Map<string, Map<string, Completer>>();

    /** `kind` is `prompt` or `resource`; `name` is the name of a prompt, or a URI template. */
    add(kind: string, name: string, completers: readonly (readonly [string, Completer | undefined])[]): void {
        const given = completers.filter((pair): pair is [string, Completer] => pair[1] !== undefined);
        if (given.length > 0) this.#of.set(`${kind} ${name}`, new Map(given));
        else this.remove(kind, name);
    }

    remove(kind: string, name: string): void {
        this.#of.delete(`${kind} ${name}`);
    }

    call({ ref, argument, context }: CompletionParams, call: Context<any>): ReturnType<Completer> {
        const target = ref.type === 'ref/prompt' ? `prompt ${ref.name}` : `resource ${ref.uri}`;
        const completer = this.#of.get(target)?.get(argument.name);
        return completer?.(argument.value, context?.arguments ?? {}, call) ?? [];
    }
}

/** @internal */
export function completionReply(found: readonly string[] | Completions): Completions {
    const isList = (found: readonly string[] | Completions): found is readonly string[] => Array.isArray(found);
    const { values, total, hasMore }: Completions = isList(found) ? { values: [...found] } : found;
    const shown = values.slice(0, MAX_VALUES);
    const known = total ?? values.length;
    return { values: shown, total: known, hasMore: hasMore ?? known > shown.length };
}

/** @internal */
export function completionAnswer(found: readonly string[] | Completions): [kind: Outbound, text: string] {
    return [Outbound.Object, JSON.stringify({ completion: completionReply(found) })];
}
