/** Lines on stderr about a program that runs unchanged. */
import { writeSync } from 'node:fs';
import nodeModule from 'node:module';
import { known, unknown, type Package } from '../sdk/gate';
import type { AccelerationReport } from '../sdk/report';

const NO = ['', '0', 'off', 'no', 'false'];
const told = new Set<string>();
/** The packages that servers are made with. */
const seen = new Map<string, Package>();
let isServed = false;

/** @internal Whether the environment asks for a report. */
export function isWanted(): boolean {
    return !NO.includes((process.env.MCPBOLT_REPORT ?? '').trim().toLowerCase());
}

const shown = new Set<string>();

/** Shows what is asked for, each line once: every session of a server says the same. */
function show(text: string): void {
    if (!shown.has(text)) line(text);
    shown.add(text);
}

function line(text: string): void {
    try {
        // Not by `process.stderr`, which programs replace.
        writeSync(2, `mcpbolt: ${text}\n`);
    } catch {
        // Stderr is closed.
    }
}

/** @internal Notes that the program has loaded a package; tells once if its release is not known. Returns whether it is. */
export function uses(release: Package): boolean {
    if (known(release) !== undefined) {
        seen.set(release.folder, release);
        return true;
    }
    const text = unknown(release);
    if (!told.has(text)) line(`${text}: the program runs as it would without mcpbolt`);
    told.add(text);
    return false;
}

/** The packages in use, each once. */
function releases(): string {
    return [...new Set([...seen.values()].map(({ name, version }) => `${name} ${version}`))].join(', ');
}

/** @internal Tells that the engine serves, and how it answers each part of the server. */
export function served(where: string, name: string, { native, sdk }: AccelerationReport): void {
    isServed = true;
    if (!isWanted()) return;
    show(`${where}: the engine serves '${name}' (${releases()})`);
    for (const what of native) show(`${what}: native`);
    for (const { what, why } of sdk) show(`${what}: kept, ${why}`);
}

/** @internal Tells that the engine carries the messages and the SDK's own sessions answer them. */
export function carried(where: string, reason: string): void {
    isServed = true;
    if (isWanted()) show(`${where}: the engine carries the messages, the sessions of ${releases()} answer them: ${reason}`);
}

/** @internal Tells that the program serves by itself. */
export function kept(where: string, reason: string): void {
    isServed = true;
    if (isWanted()) show(`${where}: the program serves by itself (${releases()}): ${reason}`);
}

/** @internal Tells of methods that the program has replaced and that see no messages. */
export function bypassed(names: string[]): void {
    if (isWanted()) for (const name of names) show(`stdio: ${name}, which the program replaced, sees no messages`);
}

function unseen(): string {
    const { features } = process as { features: { require_module?: boolean } };
    const isRequireSeen = !features.require_module || 'registerHooks' in nodeModule;
    return isRequireSeen ? 'one that is part of a bundle' : 'one that is part of a bundle, or in an ES module that was loaded by require() before Node 22.15,';
}

/** @internal Tells, when the program ends, if nothing was served through an SDK that can be seen. */
export function atEnd(): void {
    if (isServed || told.size > 0 || !isWanted()) return;
    const why = seen.size > 0 ? `of ${releases()}, it used nothing that serves` : `it loaded no package of an SDK; ${unseen()} cannot be seen`;
    line(`the program served by itself, if at all: ${why}`);
}
