/**
 * A cache of tool results: see `kept` of a tool. It holds at most 1024 results, of 16 MiB together; the oldest are
 * evicted first.
 */
export declare class Results {
    /** How long results are cached, in ms. */
    readonly ttlMs: number;
    /**
     * Results of the scope `private`, the default, are cached per caller, and not cached if the caller is unknown;
     * `public` ones are shared by all callers.
     */
    constructor(ttlMs: number, { scope }?: {
        scope?: 'public' | 'private';
    });
    /** Removes the results of a tool. Results of calls in progress are not cached. */
    forget(tool: string): void;
    /** Removes the results of all tools. Results of calls in progress are not cached. */
    forgetAll(): void;
}
