import type { Context } from './context';
import type { Completions } from './protocol';
/**
 * Suggests values for an argument, best first, given the start of the value and the other arguments that are already
 * decided.
 */
export type Completer<State = any> = (value: string, args: Record<string, string>, context: Context<State>) => readonly string[] | Completions | Promise<readonly string[] | Completions>;
