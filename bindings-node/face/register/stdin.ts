/** This process's stdin and stdout, which the engine takes over. */
import { isMainThread } from 'node:worker_threads';
import type { Link } from '../link';
import type { Delegated } from '../sdk/delegated';

/** How long calls in flight may still take when stdin has ended, in ms. */
const GRACE = 5000;
/** How long the process waits at its exit for the engine to write what it was given, in ms. */
const LAST_WRITES = 10;

/** @internal Why the engine cannot serve stdin and stdout; `undefined` if it can. */
export function whyNotStdio(): string | undefined {
    if (!isMainThread) return 'it runs in a worker thread';
    return process.stdin.readableFlowing === null ? undefined : 'the program has begun to read stdin';
}

/** @internal Has the engine serve; `closed` resolves when it has ended. */
export async function begin(delegated: Delegated, onerror: (error: Error) => void): Promise<{ link: Link; closed: Promise<unknown> }> {
    const { link, ended } = await delegated.serveStdio(GRACE);
    // The SDK would write answers at once, also those given just before the process exits.
    const exit = () => {
        link.flush();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITES);
    };
    process.on('exit', exit);
    return { link, closed: ended.catch(onerror).finally(() => process.off('exit', exit)) };
}

/** @internal Ends stdin for those who listen to it. */
export function endStdin(): void {
    process.stdin.push(null);
    process.stdin.resume();
}
