// While a handler or a caller holds JavaScript's thread, whatever does not need it goes on.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Server } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, folder, program, spawned, Wire } from './wire.mjs';

const HELD_MS = process.env.MCPBOLT_SOAK ? 10_000 : 5000;
/** A hundred times what is promised, and less than half of what waiting for the loop would take. */
const LIMIT_MS = 2000;
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

const SERVER = program(`
    import { Server } from 'mcpbolt';
    const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    await new Server('held', '1')
        .tool('hold', {}, ({ ms }) => { const end = Date.now() + ms; while (Date.now() < end); return 'held'; })
        .tool('echo', { inputSchema: text }, async ({ text }) => text)
        .run();
`);

test('a handler that holds the loop delays nothing else', async t => {
    const wire = await Wire.open(SERVER);
    wire.call('held', 'hold', { ms: HELD_MS });
    wire.call('queued', 'echo', { text: 'after' });
    await pause(200);
    const until = Date.now() + HELD_MS - 1000;
    const took = [];
    const ask = async (expected, code, request) => {
        const began = performance.now();
        wire.send({ jsonrpc: '2.0', id: took.length, ...request });
        const line = await wire.line();
        took.push(performance.now() - began);
        const answer = JSON.parse(line);
        assert.deepEqual([answer.id, answer.error?.code], [took.length - 1, code]);
        assert.ok(line.includes(expected), line);
    };
    while (Date.now() < until) {
        await ask('{}', undefined, { method: 'ping' });
        await ask('hold', undefined, { method: 'tools/list' });
        await ask('no such', -32601, { method: 'no such' });
        await ask('nobody', -32602, { method: 'tools/call', params: { name: 'nobody' } });
        await ask('string', -32602, { method: 'tools/call', params: { name: 'echo', arguments: { text: 7 } } });
        // A call that is cancelled while it waits gives its id back once the engine has heard of it.
        wire.call(took.length, 'echo', { text: 'never' });
        wire.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: took.length } });
        await ask('{}', undefined, { method: 'ping' });
        await pause(100);
    }
    assert.deepEqual([JSON.parse(await wire.line()).id, JSON.parse(await wire.line()).id], ['held', 'queued']);
    await wire.end();
    took.sort((a, b) => a - b);
    const [median, longest] = [took[took.length >> 1], took.at(-1)];
    t.diagnostic(`held loop: ${took.length} exchanges, median ${median.toFixed(2)} ms, longest ${longest.toFixed(2)} ms`);
    assert.ok(longest < LIMIT_MS, `${longest} ms`);
});

const CLIENT = `
    import { Client } from 'mcpbolt';
    const client = await Client.spawn(process.execPath, process.argv.slice(1), { opening: 'handshake' });
    const call = client.callTool('echo', { text: 'never' }, { timeout: 500 });
    const due = process.hrtime.bigint() + 500_000_000n;
    for (const end = Date.now() + 5000; Date.now() < end; );
    const code = await call.catch(error => error.code);
    await client.close();
    console.log(JSON.stringify({ due: String(due), code }));
`;
const SILENT = `
    const { createInterface } = require('node:readline');
    const { writeFileSync } = require('node:fs');
    const [file] = process.argv.slice(1);
    createInterface({ input: process.stdin }).on('line', line => {
        const { id, method } = JSON.parse(line);
        if (method === 'notifications/cancelled') writeFileSync(file, String(process.hrtime.bigint()));
        if (method !== 'initialize') return;
        const serverInfo = { name: 's', version: '1' };
        const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
        console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
`;

test('a deadline passes on time while the client holds the loop', async t => {
    const heard = join(mkdtempSync(join(tmpdir(), 'mcpbolt-')), 'heard');
    const args = ['--input-type=module', '-e', CLIENT, '--', '-e', SILENT, '--', heard];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: 30_000 });
    const { due, code } = JSON.parse(stdout);
    assert.equal(code, 'ERR_MCP_TIMEOUT');
    const late = Number(BigInt(readFileSync(heard, 'utf8')) - BigInt(due)) / 1e6;
    t.diagnostic(`held loop: the deadline's cancellation came after ${late.toFixed(2)} ms`);
    assert.ok(late > -10 && late < LIMIT_MS, `${late} ms`);
});

const hold = ms => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test('a listener that sends a request takes no answer of another that came meanwhile', async () => {
    const server = new Server('live', '1', { listChanges: true });
    const client = await connect(server, { opening: 'handshake' });
    // The server knows that the client is ready.
    await client.ping();
    let listed;
    client.once('toolsChanged', () => (listed = client.listTools()));
    server.tool('one', {}, () => 1);
    hold(50);
    const pinged = client.ping();
    // Both the change and the answer wait.
    hold(50);
    await pinged;
    assert.deepEqual((await listed).map(({ name }) => name), ['one']);
});

test('who does not keep up misses log messages, and nothing that has changed', async () => {
    const done = join(mkdtempSync(join(tmpdir(), 'mcpbolt-held-')), 'done');
    const client = await spawned(
        `
        import { createInterface } from 'node:readline';
        import { writeFileSync } from 'node:fs';
        const say = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
        const tell = (method, params) => say({ method: 'notifications/' + method, params });
        const result = { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 's', version: '1' } };
        for await (const line of createInterface({ input: process.stdin })) {
            const { id, method } = JSON.parse(line);
            if (method === 'initialize') say({ id, result });
            else if (method === undefined) writeFileSync(${JSON.stringify(done)}, '');
            else if (method === 'prompts/list') {
                for (let i = 0; i < 10_000; i++) tell('message', { level: 'info', data: i });
                for (let i = 0; i < 100; i++) tell('tools/list_changed');
                tell('resources/updated', { uri: 'memo://a' });
                tell('elicitation/complete', { elicitationId: 'e' });
                say({ id: 'last', method: 'ping' });
                say({ id, result: {} });
            }
        }
        `,
        { opening: 'handshake' }
    );
    const heard = { log: 0, toolsChanged: 0, resourceUpdated: 0, elicitationComplete: 0 };
    for (const name of Object.keys(heard)) client.on(name, () => heard[name]++);
    const gone = client.request('prompts/list');
    for (const until = Date.now() + 20_000; !existsSync(done); hold(10)) assert.ok(Date.now() < until);
    await gone;
    const { log, ...changes } = heard;
    assert.ok(log > 8000 && log < 10_000, `${log} log messages`);
    assert.deepEqual(changes, { toolsChanged: 1, resourceUpdated: 1, elicitationComplete: 1 });
});

test('a call that comes while others are given up is none of theirs', async () => {
    const wire = await Wire.open(
        program(`
            import { writeSync } from 'node:fs';
            import { Server } from 'mcpbolt';
            const calls = [];
            const wait = (_, ctx) => new Promise(() => {
                calls.push(ctx);
                if (calls.length === 1) ctx.signal.addEventListener('abort', () => calls[1].progress(1));
            });
            await new Server('held', '1', { onError: () => {} })
                .tool('wait', {}, wait)
                .tool('hold', {}, ({ ms }) => { writeSync(2, 'held'); const end = Date.now() + ms; while (Date.now() < end); return 'held'; })
                .tool('echo', {}, () => 'x')
                .run();
        `)
    );
    for (const id of ['first', 'second']) wire.call(id, 'wait', {}, { progressToken: id });
    wire.call('held', 'hold', { ms: 1000 });
    await until(() => wire.stderr.includes('held'));
    for (const requestId of ['first', 'second']) wire.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    wire.call('new', 'echo', {}, { progressToken: 'new' });
    assert.equal((await wire.answer('new')).result.content[0].text, 'x');
    const progress = wire.others.filter(({ method }) => method === 'notifications/progress');
    assert.deepEqual(progress, []);
    await wire.end();
});
