import { isMainThread } from 'node:worker_threads';
import { onAbort } from './abort';
import type { RunReport } from './definitions';
import type { Failures } from './failures';
import type { Link } from './link';

/** @internal How long calls in flight may take after the end of stdin or a signal, in ms, by default. */
export const GRACE = 5000;

/** Counters of a server at an address since it started. */
export interface Counts {
    openConnections: number;
    connections: number;
    /** WebSocket connections; `connections` includes them. */
    webSockets: number;
    httpRequests: number;
    /** HTTP requests answered with a status of 400 or more; `httpRequests` includes them. */
    httpErrors: number;
    /** Bytes received, without TLS overhead; likewise `bytesWritten`. */
    bytesRead: number;
    bytesWritten: number;
}

/** A server that listens at an address. */
export class Serving implements AsyncDisposable {
    /** The address, with the port that the system chose if port 0 was requested. */
    readonly address: string;
    readonly #ended: Promise<RunReport>;
    readonly #link: Link;
    #isAwaited = false;

    /** @internal A failure of the end is reported if nobody has asked for the end. */
    constructor(address: string, ended: Promise<RunReport>, link: Link, failures: Failures) {
        this.address = address;
        this.#ended = ended;
        this.#link = link;
        ended.catch(error => this.#isAwaited || failures.report(error, 'the end of the server'));
    }

    /** Resolves with a report once the server has ended; rejects with what `lifespan.stop` throws. */
    get ended(): Promise<RunReport> {
        this.#isAwaited = true;
        return this.#ended;
    }

    /** The counters so far. */
    get counts(): Counts {
        return JSON.parse(this.#link.native.counts()!);
    }

    /** Stops accepting connections; calls in flight may still be answered. Resolves when the server has ended, as `ended` does. */
    close(): Promise<RunReport> {
        this.#link.native.stop();
        return this.ended;
    }

    /** Lets the process end while the server listens, as `unref` of a `node:net` server does. */
    unref(): this {
        this.#link.keepAlive(false);
        return this;
    }

    /** Keeps the process alive while the server listens, which is the default. */
    ref(): this {
        this.#link.keepAlive(true);
        return this;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** How many servers hold the signals. */
let hearing = 0;

/**
 * Keeps Node's own signal handler installed. The engine receives signals even while the event loop is busy, and chains
 * to the handler that it found: this must be the one that Node installs for listeners, not the one that ends the
 * process. The listener stays when no server is left: with the last listener Node removes its handler, and the engine's
 * with it, which is installed only once.
 */
function listener(signal: NodeJS.Signals): void {
    if (hearing > 0 || process.listenerCount(signal) > 1) return;
    process.off(signal, listener);
    process.kill(process.pid, signal);
}

/** @internal Whether nothing else listens for the signals that end a process. */
export function areUnheard(): boolean {
    return isMainThread && SIGNALS.every(signal => process.listeners(signal).every(each => each === listener));
}

/** @internal Stops signals from ending the process, until the returned function is called. */
export function holdSignals(): () => void {
    for (const signal of SIGNALS) if (!process.listeners(signal).includes(listener)) process.on(signal, listener);
    hearing++;
    // This loop hears of the signal that ended a server only later, by the end of its current turn.
    return () => void setImmediate(() => hearing--);
}

/** @internal Calls `stop` when the caller's signal aborts or has aborted, until the returned function is called. */
export function stopOn(signal: AbortSignal | undefined, stop: () => void): () => void {
    if (signal?.aborted) stop();
    return signal && !signal.aborted ? onAbort(signal, stop) : () => {};
}
