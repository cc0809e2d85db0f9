import { guarded } from './errors';
import { native, type NativeResultCache } from './native';

/**
 * A cache of tool results: see `kept` of a tool. It holds at most 1024 results, of 16 MiB together; the oldest are
 * evicted first.
 */
export class Results {
    /** @internal */
    readonly native: NativeResultCache;
    /** How long results are cached, in ms. */
    readonly ttl: number;

    /**
     * Results of the scope `private`, the default, are cached per caller, and not cached if the caller is unknown;
     * `public` ones are shared by all callers.
     */
    constructor(ttl: number, { scope = 'private' }: { scope?: 'public' | 'private' } = {}) {
        this.native = guarded(() => new native.ResultCache(ttl, scope === 'public'));
        this.ttl = ttl;
    }

    /** Removes the results of a tool. Results of calls in progress are not cached. */
    forget(tool: string): void {
        this.native.forget(tool);
    }

    /** Removes the results of all tools. Results of calls in progress are not cached. */
    forgetAll(): void {
        this.native.forgetAll();
    }
}
