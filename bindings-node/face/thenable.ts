/** @internal Whether something can be awaited. */
export function isThenable(value: any): value is PromiseLike<any> {
    return typeof value?.then === 'function';
}

/** @internal What `then` makes of a value: at once, unless it must be awaited. */
export function after(made: unknown, then: (value: any) => unknown): unknown {
    return isThenable(made) ? Promise.resolve(made).then(then) : then(made);
}
