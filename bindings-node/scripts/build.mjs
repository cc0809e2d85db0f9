// Builds the package: the native module, the types of its exports (`face/binding.d.ts`), and `dist` from `face`.
// `node scripts/build.mjs [--debug | --built FOLDER]`: with a folder of cargo's output, the module is taken from there.
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(folder);
const { debug, built } = parseArgs({ options: { debug: { type: 'boolean' }, built: { type: 'string' } } }).values;
const run = (program, ...args) => execFileSync(program, args, { cwd: root, stdio: ['ignore', 2, 2] });

if (built === undefined) {
    const options = debug ? [] : ['--release', '--', '-C', 'strip=debuginfo'];
    run(process.env.CARGO ?? 'cargo', 'rustc', '--quiet', '-p', 'mcpbolt-node', '--lib', ...options);
}
const output = built ? resolve(built) : join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), debug ? 'debug' : 'release');

const library = { darwin: 'libmcpbolt_node.dylib', win32: 'mcpbolt_node.dll' }[process.platform] ?? 'libmcpbolt_node.so';
const module = join(folder, `mcpbolt.${process.platform}-${process.arch}.node`);
// Replaced in one step: a process that has the old one open keeps it.
copyFileSync(join(output, library), `${module}.new`);
renameSync(`${module}.new`, module);

writeFileSync(join(folder, 'face/binding.d.ts'), typesOf(readFileSync(join(output, 'napi-types/mcpbolt-node'), 'utf8')));
const tsc = [join(folder, 'node_modules/typescript/bin/tsc'), '-p', join(folder, 'face'), '--listEmittedFiles'];
const { status, stdout: written } = spawnSync(process.execPath, tsc, { encoding: 'utf8', stdio: ['ignore', 'pipe', 2] });
if (status !== 0) {
    console.error(written.replace(/^TSFILE.*\n/gm, ''));
    process.exit(1);
}
// Files of sources that no longer exist, left by an earlier build.
for (const file of readdirSync(join(folder, 'dist'), { recursive: true }))
    if (/\.[jt]s$/.test(file) && !written.includes(join(folder, 'dist', file))) rmSync(join(folder, 'dist', file));

/** TypeScript declarations of the definitions that napi-derive writes, one JSON object on each line. */
function typesOf(lines) {
    const definitions = lines.trim().split('\n').map(line => JSON.parse(line));
    const members = name => definitions.filter(one => one.kind === 'impl' && one.name === name).map(one => one.def);
    const declare = {
        fn: ({ def }) => `export declare ${def}`,
        interface: ({ name, def }) => `export interface ${name} {\n${def}\n}`,
        struct: ({ name, def }) => `export declare class ${name} {\n${[def, ...members(name)].join('\n')}\n}`
    };
    const declared = definitions.filter(({ kind }) => kind in declare).map(one => (one.js_doc ?? '') + declare[one.kind](one));
    return `// Written by scripts/build.mjs from the native module.\n${declared.join('\n\n')}\n`;
}
