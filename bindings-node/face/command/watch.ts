/** Watches the sources of a server, by looking at them. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Time between two looks, in ms. */
const PAUSE = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;

/** @internal When each source was changed, and its size. */
export type Looked = ReadonlyMap<string, string>;

/** @internal Looks at the sources in these folders and their subfolders, except installed packages and hidden folders. */
export function looked(folders: readonly string[]): Looked {
    const found = new Map<string, string>();
    for (const folder of folders) look(folder, found);
    return found;
}

function look(folder: string, found: Map<string, string>): void {
    for (const entry of attempted(() => readdirSync(folder, { withFileTypes: true })) ?? []) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) {
            if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) look(path, found);
        } else if (SOURCE.test(entry.name)) {
            const status = attempted(() => statSync(path));
            if (status) found.set(path, `${status.mtimeMs} ${status.size}`);
        }
    }
}

/** Reads a file or folder; returns `undefined` if it is gone, or may not be read. */
function attempted<T>(read: () => T): T | undefined {
    try {
        return read();
    } catch {
        return undefined;
    }
}

/** @internal The sources that changed since the look before, each time that some did. */
export async function* changes(folders: readonly string[], before: Looked, signal: AbortSignal): AsyncGenerator<string[], void> {
    for (;;) {
        await pause(PAUSE, undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
        const now = looked(folders);
        const paths = [...new Set([...before.keys(), ...now.keys()])].filter(path => before.get(path) !== now.get(path));
        before = now;
        if (paths.length > 0) yield paths;
    }
}
