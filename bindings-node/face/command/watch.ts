/** Watches the sources of a server, by looking at them. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Time between two looks, in ms: longer if a look takes long, so that looking is at most a fifth of the time. */
const PAUSE = 500;
const PAUSES = 4;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;
/** @internal So many folders and sources are looked at; those nearest to the top come first. */
export const MAX_LOOKED = 10_000;

/** @internal When each source was changed, and its size. */
export type Looked = ReadonlyMap<string, string>;

/**
 * @internal Looks at the sources in these folders and their subfolders, except installed packages and hidden folders.
 * `beyond` is called if there are more than `max` folders and sources.
 */
export async function looked(folders: readonly string[], beyond: () => void = () => {}, max = MAX_LOOKED): Promise<Looked> {
    const found = new Map<string, string>();
    const queue = [...folders];
    const isFull = () => found.size + queue.length >= max;
    for (let next = 0; next < queue.length; next++) {
        const folder = queue[next]!;
        for (const entry of (await attempted(readdir(folder, { withFileTypes: true }))) ?? []) {
            const isFolder = entry.isDirectory();
            if (isFolder ? !isWatched(entry.name) : !SOURCE.test(entry.name)) continue;
            if (isFull()) return beyond(), found;
            const path = join(folder, entry.name);
            if (isFolder) queue.push(path);
            else {
                const status = await attempted(stat(path));
                if (status) found.set(path, `${status.mtimeMs} ${status.size}`);
            }
        }
    }
    return found;
}

function isWatched(folder: string): boolean {
    return folder !== 'node_modules' && !folder.startsWith('.');
}

/** Reads a file or folder; `undefined` if it does not exist or may not be read. */
function attempted<T>(read: Promise<T>): Promise<T | undefined> {
    return read.catch(() => undefined);
}

/** @internal The sources that changed since the look before, each time that some did. */
export async function* changes(folders: readonly string[], before: Looked, signal: AbortSignal): AsyncGenerator<string[], void> {
    for (let took = 0; ; ) {
        await pause(Math.max(PAUSE, PAUSES * took), undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
        const begin = performance.now();
        const now = await looked(folders);
        took = performance.now() - begin;
        const paths = [...new Set([...before.keys(), ...now.keys()])].filter(path => before.get(path) !== now.get(path));
        before = now;
        if (paths.length > 0) yield paths;
    }
}
