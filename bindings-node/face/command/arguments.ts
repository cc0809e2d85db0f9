/** The arguments of `mcpbolt run` and `mcpbolt dev`. */
import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** @internal The arguments are wrong, or name no server: exit status 2. */
export class Wrong extends Error {}

const OPTIONS = {
    http: { type: 'string' },
    at: { type: 'string' },
    grace: { type: 'string' },
    anonymous: { type: 'boolean' },
    report: { type: 'boolean' },
    watch: { type: 'string', multiple: true },
    workers: { type: 'string' },
    help: { type: 'boolean', short: 'h' }
} as const;

/** @internal Says what the options do that `run` and `dev` share. */
export const SHARED = `  --http [HOST]:PORT[/PATH]  serve over HTTP there; at 127.0.0.1 and /mcp
  --at ADDRESS               serve at any address: unix:/run/mcp.sock, tcp:localhost:7000, ws:… (also without --at)
  --anonymous                allow an address that other machines can reach, although clients are not authenticated
  --grace SECONDS            the time that calls in flight may take at shutdown (5)
  --report                   write to stderr, at the end, what the engine did not serve itself, and why`;

/** @internal */
export interface Arguments {
    /** The file of the server, and perhaps `:NAME`. */
    target: string;
    /** The file alone. */
    file: string;
    /** The export. */
    name: string | undefined;
    address: string;
    anonymous: boolean;
    graceMs: number;
    report: boolean;
    watch: readonly string[];
    /** How many processes serve. */
    workers: number | undefined;
}

/** @internal Reads the arguments; undefined if they ask for help. */
export function argumentsOf(words: readonly string[], command: 'run' | 'dev'): Arguments | undefined {
    const { values, positionals } = parsed(words);
    if (values.help) return undefined;
    const [target, place, ...more] = positionals;
    if (target === undefined) throw new Wrong('name the file that exports the server');
    if (more.length > 0) throw new Wrong(`${more[0]} is one argument too many`);
    if (values.watch && command !== 'dev') throw new Wrong('--watch is an option of mcpbolt dev');
    if (values.workers && command !== 'run') throw new Wrong('--workers is an option of mcpbolt run');
    const places = [values.http && addressOf(values.http), values.at, place].filter(one => one !== undefined);
    if (places.length > 1) throw new Wrong('give one address');
    const [, file, name] = (!isFile(target) && /^(.+):([\p{L}_$][\p{L}\p{N}_$.]*)$/u.exec(target)) || [, target];
    if (!isFile(file!)) throw new Wrong(`there is no file ${file}`);
    const { anonymous = false, report = false, watch = [] } = values;
    const workers = values.workers === undefined ? undefined : Number(values.workers);
    return { target, file: file!, name, address: places[0] ?? 'stdio:', anonymous, graceMs: graceOf(values.grace), report, watch, workers };
}

function parsed(words: readonly string[]) {
    try {
        return parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true });
    } catch (error) {
        // The first sentence says what is wrong.
        throw new Wrong((error as Error).message.split('. ')[0]);
    }
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

function addressOf(http: string): string {
    const [, host, port, path] = /^(?:(.*):)?(\d+)(\/.*)?$/.exec(http) ?? [];
    if (port === undefined) throw new Wrong(`--http ${http} is not [HOST]:PORT[/PATH]`);
    return `http://${host || '127.0.0.1'}:${port}${path ?? '/mcp'}`;
}

function graceOf(text = '5'): number {
    const seconds = Number(text);
    if (text.trim() === '' || !(seconds >= 0 && seconds <= 86_400)) throw new Wrong(`--grace ${text} is not a number of seconds up to a day`);
    return seconds * 1000;
}
