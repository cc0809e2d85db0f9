import { dirname } from 'node:path';

/** With the variable `MCPBOLT_OPEN`, what is open, and where it was opened. */
const open = process.env.MCPBOLT_OPEN ? new Map<number, string>() : undefined;
let last = 0;

/** @internal Notes that something is open, until the returned function is called. */
export function noteOpen(what: string): () => void {
    if (open === undefined) return () => {};
    if (last === 0) process.once('exit', tell);
    const number = ++last;
    open.set(number, `${what}${place()}`);
    return () => void open.delete(number);
}

function tell(): void {
    for (const what of open!.values()) process.stderr.write(`mcpbolt: left open: ${what}\n`);
}

/** The first place of the program in the stack. */
function place(): string {
    const lines = (new Error().stack ?? '').split('\n').slice(1);
    const line = lines.find(line => !line.includes(dirname(__filename)) && !line.includes('node:') && !line.includes('(<anonymous>)'));
    return line === undefined ? '' : `, opened ${line.trim()}`;
}
