/** Has the engine serve wherever a program would serve with an official SDK. */
import { watchModules } from '../sdk/private';
import { watchLoader } from './loader';
import { isJoined, JOIN, type Join } from './modules';
import { atEnd, isWanted } from './say';

const OFF = ['off', '0', 'no', 'false'];

/** @internal Whether the environment switches the engine off. */
export function isOff(): boolean {
    return OFF.includes((process.env.MCPBOLT ?? '').trim().toLowerCase());
}

/**
 * Has the engine serve stdin and stdout wherever this program would serve them with the official SDK. The modules of the
 * SDK are joined as the program loads them, whichever copy it is; those that it has loaded before stay as they are.
 * Does nothing the second time, and with `MCPBOLT=off` in the environment. `isFirst` says that the process was started to
 * run this package.
 */
export function install(isFirst = false): void {
    const global = globalThis as { [name: symbol]: unknown };
    if (isOff() || global[Symbol.for(JOIN)] !== undefined) return;
    // The module is loaded when a program brings an SDK.
    const join: Join = (classes, file) => (require('./seams') as typeof import('./seams')).join(classes, file);
    Object.defineProperty(globalThis, Symbol.for(JOIN), { value: join });
    watchModules((file, exports) => {
        if (isJoined(file)) join(exports as object, file);
    });
    watchLoader(isFirst);
    if (isWanted()) process.on('exit', atEnd);
}
