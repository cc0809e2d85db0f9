import { approving, cancelled, cleaning, type Hooks } from './approval';
import type { Call, Middleware, Next } from './call';
import type { Called, Entry } from './entry';
import { Passing } from './passing';
import { standsFor } from './replies';
import { after } from './thenable';

/**
 * @internal The entry with the layers of a server around it: first the hook that cleans arguments, then middleware, then
 * approval, so that what is approved is what runs.
 */
export function layered(entry: Entry, hooks: Hooks, middleware: readonly Middleware[]): Entry {
    const { reply, misfit } = entry;
    let call = misfit ? approving(entry.key, hooks, entry.call) : entry.call;
    if (reply) for (const one of [...middleware].reverse()) call = around(entry, reply, one, call);
    if (misfit) call = cleaning(entry.key, hooks, call, misfit);
    return call === entry.call ? entry : { ...entry, call };
}

/** One middleware around the rest of the way. */
function around(entry: Entry, reply: NonNullable<Entry['reply']>, middleware: Middleware, rest: Called): Called {
    return (args, context) => {
        const passing = new Passing(entry, args, context);
        let value: unknown;
        let given: unknown;
        const settle = (made: unknown) => {
            value = made;
            return (given = reply(made, passing.taken, context));
        };
        const carryOn = async () => {
            if (!context.isLive) throw cancelled();
            return settle(await rest(passing.taken, context));
        };
        const next = () => {
            const result = carryOn();
            // A middleware that does not await it must not end the process.
            result.catch(() => {});
            return result;
        };
        const finish = (returned: unknown) => (returned === given && standsFor(given, value) ? value : returned);
        return after(middleware(passing as Call, next as Next), finish);
    };
}
