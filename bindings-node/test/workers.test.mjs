// `run(…, { workers })`: several processes at one address, which are killed, replaced and ended while clients call.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { place } from './place.mjs';
import { at, connection, SERVER, through, Tree } from './trees.mjs';
import { until, within } from './until.mjs';
import { folder, program } from './wire.mjs';

const limit = { timeout: 120_000 };

/** Stops a process until `act` has ended. */
async function without(pid, act) {
    process.kill(pid, 'SIGSTOP');
    const tasks = `/proc/${pid}/task`;
    await until(() => readdirSync(tasks).every(task => /State:\tT/.test(readFileSync(`${tasks}/${task}/status`, 'utf8'))));
    try {
        return await act();
    } finally {
        process.kill(pid, 'SIGCONT');
    }
}

/** A connection that a worker other than this one has accepted. */
async function besides(tree, pid) {
    const agent = connection();
    await without(pid, async () => assert.notEqual(Number(await tree.call('process', agent)), pid));
    return agent;
}

test('the program runs in each worker, and calls in flight end on SIGTERM', limit, async () => {
    const tree = await Tree.start();
    const { workers } = tree;
    assert.equal(workers.length, 2);
    for (const pid of workers) assert.ok(workers.includes(Number(await tree.call('process', await besides(tree, pid)))));
    const called = tree.call('told');
    assert.equal(await tree.line(), 'begun');
    await tree.end();
    assert.ok(workers.includes(Number(await called)));
    assert.deepEqual(tree.reasons.sort(), ['signal', 'stopped', 'stopped']);
});

test('a session is served by the worker that has it, whichever accepts its requests', limit, async () => {
    const tree = await Tree.start();
    let agent = connection();
    // Its stream for what belongs to no request has a connection of its own.
    const fetch = (url, init) => through(init.method === 'GET' ? undefined : agent)(url, init);
    const transport = new StreamableHTTPClientTransport(tree.address, { fetch });
    const client = new Client({ name: 'official', version: '1' });
    await client.connect(transport);
    const process = async () => Number((await client.callTool({ name: 'process', arguments: {} })).content[0].text);
    const owner = await process();
    assert.ok(transport.sessionId, 'a session of the handshake era');
    agent = await besides(tree, owner);
    for (let i = 0; i < 3; i++) assert.equal(await process(), owner);
    await client.close();
    await tree.end();
});

test('workers are replaced on SIGHUP without a lost call', limit, async () => {
    const tree = await Tree.start();
    const old = tree.workers;
    const lost = await tree.lost(async () => {
        tree.process.kill('SIGHUP');
        await until(() => tree.workers.length === 2 && !tree.workers.some(pid => old.includes(pid)));
    });
    assert.equal(lost, 0);
    await tree.end();
});

test('a killed worker loses its own calls alone, and is replaced', limit, async () => {
    const tree = await Tree.start();
    const [killed, kept] = tree.workers;
    const lost = await tree.lost(async () => {
        process.kill(killed, 'SIGKILL');
        await until(() => tree.workers.length === 2 && !tree.workers.includes(killed));
    });
    assert.ok(tree.workers.includes(kept));
    assert.ok(lost <= 4, `${lost} of 4 clients lost a call`);
});

test('a worker ends although a handler blocks it', limit, async () => {
    const tree = await Tree.start(program(SERVER + at('grace: 100')));
    const called = tree.call('stuck').catch(() => 'lost');
    assert.equal(await tree.line(), 'stuck');
    await tree.end();
    assert.equal(await called, 'lost');
});

for (const [by, options] of [
    ['an AbortSignal', 'signal: stop.signal, onListening: address => { onListening(address); stop.abort(); }'],
    ['close', 'onListening: address => { onListening(address); server.close(); }']
])
    test(`workers end by ${by}`, limit, async () => {
        const tree = await Tree.start(program(`${SERVER} const stop = new AbortController(); ${at(options)}`));
        assert.deepEqual(await within('the end', tree.ended), { code: 0, signal: null });
        assert.deepEqual(tree.reasons, ['stopped', 'stopped', 'stopped']);
    });

test('workers that are to end before they begin do so', limit, () => {
    const ran = spawnSync(process.execPath, program(SERVER + at('signal: AbortSignal.abort()')), { cwd: folder, encoding: 'utf8' });
    assert.deepEqual([ran.status, ran.stderr], [0, '']);
});

for (const options of ['', 'workers: undefined,'])
    test(`an error of onListening ends ${options ? 'a server' : 'workers'}`, limit, () => {
        const source = program(SERVER + at(`${options} onListening: () => { throw new Error('not here'); }`));
        const ran = spawnSync(process.execPath, source, { cwd: folder, encoding: 'utf8', timeout: 60_000 });
        assert.equal(ran.status, 1);
        assert.match(ran.stderr, /Error: not here/);
    });

test('health tells how far the workers are, and a second signal kills them', limit, async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const health = `http://127.0.0.1:${free.address().port}`;
    await once(free.close(), 'close');
    const tree = await Tree.start(program(SERVER + at(`grace: 60_000, health: '${health}'`)));
    const status = async path => (await fetch(new URL(path, health))).status;
    assert.equal(await status('/readyz'), 200);
    const called = tree.call('stuck').catch(() => 'lost');
    assert.equal(await tree.line(), 'stuck');
    tree.process.kill('SIGTERM');
    await until(async () => (await status('/readyz')) === 503);
    assert.equal(await status('/livez'), 200);
    await tree.end();
    assert.equal(await called, 'lost');
});

const FRONT = `
    import { External, Front } from 'mcpbolt';
    const front = new Front(new External(server));
    await front.run('http://127.0.0.1:0/mcp', { workers: 2, onListening });
`;
const MOUNTED = `
    import { External } from 'mcpbolt';
    const far = new Server('far', '1').tool('away', {}, () => 'far');
    server.mount('far', new External(far));
    ${at()}
`;

for (const [what, source] of [['a front', FRONT], ['a server with another one mounted', MOUNTED]])
    test(`${what} is served with workers`, limit, async () => {
        const tree = await Tree.start(program(SERVER + source));
        assert.ok(tree.workers.includes(Number(await tree.call('process'))));
        await tree.end();
    });

const OF_THE_SDK = `
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    export const server = new McpServer({ name: 'official', version: '1' });
    server.registerTool('process', {}, () => ({ content: [{ type: 'text', text: String(process.pid) }] }));
`;

test('the command serves a server of the official SDK with workers', limit, async () => {
    const file = join(place('mcpbolt-workers-'), 'server.mjs');
    writeFileSync(file, OF_THE_SDK);
    const command = new URL('bin/mcpbolt.mjs', folder).pathname;
    const tree = await Tree.start([command, 'run', `${file}:server`, '--http', ':0', '--workers', '2']);
    const client = new Client({ name: 'official', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(tree.address));
    const { content } = await client.callTool({ name: 'process', arguments: {} });
    assert.ok(tree.workers.includes(Number(content[0].text)));
    await client.close();
    await tree.end();
});

for (const [run, why] of [
    ["server.run('stdio:', { workers: 2 })", /one client and one process/],
    ["server.run('tcp:127.0.0.1:0', { workers: 0 })", /from 1 on, not 0/],
    ["server.run('tcp:127.0.0.1:0', { health: 'http://127.0.0.1:0' })", /pass workers/],
    ["server.run('tcp:127.0.0.1:0', { workers: 2, health: 'tcp:127.0.0.1:0' })", /health is no address of HTTP/],
    ["server.run('http://192.0.2.1:0/mcp', { workers: 2 })", /ERR_MCP_IO/],
    ["server.run('http://0.0.0.0:0/mcp', { workers: 2 })", /worker \d could not begin: exit status: 1/],
    ["Promise.all([1, 2].map(() => server.run('tcp:127.0.0.1:0', { workers: 2 })))", /another server of this program/]
])
    test(`what workers cannot serve is told: ${run}`, limit, () => {
        const { status, stderr } = spawnSync(process.execPath, program(`${SERVER} await ${run};`), { cwd: folder, encoding: 'utf8' });
        assert.equal(status, 1);
        assert.match(stderr, why);
    });

test('a program that cannot be started again is told', limit, () => {
    const input = `import('mcpbolt').then(({ Server }) => new Server('many', '1').run('tcp:127.0.0.1:0', { workers: 2 }))`;
    const { stderr } = spawnSync(process.execPath, ['-'], { cwd: folder, input, encoding: 'utf8' });
    assert.match(stderr, /this program cannot be started again/);
});
