/** Has every ES module that the program loads pass `hooks.ts`. */
import nodeModule from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { watchReading } from '../sdk/private';
import { isAlone } from './alone';
import { endOf, loadNow } from './hooks';

/** The first minor releases, by major one, whose `registerHooks` works beside hooks of others on a thread of theirs. */
const BESIDE_OTHERS: Record<number, number> = { 22: 23, 24: 21 };

function isBesideOthers(): boolean {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    return minor >= (BESIDE_OTHERS[major] ?? Infinity);
}

interface Hooks {
    register?(...args: unknown[]): unknown;
    registerHooks?(hooks: { load: typeof loadNow }): { deregister(): void };
}

const HOOKS = pathToFileURL(join(__dirname, 'hooks.js'));

/**
 * @internal Watches the loader on the program's own thread where that works. Hooks on a thread of theirs (`module.register`)
 * cost each module that the program loads a message to that thread and back.
 */
export function watchLoader(isFirst: boolean): void {
    const { register, registerHooks } = nodeModule as Hooks;
    const works = isBesideOthers();
    if (register === undefined && registerHooks === undefined)
        throw new Error(`mcpbolt/register needs Node 20.6 or later, which has module.register; this is Node ${process.versions.node}`);
    const isOnThread = register === undefined || works || isAlone(isFirst);
    if (!isOnThread) return void register(HOOKS);
    const stop = registerHooks ? byHooks(registerHooks) : watchReading(endOf);
    if (register !== undefined && !works) follow(register, stop);
}

function byHooks(registerHooks: NonNullable<Hooks['registerHooks']>): () => void {
    const hooks = registerHooks({ load: loadNow });
    return () => hooks.deregister();
}

/** Goes to the thread of hooks as soon as the program has hooks of its own there, which then load all modules. */
function follow(register: NonNullable<Hooks['register']>, stop: () => void): void {
    let isThere = false;
    (nodeModule as Hooks).register = (...args) => {
        const result = register(...args);
        if (!isThere) {
            stop();
            register(HOOKS);
        }
        isThere = true;
        return result;
    };
    nodeModule.syncBuiltinESMExports();
}
