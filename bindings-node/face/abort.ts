/** Functions to call when a signal aborts: one listener per signal, however many calls share it. */
const pending = new WeakMap<AbortSignal, Set<() => void>>();

/** @internal Calls `act` when the signal aborts, unless the returned function is called before. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
    const known = pending.get(signal);
    const acts = known ?? new Set();
    const all = () => {
        pending.delete(signal);
        for (const act of acts) act();
    };
    acts.add(act);
    if (known === undefined) {
        pending.set(signal, acts);
        signal.addEventListener('abort', all, { once: true });
    }
    return () => acts.delete(act);
}
