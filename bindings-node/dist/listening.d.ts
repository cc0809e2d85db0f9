import type { Change } from './protocol';
/**
 * Changes that a server tells of, one by one: `for await (const change of listening) …`. A change that is told again
 * before it is taken is told once. Ends when the server ends it, when it is closed, when its signal aborts; throws when
 * the connection is lost.
 */
export declare class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
    #private;
    /** Ends it; the server is told. */
    close(): void;
    /** Whether nothing is told any more. */
    get isClosed(): boolean;
    next(): Promise<IteratorResult<Change>>;
    return(): Promise<IteratorResult<Change>>;
    [Symbol.asyncIterator](): this;
    [Symbol.asyncDispose](): Promise<void>;
}
