import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Client, json, McpError, Server } from 'mcpbolt';
import { folder, program } from './wire.mjs';

const DIAGNOSTIC = new URL('examples/diagnostic.mjs', folder).pathname;
const { MCPBOLT_TRACE = '' } = process.env;
const diagnostic = options =>
    Client.spawn(process.execPath, [DIAGNOSTIC], { stderr: 'ignore', ...options, env: { MCPBOLT_TRACE, ...options?.env } });
const failsWith = code => error => error instanceof McpError && error.code === code;
const stats = async client => JSON.parse((await client.callTool('stats')).content[0].text);

/** Waits until the diagnostic server's counters are as they should be. */
async function untilStats(client, is) {
    for (;;) {
        const now = await stats(client);
        if (is(now)) return now;
        await new Promise(resolve => setTimeout(resolve, 10));
    }
}

for (const [opening, revision] of [
    ['probe', '2026-07-28'],
    ['stateless', '2026-07-28'],
    ['handshake', '2025-11-25']
]) {
    test(`a session, opened by ${opening}`, async () => {
        const client = await diagnostic({ opening });
        assert.equal(client.revision, revision);
        const tools = await client.listTools();
        assert.deepEqual(tools.map(tool => tool.name), ['echo', 'resize', 'sleep', 'progress', 'stats']);
        assert.equal((await client.callTool('echo', { text: 'grüezi 😀' })).content[0].text, 'grüezi 😀');
        const seen = [];
        await client.callTool('progress', { n: 3 }, { onProgress: progress => seen.push(progress) });
        assert.deepEqual(seen, [1, 2, 3].map(progress => ({ progress, total: 3 })));
        await client.ping();
        assert.deepEqual(await client.close(), { code: 0, signal: null });
        await assert.rejects(client.callTool('echo', { text: '' }), failsWith('ERR_MCP_CLOSED'));
    });
}

test('a client held to one revision', async () => {
    for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']) {
        const client = await diagnostic({ revision });
        assert.equal(client.revision, revision);
        assert.equal((await client.callTool('echo', { text: 'hi' })).content[0].text, 'hi');
        assert.equal(client.strayCount, 0);
        await client.close();
    }
    await assert.rejects(diagnostic({ revision: '1999-12-31' }), failsWith('ERR_MCP_MISUSE'));
});

test('an aborted call is cancelled on the wire', async () => {
    const client = await diagnostic();
    const controller = new AbortController();
    const call = client.callTool('sleep', { ms: 60_000 }, { signal: controller.signal });
    await untilStats(client, ({ active }) => active === 1);
    controller.abort('no longer needed');
    await assert.rejects(call, error => failsWith('ERR_MCP_CANCELLED')(error) && error.cause === 'no longer needed');
    await untilStats(client, ({ cancelled, active }) => cancelled === 1 && active === 0);
    await assert.rejects(
        client.callTool('sleep', { ms: 1 }, { signal: AbortSignal.abort() }),
        failsWith('ERR_MCP_CANCELLED')
    );
    assert.equal((await stats(client)).started, 1);
    await client.close();
});

test('a call that takes too long is given up, and the server told', async () => {
    const client = await diagnostic();
    await assert.rejects(client.callTool('sleep', { ms: 60_000 }, { timeout: 100 }), failsWith('ERR_MCP_TIMEOUT'));
    await untilStats(client, ({ cancelled }) => cancelled === 1);
    await client.close();
});

test('errors of the server keep their code and data', async () => {
    const client = await diagnostic();
    await assert.rejects(client.request('no/such'), error => failsWith('ERR_MCP_PEER')(error) && error.rpcCode === -32601);
    const broken = await client.callTool('echo', { text: 7 });
    assert.equal(broken.isError, true);
    await assert.rejects(client.listPrompts(), failsWith('ERR_MCP_UNSUPPORTED'));
    await client.close();
});

test('the death of the server ends what waits, with its reason', async () => {
    const client = await Client.spawn(process.execPath, program(`
        import { Server } from 'mcpbolt';
        await new Server('mortal', '1').tool('die', {}, () => process.kill(process.pid, 'SIGKILL')).run();
    `), { cwd: folder.pathname, env: process.env });
    await assert.rejects(client.callTool('die'), error => {
        return failsWith('ERR_MCP_CLOSED')(error) && error.cause.code === 'ERR_MCP_PEER_EXITED';
    });
    assert.equal(client.closed.code, 'ERR_MCP_PEER_EXITED');
    assert.deepEqual(await client.close(), { code: null, signal: 9 });
});

test('what cannot be opened says so', async () => {
    await assert.rejects(Client.spawn('/no/such/program'), failsWith('ERR_MCP_SPAWN'));
    const quits = Client.spawn(process.execPath, ['-e', '0']);
    await assert.rejects(quits, error => failsWith('ERR_MCP_CLOSED')(error) && error.cause instanceof McpError);
});

test('a child\'s stderr comes line by line', async () => {
    const lines = [];
    const client = await diagnostic({ stderr: line => lines.push(line), env: { NODE_DEBUG: 'module' } });
    await client.close();
    assert.ok(lines.some(line => line.startsWith('MODULE')));
});

test('a child shares this process\'s stderr', { skip: process.platform === 'win32' }, async () => {
    const child = ['-c', 'echo from the child >&2; exec "$@"', 'sh', process.execPath, DIAGNOSTIC];
    const program = `import { Client } from ${JSON.stringify(import.meta.resolve('mcpbolt'))};
        await (await Client.spawn('/bin/sh', ${JSON.stringify(child)})).close();`;
    const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    assert.match(stderr, /^from the child$/m);
});

test('a client of a server in this process', async () => {
    const log = [];
    let began;
    const waits = new Promise(resolve => (began = resolve));
    const server = new Server('near', '2.0', {
        instructions: 'Be brief.',
        lifespan: { start: () => log.push('start'), stop: () => log.push('stop') }
    })
        .tool('add', { inputSchema: { type: 'object', required: ['a', 'b'] } }, ({ a, b }) => a + b)
        .tool('wait', {}, (_, { signal }) => new Promise((_, no) => {
            log.push('wait');
            began();
            signal.addEventListener('abort', () => {
                log.push('aborted');
                no(signal.reason);
            });
        }))
        .resource('memo://a', { name: 'A' }, () => 'hello')
        .prompt('greet', {}, () => 'Hello');
    const client = await Client.connect(server, { opening: 'handshake' });
    assert.deepEqual([client.server.name, client.instructions], ['near', 'Be brief.']);
    assert.equal((await client.callTool('add', { a: 1, b: 2 })).content[0].text, '3');
    assert.deepEqual(await client.listResources(), [{ uri: 'memo://a', name: 'A' }]);
    assert.deepEqual(await client.readResource('memo://a'), [{ uri: 'memo://a', text: 'hello' }]);
    assert.equal((await client.getPrompt('greet')).messages[0].content.text, 'Hello');
    const controller = new AbortController();
    const call = client.callTool('wait', {}, { signal: controller.signal });
    await client.ping();
    await waits;
    controller.abort();
    await assert.rejects(call, failsWith('ERR_MCP_CANCELLED'));
    await client[Symbol.asyncDispose]();
    await new Promise(resolve => setTimeout(resolve, 50));
    assert.deepEqual(log, ['start', 'wait', 'aborted', 'stop']);
});

test('integers that no number can hold', async () => {
    const server = new Server('numbers', '1')
        .tool('raw', {}, (_, ctx) => json(ctx.argumentsJson))
        .tool('lossy', {}, ({ n }) => ({ n }));
    const client = await Client.connect(server);
    const sent = '{"n":123456789012345678901,\n"f":0.10000000000000000001}';
    const call = name => ({ name, arguments: { n: 2 ** 53 + 2 } });
    assert.match(await client.requestJson('tools/call', json(`{"name":"raw","arguments":${sent}}`)), /"n":123456789012345678901, ?"f":0.10000000000000000001/);
    assert.deepEqual((await client.callTool('raw', json(sent))).structuredContent, JSON.parse(sent));
    assert.match(await client.requestJson('tools/call', json(`{"name":"lossy","arguments":${sent}}`)), /"n":123456789012345680000\D/);
    assert.deepEqual((await client.request('tools/call', call('lossy'))).structuredContent, { n: 2 ** 53 + 2 });
    await assert.rejects(client.requestJson('no/such'), failsWith('ERR_MCP_PEER'));
    assert.throws(() => json('{"n":}'), SyntaxError);
    await client.close();
});

test('a log message of no known level is a mistake', async () => {
    const server = new Server('loud', '1').tool('loud', {}, (_, ctx) => {
        assert.throws(() => ctx.log('loud', 1), failsWith('ERR_MCP_MISUSE'));
        return 'thrown';
    });
    const client = await Client.connect(server);
    assert.equal((await client.callTool('loud')).content[0].text, 'thrown');
    await client.close();
});

test('the wire can be watched, without its secrets', async () => {
    const seen = [];
    const client = await diagnostic({ trace: (direction, message) => seen.push([direction, message]) });
    await client.callTool('echo', { text: 'hello', password: 'hunter2' });
    await client.close();
    const call = seen.find(([, message]) => message.includes('tools/call'));
    assert.equal(call[0], 'out');
    assert.match(call[1], /"password":"\*\*\*"/);
    assert.ok(seen.some(([direction, message]) => direction === 'in' && message.includes('hello')));
    assert.ok(!seen.some(([, message]) => message.includes('hunter2')));
});
