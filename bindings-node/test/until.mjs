// Waits that end: what does not come in time fails, and says what it was.
import { setTimeout as pause } from 'node:timers/promises';

const PATIENCE_MS = 30_000;

/** Until it holds, which is looked at every 5 ms. */
export async function until(holds) {
    for (const end = Date.now() + PATIENCE_MS; !(await holds()); await pause(5)) if (Date.now() > end) vain(holds);
}

/** What a promise gives. */
export async function within(what, promise) {
    const over = new AbortController();
    const late = pause(PATIENCE_MS, what, over).then(vain);
    // Nobody waits for it where the promise was in time.
    late.catch(() => {});
    return Promise.race([promise, late]).finally(() => over.abort());
}

function vain(what) {
    throw new Error(`waited in vain for ${what}`);
}
