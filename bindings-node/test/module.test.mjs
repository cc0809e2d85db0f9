import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as imported from 'mcpbolt';
import { folder } from './wire.mjs';

const required = createRequire(import.meta.url)('mcpbolt');
const run = (...args) => execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8', timeout: 20_000 });

test('import and require give the same things', () => {
    assert.deepEqual(Object.keys(imported).sort(), Object.keys(required).sort());
    for (const [name, value] of Object.entries(required)) assert.equal(imported[name], value, name);
});

test('a process that is done ends, whatever it opened', () => {
    const source = `
        import { Client, Server } from 'mcpbolt';
        const server = new Server('a', '1').tool('x', {}, () => 'y');
        const client = await Client.connect(server);
        console.log((await client.callTool('x')).content[0].text);
        await client.close();
        const child = await Client.spawn(process.execPath, ['examples/diagnostic.mjs']);
        await child.close();
        await Client.spawn('/no/such/program').catch(() => {});
        await Client.connect(new Server('b', '1', { lifespan: { start() { throw 1; } } })).catch(() => {});
        console.log('done');
    `;
    assert.equal(run('--input-type=module', '-e', source), 'y\ndone\n');
});

test('mcpbolt run finds what a program uses beside its file', t => {
    const there = realpathSync(mkdtempSync(join(tmpdir(), 'mcpbolt-beside-')));
    t.after(() => rmSync(there, { recursive: true }));
    const converter = join(there, 'node_modules/@valibot/to-json-schema');
    mkdirSync(converter, { recursive: true });
    const theirs = createRequire(import.meta.url).resolve('@valibot/to-json-schema');
    writeFileSync(join(converter, 'index.js'), `const { toJsonSchema } = require(${JSON.stringify(theirs)}); exports.toJsonSchema = (...args) => (console.error('its own converter'), toJsonSchema(...args));`);
    const valibot = createRequire(import.meta.url).resolve('valibot');
    const ours = new URL('index.mjs', folder).href;
    writeFileSync(join(there, 'server.mjs'), `
        import { createRequire } from 'node:module'; import { Server } from ${JSON.stringify(ours)};
        const v = createRequire(import.meta.url)(${JSON.stringify(valibot)});
        export default new Server('beside', '1').tool('x', { inputSchema: v.object({ a: v.string() }) }, ({ a }) => a + process.argv[1].endsWith('server.mjs'));`);
    const command = fileURLToPath(new URL('bin/mcpbolt.mjs', folder));
    const { status, stderr } = spawnSync(process.execPath, [command, 'run', join(there, 'server.mjs')], { cwd: tmpdir(), encoding: 'utf8', input: '', timeout: 20_000 });
    assert.deepEqual([status, stderr], [0, 'its own converter\n']);
});

test('each worker has an engine of its own, and may be ended at any time', async () => {
    const source = `
        const { parentPort } = require('node:worker_threads');
        const { Client, Server } = require('mcpbolt');
        const server = new Server('w', '1').tool('x', {}, () => 'y').tool('never', {}, () => new Promise(() => {}));
        Client.connect(server).then(async client => {
            for (let i = 0; i < 100; i++) await client.callTool('x');
            client.callTool('never').catch(() => {});
            parentPort.postMessage('ready');
        });
    `;
    const workers = Array.from({ length: 4 }, () => new Worker(source, { eval: true }));
    await Promise.all(workers.map(worker => new Promise((yes, no) => worker.once('message', yes).once('error', no))));
    assert.deepEqual(await Promise.all(workers.map(worker => worker.terminate())), [1, 1, 1, 1]);
});

test('what cannot be registered is refused where it is written', () => {
    const { McpError, Server } = imported;
    const code = expected => error => error instanceof McpError && error.code === expected;
    const server = () => new Server('a', '1');
    assert.throws(() => server().tool('a', {}, () => {}).tool('a', {}, () => {}), code('ERR_MCP_DUPLICATE'));
    assert.throws(() => server().tool('a', { inputSchema: { type: 'array' } }, () => {}), code('ERR_MCP_SCHEMA'));
    assert.throws(() => server().tool('', {}, () => {}), code('ERR_MCP_MISUSE'));
    assert.throws(() => server().resourceTemplate('x:{', {}, () => ''), code('ERR_MCP_TEMPLATE'));
});
