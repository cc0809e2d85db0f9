import type { Change } from './protocol';

/**
 * Iterates over the changes that a server reports: `for await (const change of listening) …`. A change that is reported
 * again before it is read is returned once. Ends when the server ends the stream, when it is closed or when its signal
 * aborts; throws when the connection is lost.
 */
export class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
    /** Unread changes in order, by their subject. */
    readonly #changes = new Map<string, Change>();
    readonly #takers: { resolve: (result: IteratorResult<Change>) => void; reject: (error: unknown) => void }[] = [];
    readonly #stop: () => void | Promise<void>;
    readonly #onEnd: (() => void)[] = [];
    #isOver = false;
    #failure: unknown;

    /** @internal `stop` tells the server, and never rejects. */
    constructor(stop: () => void | Promise<void>) {
        this.#stop = stop;
    }

    /**
     * Closes the stream, immediately on this side. Resolves when the server has been told and, before 2026-07-28, has
     * answered: requests sent after that find it no longer listening.
     */
    async close(): Promise<void> {
        if (this.#isOver) return;
        this.end();
        await this.#stop();
    }

    /** Whether the stream has ended. */
    get isClosed(): boolean {
        return this.#isOver;
    }

    async next(): Promise<IteratorResult<Change>> {
        for (const [about, change] of this.#changes) {
            this.#changes.delete(about);
            return { done: false, value: change };
        }
        if (this.#failure !== undefined) {
            const failure = this.#failure;
            this.#failure = undefined;
            throw failure;
        }
        if (this.#isOver) return { done: true, value: undefined };
        return new Promise((resolve, reject) => this.#takers.push({ resolve, reject }));
    }

    async return(): Promise<IteratorResult<Change>> {
        void this.close();
        this.#changes.clear();
        return { done: true, value: undefined };
    }

    [Symbol.asyncIterator](): this {
        return this;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    /** @internal */
    tell(change: Change): void {
        if (this.#isOver) return;
        const taker = this.#takers.shift();
        if (taker) taker.resolve({ done: false, value: change });
        else this.#changes.set(change.type === 'resourceUpdated' ? change.uri : change.type, change);
    }

    /** @internal Calls `act` when the stream ends. */
    onEnd(act: () => void): void {
        this.#onEnd.push(act);
    }

    /** @internal Ends the stream; `failure` is the reason if it ended unexpectedly. */
    end(failure?: unknown): void {
        if (this.#isOver) return;
        this.#isOver = true;
        for (const act of this.#onEnd.splice(0)) act();
        const takers = this.#takers.splice(0);
        if (failure !== undefined && takers.length === 0) this.#failure = failure;
        for (const { resolve, reject } of takers) {
            if (failure !== undefined) reject(failure);
            else resolve({ done: true, value: undefined });
        }
    }
}
