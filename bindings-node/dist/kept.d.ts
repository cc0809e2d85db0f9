/**
 * Results of tools that are kept for so long: see `kept` of a tool. At most 1024 are held, of 16 MiB together; the oldest
 * gives way.
 */
export declare class Results {
    /** For how long, in ms. */
    readonly ttlMs: number;
    /**
     * Those of the scope `private` are for who asked alone, and not kept where nobody knows who that is, which is the
     * default; `public` ones are for everybody.
     */
    constructor(ttlMs: number, { scope }?: {
        scope?: 'public' | 'private';
    });
    /** Forgets those of a tool. What a handler that is under way meanwhile comes to is not kept. */
    forget(tool: string): void;
    /** The same for those of all tools. */
    forgetAll(): void;
}
