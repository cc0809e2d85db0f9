/** Finds the program that `mcpbolt exec` is to run: a file, an installed package, or one of a package's programs. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join, parse, resolve } from 'node:path';

/** @internal There is no such program. */
export class NoProgram extends Error {}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;
const ENDING = /\.[cm]?[jt]sx?$/;

/** @internal The file of a program. With `mayFetch`, npx is asked for a package that is not installed. */
export function program(name: string, mayFetch: boolean): string {
    if (isFile(name) && (/[\\/]/.test(name) || ENDING.test(name))) return checked(resolve(name));
    const found = installed(name) ?? (isFile(name) ? resolve(name) : undefined);
    if (found !== undefined) return checked(found);
    if (mayFetch) return checked(fetched(name));
    throw new NoProgram(
        `there is no file, installed package or program of one by the name of ${name}; install it (npm install ${name}), or let npx fetch it: mcpbolt exec --yes ${name}`
    );
}

function installed(name: string): string | undefined {
    for (const modules of places()) {
        const found = ofPackage(modules, name) ?? ofLink(join(modules, '.bin', name));
        if (found !== undefined) return found;
    }
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
        const found = folder && ofLink(join(folder, name));
        if (found) return found;
    }
    return undefined;
}

/** The `node_modules` in which packages are looked for: this folder's, this package's, and the global ones. */
function* places(): Generator<string> {
    for (const from of [process.cwd(), dirname(__dirname)])
        for (let folder = resolve(from); ; folder = dirname(folder)) {
            yield join(folder, 'node_modules');
            if (folder === parse(folder).root) break;
        }
    const beside = dirname(process.execPath);
    yield process.platform === 'win32' ? join(beside, 'node_modules') : join(dirname(beside), 'lib/node_modules');
}

/** A name, and the version that it asks for: `@scope/name@1.2.0`. */
function parts(spec: string): [name: string, version: string | undefined] {
    const at = spec.indexOf('@', 1);
    return at < 0 ? [spec, undefined] : [spec.slice(0, at), spec.slice(at + 1)];
}

/** The program of a package, if that is installed there. */
function ofPackage(modules: string, spec: string): string | undefined {
    const [name, wanted] = parts(spec);
    const folder = join(modules, name);
    if (!/^(@[\w.~-]+\/)?[\w.~-]+$/.test(name) || name.startsWith('.') || !isFile(join(folder, 'package.json'))) return undefined;
    const { bin, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    if (wanted !== undefined && wanted !== version) return undefined;
    const own = name.slice(name.indexOf('/') + 1);
    const programs: Record<string, string> = typeof bin === 'string' ? { [own]: bin } : (bin ?? {});
    const names = Object.keys(programs);
    if (names.length === 0) throw new NoProgram(`the package ${name} in ${modules} has no program; name a file of it`);
    const chosen = names.length === 1 ? names[0]! : names.find(one => one === own);
    if (chosen === undefined) throw new NoProgram(`the package ${name} has the programs ${names.join(', ')}; name one of them`);
    const file = join(folder, programs[chosen]!);
    // A program that npm starts sees the path of its link.
    const link = join(modules, '.bin', chosen);
    return isFile(link) && realpathSync(link) === realpathSync(file) ? link : file;
}

/** The program that an entry in a folder of programs starts: a link, a file, or a script of a package manager. */
function ofLink(path: string): string | undefined {
    if (!isFile(path)) return undefined;
    const text = beginning(path);
    const [, target] = (text.startsWith('#!/bin/sh') && /"\$basedir\/([^"]+\.[cm]?js)"/.exec(text)) || [];
    return target === undefined ? path : join(dirname(path), target);
}

function beginning(path: string): string {
    const file = openSync(path, 'r');
    try {
        const bytes = Buffer.alloc(4096);
        return bytes.toString('utf8', 0, readSync(file, bytes));
    } finally {
        closeSync(file);
    }
}

function firstLine(path: string): string {
    return beginning(path).split('\n', 1)[0]!.trim();
}

/** @internal The options for Node in the first line of a program, such as `#!/usr/bin/env -S node --expose-gc`. */
export function optionsOf(path: string): string[] {
    const line = firstLine(path);
    const words = line.startsWith('#!') ? line.slice(2).trim().split(/\s+/) : [];
    const node = words.findIndex(word => /^node(\.exe)?$/.test(basename(word)));
    return node < 0 ? [] : words.slice(node + 1);
}

/** A file, if it is a program for Node. */
function checked(path: string): string {
    if (!isFile(path)) throw new NoProgram(`there is no file ${path}`);
    const line = firstLine(path);
    if (ENDING.test(realpathSync(path)) || (line.startsWith('#!') && /\bnode\b/.test(line))) return path;
    throw new NoProgram(`${path} is not a program for Node`);
}

/** The program of a package that npx installs, unless it has before. */
function fetched(spec: string): string {
    const npm = npmFile();
    const words = ['exec', '--yes', `--package=${spec}`, '--', 'node', '-p', 'process.env.PATH'];
    const [command, ...args] = npm ? [process.execPath, npm, ...words] : ['npm', ...words];
    const { status, stdout, error } = spawnSync(command!, args, { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' });
    if (status !== 0) throw new NoProgram(`npx cannot install ${spec}${error ? `: ${error.message}` : ''}`);
    for (const folder of stdout.trim().split(delimiter)) {
        const found = folder.endsWith('.bin') ? ofPackage(dirname(folder), parts(spec)[0]) : undefined;
        if (found !== undefined) return found;
    }
    throw new NoProgram(`npx has installed ${spec}, which has no package by the name of ${parts(spec)[0]}`);
}

/** The file of npm that Node is to run; without one, `npm` is a program. On Windows that would need a shell. */
function npmFile(): string | undefined {
    // pnpm and yarn name themselves here.
    const { npm_execpath: npm } = process.env;
    if (npm && basename(npm) === 'npm-cli.js') return npm;
    if (process.platform !== 'win32') return undefined;
    const beside = join(dirname(process.execPath), 'node_modules/npm/bin/npm-cli.js');
    if (isFile(beside)) return beside;
    throw new NoProgram(`there is no npm beside node (${beside}); install the package yourself, or run this by npx`);
}
