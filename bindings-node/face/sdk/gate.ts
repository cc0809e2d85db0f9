/** The releases of the official SDKs that this package knows, and what it does under each. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * @internal `accelerated`: the engine calls tools, resources and prompts, and answers lists. `carried`: the engine reads,
 * checks and writes the messages, and the SDK answers them.
 */
export type Treatment = 'accelerated' | 'carried';

/** @internal By package and minor release. The README's table is tested against this one. */
export const RELEASES: Readonly<Record<string, Readonly<Record<string, Treatment>>>> = {
    '@modelcontextprotocol/sdk': {
        '1.20': 'carried',
        '1.21': 'carried',
        '1.22': 'carried',
        '1.23': 'carried',
        '1.24': 'accelerated',
        '1.25': 'accelerated',
        '1.26': 'accelerated',
        '1.27': 'accelerated',
        '1.28': 'accelerated',
        '1.29': 'accelerated',
        '1.30': 'accelerated',
        '1.31': 'accelerated',
        '1.32': 'accelerated'
    },
    '@modelcontextprotocol/server': {
        '2.0': 'accelerated',
        '2.1': 'accelerated',
        '2.2': 'accelerated',
        '2.3': 'accelerated',
        '2.4': 'accelerated'
    },
    // Its class for `node:http`, beside the package above.
    '@modelcontextprotocol/node': {
        '2.0': 'accelerated',
        '2.1': 'accelerated'
    }
};

/** @internal An installed package. */
export interface Package {
    name: string;
    version: string;
    /** Its folder. */
    folder: string;
}

const packages = new Map<string, Package | undefined>();

/** @internal The package that a file belongs to; `undefined` if there is none, as for a file of a bundle without one. */
export function packageOf(file: string): Package | undefined {
    return packageIn(dirname(file));
}

function packageIn(folder: string): Package | undefined {
    if (packages.has(folder)) return packages.get(folder);
    const found = read(folder) ?? (dirname(folder) === folder ? undefined : packageIn(dirname(folder)));
    packages.set(folder, found);
    return found;
}

/** The package of a folder, if that folder has the `package.json` of one, with a name. */
function read(folder: string): Package | undefined {
    try {
        const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        return typeof name === 'string' ? { name, version: String(version), folder } : undefined;
    } catch {
        return undefined;
    }
}

/** @internal What this package does under that release; `undefined` if it does not know the release. */
export function known({ name, version }: Package): Treatment | undefined {
    const [, minor = ''] = /^(\d+\.\d+)\.\d+$/.exec(version) ?? [];
    return RELEASES[name]?.[minor];
}

/** @internal Says that a release is not known. */
export function unknown({ name, version }: Package): string {
    return `${name} ${version} is not known to this mcpbolt, which knows ${listed(name)}`;
}

/** @internal Why nothing can be accelerated under that release; `undefined` if it can. */
export function unfit(release: Package): string | undefined {
    if (known(release) === 'accelerated') return undefined;
    const { name, version } = release;
    return known(release) ? `${name} ${version} is not accelerated, only ${listed(name, 'accelerated')} are` : unknown(release);
}

/** @internal The minor releases of a package under which this package does that, as a sentence says them. */
export function listed(name: string, what?: Treatment): string {
    const names = Object.entries(RELEASES[name] ?? {}).filter(([, does]) => what === undefined || does === what);
    const all = names.map(([minor]) => minor);
    return [...(all.length > 1 ? [all.slice(0, -1).join(', ')] : []), ...all.slice(-1)].join(' and ') || 'no release of it';
}
