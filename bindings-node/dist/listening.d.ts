import type { Change } from './protocol';
/**
 * Iterates over the changes that a server reports: `for await (const change of listening) …`. A change that is reported
 * again before it is read is returned once. Ends when the server ends the stream, when it is closed or when its signal
 * aborts; throws when the connection is lost.
 */
export declare class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
    #private;
    /**
     * Closes the stream, immediately on this side. Resolves when the server has been told and, before 2026-07-28, has
     * answered: requests sent after that find it no longer listening.
     */
    close(): Promise<void>;
    /** Whether the stream has ended. */
    get isClosed(): boolean;
    next(): Promise<IteratorResult<Change>>;
    return(): Promise<IteratorResult<Change>>;
    [Symbol.asyncIterator](): this;
    [Symbol.asyncDispose](): Promise<void>;
}
