import type { Context } from './context';
import type { Completions } from './protocol';
/**
 * The values that an argument may take, best first, given how it begins and the other arguments, as far as they are
 * decided.
 */
export type Completer<State = any> = (value: string, args: Record<string, string>, context: Context<State>) => readonly string[] | Completions | Promise<readonly string[] | Completions>;
