import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, type Dirent } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { McpError } from './errors';
import type { NativeSkillFile } from './native';

const MANIFEST = 'SKILL.md';

/** What other files there are is text if they are UTF-8. */
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

/** @internal One skill, as the engine takes it. */
export interface SkillFolder {
    manifest: string;
    /** The folder that it lies in, below the one that was given. */
    within: string;
    files: NativeSkillFile[];
}

/** @internal The skill in a folder, or those below it. */
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

/** The folders with a manifest, none within another. */
function manifests(folder: string): string[] {
    const entries = visible(folder);
    if (entries.some(entry => entry.isFile() && entry.name === MANIFEST)) return [folder];
    return entries.filter(entry => entry.isDirectory()).flatMap(({ name }) => manifests(join(folder, name)));
}

/** Paths from the folder. */
function filesBelow(folder: string, path = ''): string[] {
    return visible(join(folder, path)).flatMap(entry => {
        const own = join(path, entry.name);
        if (entry.isDirectory()) return filesBelow(folder, own);
        return entry.isFile() ? [own] : [];
    });
}

/** In order; what begins with a dot, and links, are left out: nothing leads out of the folder. */
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
