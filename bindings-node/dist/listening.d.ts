import type { Change } from './protocol';
/**
 * Changes that a server tells of, one by one: `for await (const change of listening) …`. A change that is told again
 * before it is taken is told once. Ends when the server ends it, when it is closed, when its signal aborts; throws when
 * the connection is lost.
 */
export declare class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
    #private;
    /**
     * Ends it, at once for this side. Resolves when the server has been told, and before 2026-07-28 has answered: what is
     * asked from then on finds it not listening any more.
     */
    close(): Promise<void>;
    /** Whether nothing is told any more. */
    get isClosed(): boolean;
    next(): Promise<IteratorResult<Change>>;
    return(): Promise<IteratorResult<Change>>;
    [Symbol.asyncIterator](): this;
    [Symbol.asyncDispose](): Promise<void>;
}
