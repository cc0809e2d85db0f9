import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, type Dirent } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { McpError } from './errors';
import type { NativeSkillFile } from './native';

const MANIFEST = 'SKILL.md';

/** Other files are text if they are UTF-8. */
const MIME_TYPES: Record<string, string> = {
    '.md': 'text/markdown',
    '.html': 'text/html',
    '.csv': 'text/csv',
    '.json': 'application/json',
    '.yaml': 'application/yaml',
    '.yml': 'application/yaml',
    '.xml': 'application/xml',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.jpg': 'image/jpeg',
    '.jpeg': 'image/jpeg',
    '.gif': 'image/gif',
    '.webp': 'image/webp',
    '.pdf': 'application/pdf'
};

/** @internal One skill, as passed to the engine. */
export interface SkillFolder {
    manifest: string;
    /** The path of its parent folder, relative to the given folder. */
    within: string;
    files: NativeSkillFile[];
}

/** @internal Reads the skill in a folder, or every skill below it. */
export function skillFolders(root: string): SkillFolder[] {
    const found = manifests(root).map(folder => {
        const files = filesBelow(folder).filter(path => path !== MANIFEST);
        const within = slashed(relative(root, join(folder, '..')));
        const read = (path: string) => {
            const bytes = readFileSync(join(folder, path));
            return { path: slashed(path), mimeType: mimeType(path, bytes), bytes };
        };
        const manifest = readFileSync(join(folder, MANIFEST), 'utf8');
        return { manifest, within: folder === root ? '' : within, files: files.map(read) };
    });
    if (found.length === 0) throw new McpError('ERR_MCP_MISUSE', `there is no ${MANIFEST} in ${root} or below it`);
    return found;
}

/** The folders with a manifest; folders below one of them are not searched. */
function manifests(folder: string): string[] {
    const entries = visible(folder);
    if (entries.some(entry => entry.isFile() && entry.name === MANIFEST)) return [folder];
    return entries.filter(entry => entry.isDirectory()).flatMap(({ name }) => manifests(join(folder, name)));
}

/** The paths of all files, relative to the folder. */
function filesBelow(folder: string, path = ''): string[] {
    return visible(join(folder, path)).flatMap(entry => {
        const own = join(path, entry.name);
        if (entry.isDirectory()) return filesBelow(folder, own);
        return entry.isFile() ? [own] : [];
    });
}

/**
 * The entries of a folder, sorted, without names that begin with a dot. Symbolic links count neither as files nor as
 * directories, so nothing leads out of the folder.
 */
function visible(folder: string): Dirent[] {
    const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !name.startsWith('.'));
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function mimeType(path: string, bytes: Uint8Array): string {
    return MIME_TYPES[extname(path).toLowerCase()] ?? (isUtf8(bytes) ? 'text/plain' : 'application/octet-stream');
}

function slashed(path: string): string {
    return path.split(sep).join('/');
}
