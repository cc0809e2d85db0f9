// Builds the native module and the face: `node scripts/build.mjs [--debug]`.
import { execFileSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(folder);
const debug = process.argv.includes('--debug');

const run = (program, ...args) => execFileSync(program, args, { cwd: root, stdio: ['ignore', 2, 2] });
const options = debug ? [] : ['--release', '--', '-C', 'strip=debuginfo'];
run(process.env.CARGO ?? 'cargo', 'rustc', '--quiet', '-p', 'mcpbolt-node', '--lib', ...options);

const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const built = { darwin: 'libmcpbolt_node.dylib', win32: 'mcpbolt_node.dll' }[process.platform] ?? 'libmcpbolt_node.so';
const module = join(folder, `mcpbolt.${process.platform}-${process.arch}.node`);
// Replaced in one step: a process that has the old one open keeps it.
copyFileSync(join(target, debug ? 'debug' : 'release', built), `${module}.new`);
renameSync(`${module}.new`, module);

run(process.execPath, join(folder, 'node_modules/typescript/bin/tsc'), '-p', join(folder, 'face'));
