/** Has the engine serve wherever a program would serve with an official SDK. */
import nodeModule from 'node:module';
import { join as joined } from 'node:path';
import { pathToFileURL } from 'node:url';
import { watchModules } from '../sdk/private';
import { loadNow } from './hooks';
import { isJoined, JOIN, type Join } from './modules';
import { atEnd, isWanted } from './say';

const OFF = ['off', '0', 'no', 'false'];

/** @internal Whether the environment switches the engine off. */
export function isOff(): boolean {
    return OFF.includes((process.env.MCPBOLT ?? '').trim().toLowerCase());
}

/** The first minor releases, by major one, whose `registerHooks` works beside hooks of others on a thread of theirs. */
const BESIDE_OTHERS: Record<number, number> = { 22: 23, 24: 21 };

/** Whether hooks run on the program's own thread, which starts faster. */
function areOnThread(): boolean {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    return minor >= (BESIDE_OTHERS[major] ?? Infinity);
}

interface Hooks {
    register?(url: string | URL): void;
    registerHooks?(hooks: { load: typeof loadNow }): void;
}

/**
 * Has the engine serve stdin and stdout wherever this program would serve them with the official SDK. The modules of the
 * SDK are joined as the program loads them, whichever copy it is; those that it has loaded before stay as they are.
 * Does nothing the second time, and with `MCPBOLT=off` in the environment.
 */
export function install(): void {
    const global = globalThis as { [name: symbol]: unknown };
    if (isOff() || global[Symbol.for(JOIN)] !== undefined) return;
    const { register, registerHooks } = nodeModule as Hooks;
    if (register === undefined) throw new Error(`mcpbolt/register needs Node 20.6 or later, which has module.register; this is Node ${process.versions.node}`);
    // The module is loaded when a program brings an SDK.
    const join: Join = (classes, file) => (require('./seams') as typeof import('./seams')).join(classes, file);
    Object.defineProperty(globalThis, Symbol.for(JOIN), { value: join });
    watchModules((file, exports) => {
        if (isJoined(file)) join(exports as object, file);
    });
    if (registerHooks && areOnThread()) registerHooks({ load: loadNow });
    else register(pathToFileURL(joined(__dirname, 'hooks.js')));
    if (isWanted()) process.on('exit', atEnd);
}
