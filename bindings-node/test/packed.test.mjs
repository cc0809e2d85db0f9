// The packages of a release, packed and installed into an empty project, and used there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));
const place = realpathSync(mkdtempSync(join(tmpdir(), 'mcpbolt-packed-')));
const project = join(place, 'project');
// Their words are read here: no colours, which some tools use wherever CI is set.
const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined };
const run = (command, args, cwd = project) => execFileSync(command, args, { cwd, env, encoding: 'utf8', timeout: 300_000 });
const write = (name, text) => writeFileSync(join(project, name), text);
let tarballs;

before(() => {
    tarballs = run(process.execPath, [join(folder, 'scripts/package.mjs'), place], folder).trim().split('\n');
    mkdirSync(project);
    write('package.json', JSON.stringify({ name: 'empty', version: '1.0.0' }));
    run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...tarballs]);
});

test('the module lies in the package of its platform, and in no other', () => {
    assert.equal(tarballs.length, 2);
    const [face, native] = tarballs.map(tarball => run('tar', ['-tzf', tarball]).trim().split('\n'));
    assert.ok(!face.some(file => file.endsWith('.node')), face.join());
    assert.deepEqual(native.filter(file => file.endsWith('.node')).length, 1);
    for (const file of ['dist/index.js', 'dist/engine/index.d.ts', 'dist/sdk/index.js', 'dist/register/hooks.js', 'engine.mjs', 'testing.mjs', 'testing.d.mts', 'register.mjs', 'unsupported.mjs', 'sdk.d.mts', 'bin/mcpbolt.mjs', 'LICENSE-MIT'])
        assert.ok(face.includes(`package/${file}`), file);
    assert.ok(!face.some(file => /^package\/(src|face|test|benches|node_modules)\//.test(file)), face.join());
    const { optionalDependencies, devDependencies } = JSON.parse(readFileSync(join(project, 'node_modules/mcpbolt/package.json'), 'utf8'));
    const [[name, version]] = Object.entries(optionalDependencies);
    const installed = JSON.parse(readFileSync(join(project, `node_modules/${name}/package.json`), 'utf8'));
    assert.deepEqual([installed.version, installed.os, installed.cpu, devDependencies], [version, [process.platform], [process.arch], undefined]);
});

const USE = `
    const server = new Server('packed', '1').tool('double', {}, ({ n }) => 2 * n);
    const work = async () => {
        const client = await Client.connect(server);
        const { content } = await client.callTool('double', { n: 21 });
        await client.close();
        console.log(content[0].text, decode('{"jsonrpc":"2.0","id":1,"method":"ping"}').method, typeof accelerate, typeof connect);
    };
    work();
`;
const NAMES = { mcpbolt: '{ Client, Server }', 'mcpbolt/engine': '{ decode }', 'mcpbolt/sdk': '{ accelerate }', 'mcpbolt/testing': '{ connect }' };

test('import and require find all of it', () => {
    const written = Object.entries(NAMES);
    write('use.mjs', written.map(([module, names]) => `import ${names} from '${module}';`).join('') + USE);
    write('use.cjs', written.map(([module, names]) => `const ${names} = require('${module}');`).join('') + USE);
    for (const file of ['use.mjs', 'use.cjs']) assert.equal(run(process.execPath, [file]), '42 ping function function\n');
});

test('its types are found, too', () => {
    const typed = `${Object.entries(NAMES).map(([module, names]) => `import ${names} from '${module}';`).join('\n')}
        const server: Server = new Server('typed', '1').tool('double', {}, ({ n }: { n: number }) => 2 * n);
        const client: Client = await Client.connect(server, { integers: 'bigint' });
        const method: string | undefined = decode('{}').method;
        // @ts-expect-error: there is no such method
        client.callNothing(method, accelerate, connect);
    `;
    write('use.mts', typed);
    const tsc = join(folder, 'node_modules/typescript/bin/tsc');
    const options = ['--strict', '--noEmit', '--skipDefaultLibCheck', '--module', 'nodenext', '--target', 'es2022', '--typeRoots', join(folder, 'node_modules/@types'), '--types', 'node'];
    run(process.execPath, [tsc, ...options, 'use.mts']);
});

test('publint and Are the Types Wrong find nothing', () => {
    const tool = path => join(folder, 'node_modules', path);
    for (const tarball of tarballs) assert.match(run(process.execPath, [tool('publint/src/cli.js'), '--strict', tarball]), /^All good!$/m);
    const { analysis, problems } = JSON.parse(run(process.execPath, [tool('@arethetypeswrong/cli/dist/index.js'), '--format', 'json', tarballs[0]]));
    assert.deepEqual([analysis.problems, problems, Object.keys(analysis.entrypoints)], [[], {}, ['.', './sdk', './engine', './testing', './register', './package.json']]);
});

test('the command is there', () => {
    assert.match(run('npx', ['--no-install', 'mcpbolt', 'run', '--help']), /^usage: mcpbolt run MODULE/);
    assert.match(run('npx', ['--no-install', 'mcpbolt', '--help']), /^ +inspect .*\n(.*\n)* +run /m);
    write('server.mjs', `import { Server } from 'mcpbolt'; export default new Server('run', '1').tool('hello', {}, () => 'hi');`);
    write('client.mjs', `
        import { Client } from 'mcpbolt';
        const client = await Client.spawn('npx', ['--no-install', 'mcpbolt', 'run', 'server.mjs'], { env: { PATH: process.env.PATH, HOME: process.env.HOME } });
        console.log((await client.callTool('hello')).content[0].text);
        await client.close();
    `);
    assert.equal(run(process.execPath, ['client.mjs']), 'hi\n');
    assert.equal(run('npx', ['--no-install', 'mcpbolt', 'call', 'hello', '--', 'npx', '--no-install', 'mcpbolt', 'run', 'server.mjs']), 'hi\n');
});

test('where there is no module it is said what to do', () => {
    write('none.cjs', `Object.defineProperty(process, 'arch', { value: 'pdp11' }); require('mcpbolt');`);
    const fails = () => execFileSync(process.execPath, ['none.cjs'], { cwd: project, stdio: 'pipe', encoding: 'utf8' });
    assert.throws(fails, ({ stderr }) => /no native module for \S+-pdp11: install @mcpbolt\/\S+pdp11.* or build it/.test(stderr));
});
