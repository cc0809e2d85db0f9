// `mcpbolt/register` with loaders, releases and runtimes, and how `mcpbolt exec` finds its program.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import Module from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { COMMAND, executed, here, LINES, program, ran, REGISTER, write } from './programs.mjs';
import { place } from './place.mjs';
import { folder } from './wire.mjs';

const MODULES = fileURLToPath(new URL('node_modules', folder));

/** A project whose packages are those of the tests, but for some that `change` makes its own. */
function project(prefix, own, change) {
    const made = place(prefix);
    rmSync(join(made, 'node_modules'));
    for (const name of readdirSync(MODULES)) {
        const scoped = name.startsWith('@') ? readdirSync(join(MODULES, name)).map(one => join(name, one)) : [name];
        for (const one of scoped.filter(one => !own.includes(one))) {
            mkdirSync(dirname(join(made, 'node_modules', one)), { recursive: true });
            symlinkSync(join(MODULES, one), join(made, 'node_modules', one));
        }
    }
    change(made);
    return made;
}

/** Copies what the SDK needs to run, with another version. */
function copySdk(to, version) {
    const from = join(MODULES, '@modelcontextprotocol/sdk');
    mkdirSync(to, { recursive: true });
    for (const part of ['dist/esm', 'dist/cjs']) cpSync(join(from, part), join(to, part), { recursive: true, filter: file => !/\.(map|d\.ts)$/.test(file) });
    const manifest = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
    writeFileSync(join(to, 'package.json'), JSON.stringify({ ...manifest, version }));
}

test('an unknown release runs untouched, with one line', async () => {
    const made = project('mcpbolt-unknown-', ['@modelcontextprotocol/sdk'], made => copySdk(join(made, 'node_modules/@modelcontextprotocol/sdk'), '1.99.0'));
    for (const isModule of [true, false]) {
        const file = join(made, `program.${isModule ? 'mjs' : 'cjs'}`);
        writeFileSync(file, program(1, isModule));
        for (const MCPBOLT_REPORT of ['', '1']) {
            const done = await executed([file], { env: { MCPBOLT_REPORT } });
            assert.deepEqual([done.exit, done.answers[2].result.content[0].text], [0, '3'], done.err);
            assert.equal(done.told.length, 1, done.err);
            assert.match(done.told[0], /^@modelcontextprotocol\/sdk 1\.99\.0 is not known to this mcpbolt, which knows 1\.20, .*: the program runs as it would without mcpbolt$/);
        }
    }
});

test('two copies of the SDK in one program are both taken', async () => {
    const made = project('mcpbolt-copies-', [], made => {
        copySdk(join(made, 'node_modules/other/node_modules/@modelcontextprotocol/sdk'), '1.32.0');
        writeFileSync(join(made, 'node_modules/other/package.json'), '{"name":"other","version":"1.0.0","main":"index.cjs"}');
        writeFileSync(join(made, 'node_modules/other/index.cjs'), `exports.StdioServerTransport = require('@modelcontextprotocol/sdk/server/stdio.js').StdioServerTransport;`);
    });
    const file = join(made, 'program.mjs');
    writeFileSync(file, program(1).replace("from '@modelcontextprotocol/sdk/server/stdio.js'", "from 'other'"));
    const done = await executed([file]);
    assert.match(done.told[0], /the engine serves 'program' \(@modelcontextprotocol\/sdk [\d.]+, @modelcontextprotocol\/sdk [\d.]+\)$/, done.err);
    assert.equal(done.answers[2].result.content[0].text, '3');
});

test('an SDK that is part of a bundle is left alone', async () => {
    const made = project('mcpbolt-bundle-', [], made => {
        copySdk(join(made, 'lib'), '0');
        writeFileSync(join(made, 'lib/package.json'), '{"name":"bundle","version":"1.32.2","type":"module"}');
    });
    const both = program(1).replaceAll('@modelcontextprotocol/sdk/', './lib/dist/esm/');
    // Only the server is in the bundle: its transport is not.
    const half = both.replace('./lib/dist/esm/server/stdio.js', '@modelcontextprotocol/sdk/server/stdio.js');
    for (const [text, expected] of [[both, /^the program served by itself, if at all: it loaded no package of an SDK/], [half, /^stdio: the engine carries the messages, .*: the program reads the messages itself$/]]) {
        const file = join(made, 'program.mjs');
        writeFileSync(file, text);
        const done = await executed([file]);
        assert.deepEqual([done.exit, done.told.length, done.answers[2].result.content[0].text], [0, 1, '3'], done.err);
        assert.match(done.told[0], expected);
    }
});

// Node before 20.19 and 22.12 cannot do so.
if (process.features.require_module) test('an ES module that `require` loads', async () => {
    write('required-module.mjs', program(1));
    const done = await executed([write('requires.cjs', `require('./required-module.mjs');`)]);
    const expected = Module.registerHooks ? /^stdio: the engine serves 'program'/ : /loaded by require\(\) before Node 22\.15, cannot be seen$/;
    assert.match(done.told[0], expected, done.err);
    assert.equal(done.answers[2].result.content[0].text, '3');
});

/** A loader of TypeScript, as users bring one: hooks for modules, and an extension of `require`. */
const LOADER = `
    import { register, createRequire } from 'node:module';
    import { readFileSync } from 'node:fs';
    const require = createRequire(${JSON.stringify(import.meta.url)});
    const ts = require('typescript');
    const hooks = \`
        import { createRequire } from 'node:module'; import { readFileSync } from 'node:fs'; import { fileURLToPath } from 'node:url';
        const ts = createRequire(${JSON.stringify(import.meta.url)})('typescript');
        export async function load(url, context, next) {
            if (!url.endsWith('.mts')) return next(url, context);
            const { outputText } = ts.transpileModule(readFileSync(fileURLToPath(url), 'utf8'), { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } });
            return { format: 'module', source: outputText, shortCircuit: true };
        }\`;
    register('data:text/javascript,' + encodeURIComponent(hooks));
    const compile = (module, file) => {
        const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 } });
        module._compile(outputText, file);
    };
    require.extensions['.cts'] = compile;
    // As others do, it compiles every module itself.
    require.extensions['.js'] = (module, file) => module._compile(readFileSync(file, 'utf8'), file);
`;

test("TypeScript by the user's own loader, before and after", async () => {
    const loader = pathToFileURL(write('loader.mjs', LOADER)).href;
    const typed = isModule => program(1, isModule).replace('const server', 'const server: any');
    for (const file of [write('typed.mts', typed(true)), write('typed.cts', typed(false))])
        for (const order of [[loader, REGISTER], [REGISTER, loader]]) {
            // CommonJS in TypeScript is run by `require`, as older Nodes know no such files.
            const main = file.endsWith('.cts') ? write('main.cjs', `require(${JSON.stringify(file)});`) : file;
            const done = await ran([...order.flatMap(one => ['--import', one]), main]);
            assert.match(done.told[0] ?? '', /the engine serves 'program'/, `${main} ${order}: ${done.err}`);
            assert.equal(done.answers[2].result.content[0].text, '3');
        }
    const file = pathToFileURL(write('typed.mts', typed(true))).href;
    const later = write('later.mjs', `await import('${loader}'); await import('${file}');`);
    const both = pathToFileURL(write('both.mjs', `import '${loader}'; import '${pathToFileURL(REGISTER).href}';`)).href;
    for (const done of [
        await executed([fileURLToPath(file)], { env: { NODE_OPTIONS: `--import ${loader}` } }),
        // In the middle of the program, with our hooks before and after.
        await executed([later]),
        await ran(['--import', REGISTER, later]),
        await ran(['--import', both, fileURLToPath(file)])
    ])
        assert.match(done.told[0] ?? '', /the engine serves 'program'/, done.err);
});

test('a thread of hooks is left to programs that have something before them', () => {
    const cjs = fileURLToPath(new URL('dist/register/index.js', folder));
    const other = pathToFileURL(write('other.mjs', '')).href;
    const alone = JSON.stringify(fileURLToPath(new URL('dist/register/alone.js', folder)));
    for (const [options, NODE_OPTIONS, expected] of [
        [[], '', [true, false]],
        [['--no-warnings'], '--stack-trace-limit=5', [true, false]],
        [['--import', 'mcpbolt/register'], '', [true, true]],
        [[`--import=${REGISTER}`], '', [true, true]],
        [['--import', pathToFileURL(REGISTER).href], '', [true, true]],
        [['--require', cjs], `--import ${REGISTER}`, [true, true]],
        [['-r', cjs], '', [true, true]],
        [['--import', REGISTER, '--import', other], '', [false, false]],
        [['--import', REGISTER], `--import=${other}`, [false, false]],
        [['-r', 'typescript'], '', [false, false]],
        [['--experimental-loader', other, '--import', REGISTER], '', [false, false]],
        [['--import', REGISTER, '--experimental_loader', other], '', [false, false]]
    ]) {
        const asked = `const { isAlone } = require(${alone}); console.log(JSON.stringify([isAlone(true), isAlone(false)]))`;
        const { stdout, stderr } = spawnSync(process.execPath, [...options, '-e', asked], { encoding: 'utf8', cwd: fileURLToPath(folder), env: { ...process.env, NODE_OPTIONS } });
        assert.deepEqual(JSON.parse(stdout || 'null'), expected, `${options} ${NODE_OPTIONS}: ${stderr}`);
    }
});

test('as `require` and in NODE_OPTIONS', async () => {
    const cjs = fileURLToPath(new URL('dist/register/index.js', folder));
    const file = write('required.cjs', program(1, false));
    for (const [args, env] of [[['--require', cjs, file], {}], [[file], { NODE_OPTIONS: `--import ${REGISTER} --require ${cjs}` }]]) {
        const done = await ran(args, { env });
        assert.deepEqual(done.told.slice(1), ['tool add: native'], done.err);
    }
});

const node = (...args) => spawnSync(process.execPath, args, { encoding: 'utf8', cwd: fileURLToPath(folder), timeout: 60_000 });

test('nothing is loaded before a program brings an SDK', () => {
    const { stdout, stderr } = node('--import', REGISTER, '-e', 'console.log(Object.keys(require.cache).join())');
    const files = stdout.trim().split(',').filter(Boolean).map(file => file.split(/[\\/]dist[\\/]/)[1]);
    assert.ok(files.every(file => file === undefined || /^(register|sdk[\\/](gate|private))/.test(file)), `${files} ${stderr}`);
});

test('other runtimes are told what it needs', () => {
    for (const condition of ['workerd', 'edge-light', 'browser']) {
        const { status, stderr } = node('--conditions', condition, '--import', 'mcpbolt/register', '-e', '0');
        assert.ok(status === 1 && stderr.includes('mcpbolt/register needs Node 20.6 or later'), stderr);
    }
    for (const name of ['Bun', 'Deno', 'EdgeRuntime']) {
        const prelude = `data:text/javascript,globalThis.${name} = {};`;
        const { status, stderr } = node('--import', prelude, '--import', 'mcpbolt/register', '-e', '0');
        assert.ok(status === 1 && /needs Node 20\.6 or later: (Bun|Deno|this edge runtime) does not have its loader hooks/.test(stderr), stderr);
    }
    assert.equal(spawnSync(process.execPath, ['--import', 'data:text/javascript,globalThis.Bun = {};', '--import', 'mcpbolt/register', '-e', '0'], { cwd: fileURLToPath(folder), env: { ...process.env, MCPBOLT: 'off' } }).status, 0);
    const old = `data:text/javascript,import { syncBuiltinESMExports } from 'node:module'; import m from 'node:module'; m.register = m.registerHooks = undefined; syncBuiltinESMExports();`;
    assert.match(node('--import', old, '--import', 'mcpbolt/register', '-e', '0').stderr, /needs Node 20\.6 or later, which has module\.register; this is Node \d+/);
});

const SHOWS = `console.log(JSON.stringify([process.argv.slice(2), PATH, process.execArgv, IS_MAIN])); process.exitCode = 7;\n`;
const PROGRAM_CJS = `#!/usr/bin/env node\n${SHOWS.replace('PATH', 'process.argv[1]').replace('IS_MAIN', 'require.main === module')}`;
const PROGRAM_MJS = `#!/usr/bin/env node\nimport { pathToFileURL } from 'node:url'; import { realpathSync } from 'node:fs';\n${SHOWS.replace('PATH', 'process.argv[1]').replace('IS_MAIN', 'import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href')}`;

/** A project with packages that have programs, as npm and pnpm install them. */
const programs = project('mcpbolt-found-', [], made => {
    const pack = (name, bin, files) => {
        const at = join(made, 'node_modules', name);
        for (const [file, text] of Object.entries({ 'package.json': JSON.stringify({ name, version: '1.2.0', bin }), ...files })) {
            mkdirSync(dirname(join(at, file)), { recursive: true });
            writeFileSync(join(at, file), text);
        }
        return at;
    };
    rmSync(join(made, 'node_modules/.bin'), { force: true });
    mkdirSync(join(made, 'node_modules/.bin'), { recursive: true });
    const one = pack('@scope/one', { 'one-program': 'dist/index.js' }, { 'dist/index.js': PROGRAM_CJS });
    symlinkSync('../@scope/one/dist/index.js', join(made, 'node_modules/.bin/one-program'));
    chmodSync(join(one, 'dist/index.js'), 0o755);
    pack('plain', 'main.mjs', { 'main.mjs': PROGRAM_MJS });
    pack('several', { a: 'a.mjs', b: 'a.mjs' }, { 'a.mjs': PROGRAM_MJS });
    pack('none', undefined, { 'index.js': '' });
    writeFileSync(join(made, 'node_modules/.bin/shim'), '#!/bin/sh\nbasedir=$(dirname "$0")\nexec node  "$basedir/../plain/main.mjs" "$@"\n', { mode: 0o755 });
    writeFileSync(join(made, 'node_modules/.bin/shell'), '#!/bin/sh\necho no\n', { mode: 0o755 });
    writeFileSync(join(made, 'file.cjs'), PROGRAM_CJS);
    mkdirSync(join(made, 'deep/er'), { recursive: true });
});

test('a program is found as npx finds it, and sees its own arguments', async () => {
    const words = ['--a', 'b', '-h'];
    const link = join(programs, 'node_modules/.bin/one-program');
    for (const [name, path] of [
        ['file.cjs', join(programs, 'file.cjs')],
        ['./file.cjs', join(programs, 'file.cjs')],
        ['@scope/one', link],
        ['@scope/one@1.2.0', link],
        ['one-program', link],
        ['plain', join(programs, 'node_modules/plain/main.mjs')],
        ['shim', join(programs, 'node_modules/plain/main.mjs')]
    ]) {
        const cwd = name.includes('file') ? programs : join(programs, 'deep/er');
        const done = await executed([name, ...words], { cwd, lines: [], last: null });
        assert.deepEqual([done.exit, JSON.parse(done.out)], [7, [words, path, [], true]], done.err);
    }
    // Through PATH, as for what is installed globally.
    const PATH = `${dirname(link)}${delimiter}${process.env.PATH}`;
    assert.equal((await executed(['one-program'], { env: { PATH }, lines: [], last: null })).exit, 7);
});

test("options for node in a program's first line are its process's", async () => {
    const shows = 'console.log(JSON.stringify([process.argv.slice(2), process.execArgv, typeof gc, process.env.MCPBOLT_REPLACED ?? null, process.argv[1]])); process.exitCode = 7;';
    const path = join(programs, 'node_modules/.bin/flagged');
    writeFileSync(path, `#!/usr/bin/env -S node --expose-gc --no-warnings\n${shows}\n`, { mode: 0o755 });
    const done = await executed(['flagged', '--a', 'b'], { cwd: programs, lines: [], last: null });
    const own = spawnSync(path, ['--a', 'b'], { encoding: 'utf8' });
    assert.deepEqual([done.exit, JSON.parse(done.out)], [own.status, JSON.parse(own.stdout)], done.err);
    assert.deepEqual(JSON.parse(done.out).slice(0, 4), [['--a', 'b'], ['--expose-gc', '--no-warnings'], 'function', null]);
    writeFileSync(path, `#!/usr/bin/env -S node --no-such-option\n${shows}\n`);
    assert.equal((await executed(['flagged'], { cwd: programs, lines: [], last: null })).exit, spawnSync(path, []).status);
});

test('a server under such a program keeps its client', async () => {
    const file = join(here, 'flagged.mjs');
    writeFileSync(file, `#!/usr/bin/env -S node --expose-gc\n${program(1)}`);
    const done = await executed([file], { lines: LINES });
    assert.deepEqual([done.exit, done.told.at(-1), done.answers[2].result.content[0].text], [0, 'tool add: native', '3'], done.err);
});

test('no shell reads the name of a package', async () => {
    const windows = `data:text/javascript,Object.defineProperty(process, 'platform', { value: 'win32' });`;
    const at = join(here, 'made-by-a-shell');
    const env = { npm_execpath: '' };
    const done = await ran(['--import', windows, COMMAND, 'exec', '--yes', `a&echo>${at}`], { lines: [], last: null, env });
    assert.deepEqual([done.exit, existsSync(at)], [2, false], done.err);
    assert.match(done.err, /^mcpbolt exec: error: there is no npm beside node \(.*npm-cli\.js\); install the package yourself/);
});

test('what is no program says why', async () => {
    for (const [args, reason] of [
        [['no-such-program'], /there is no file, installed package or program of one by the name of no-such-program; install it \(npm install no-such-program\), or let npx fetch it: mcpbolt exec --yes no-such-program/],
        [['@scope/one@2.0.0'], /by the name of @scope\/one@2\.0\.0/],
        [['several'], /has the programs a, b; name one of them/],
        [['none'], /has no program; name a file of it/],
        [['shell'], /shell is not a program for Node/],
        [['/bin/sh'], /is not a program for Node/],
        [['../../etc'], /there is no file/],
        [['--wrong', 'plain'], /there is no option --wrong/]
    ]) {
        const done = await executed(args, { cwd: programs, lines: [], last: null });
        assert.deepEqual([done.exit, done.out], [2, ''], done.err);
        assert.match(done.err, reason);
        assert.ok(done.err.startsWith('mcpbolt exec: error: ') && done.err.split('\n').length === 2, done.err);
    }
    assert.equal((await executed([], { lines: [], last: null })).exit, 2);
    const help = await executed(['--help'], { lines: [], last: null });
    assert.ok(help.exit === 0 && help.out.startsWith('usage: mcpbolt exec '));
});

test('its failures are its own', async () => {
    for (const [name, text] of [['throws.mjs', 'throw new Error("its own");'], ['throws.cjs', 'require("no-such-package");'], ['rejects.mjs', 'Promise.reject(new Error("its own"));'], ['waits.mjs', 'await new Promise(() => {});']]) {
        const file = write(name, text);
        const [ours, own] = await Promise.all([executed([file], { lines: [], last: null, env: { MCPBOLT_REPORT: '' } }), ran([file], { lines: [], last: null })]);
        const said = err => err.split('\n').filter(line => /Error|Warning|at file/.test(line)).join('\n');
        assert.deepEqual([ours.exit, said(ours.err)], [own.exit, said(own.err)]);
    }
});

test('a program is joined in the folder that it is linked from, too', async () => {
    const linked = join(place('mcpbolt-linked-'), 'linked.mjs');
    symlinkSync(write('original.mjs', program(1)), linked);
    const done = await executed([linked], { cwd: here, lines: LINES });
    assert.deepEqual(done.told.slice(1), ['tool add: native']);
    assert.equal(realpathSync(linked), join(here, 'original.mjs'));
});
