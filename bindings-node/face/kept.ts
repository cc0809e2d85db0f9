/**
 * @internal A callback for the engine that calls `callback` as long as somebody else keeps it. The engine's hold on a function is none
 * that the garbage collector sees through: a function that leads to the object that holds it would keep both forever.
 */
export function weakly<Args extends readonly unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    const weak = new WeakRef(callback);
    return (...args) => weak.deref()?.(...args);
}
