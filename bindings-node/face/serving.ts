import { isMainThread } from 'node:worker_threads';
import { onAbort } from './abort';
import type { RunReport } from './definitions';
import type { Link } from './link';

/** What a server on an address has done so far. */
export interface Counts {
    openConnections: number;
    connections: number;
    /** WebSockets; they are connections, too. */
    webSockets: number;
    httpRequests: number;
    /** Those of them that were answered with a status of 400 or more. */
    httpErrors: number;
    /** Without those of TLS, as the next. */
    bytesRead: number;
    bytesWritten: number;
}

/** A server on an address. */
export class Serving implements AsyncDisposable {
    /** Where it listens: with the port that the system chose, where the address asked for port 0. */
    readonly address: string;
    /** How it ended, once it has. */
    readonly ended: Promise<RunReport>;
    readonly #link: Link;

    /** @internal */
    constructor(address: string, ended: Promise<RunReport>, link: Link) {
        this.address = address;
        this.ended = ended;
        this.#link = link;
    }

    /** What it has done so far. */
    get counts(): Counts {
        return JSON.parse(this.#link.native.counts()!);
    }

    /** Takes no new connection; what is in flight may still be answered. Resolves when it has ended. */
    close(): Promise<RunReport> {
        this.#link.native.stop();
        return this.ended;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** How many servers hear them. */
let hearing = 0;

/**
 * The engine hears signals also while the loop is busy, and passes them on to the handler that it found: that must be
 * Node's for a listener, not the one that ends the process. The listener stays when no server is left: with the last
 * listener Node takes its own handler back, and with it the engine's, which is set once.
 */
function listener(signal: NodeJS.Signals): void {
    if (hearing > 0 || process.listenerCount(signal) > 1) return;
    process.off(signal, listener);
    process.kill(process.pid, signal);
}

/** @internal Whether nobody else listens for the signals that end a process. */
export function areUnheard(): boolean {
    return isMainThread && SIGNALS.every(signal => process.listeners(signal).every(each => each === listener));
}

/** @internal From now on the process does not end by signals, until the function that this gives is called. */
export function holdSignals(): () => void {
    for (const signal of SIGNALS) if (!process.listeners(signal).includes(listener)) process.on(signal, listener);
    hearing++;
    // Of the signal that has ended a server this loop is told after that, by the end of its turn.
    return () => void setImmediate(() => hearing--);
}

/** @internal Calls `stop` when a signal of the caller's is aborted, or was, until the function that this gives is called. */
export function stopOn(signal: AbortSignal | undefined, stop: () => void): () => void {
    if (signal?.aborted) stop();
    return signal && !signal.aborted ? onAbort(signal, stop) : () => {};
}
