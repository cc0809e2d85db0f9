// Servers of npm's fastmcp, by themselves and on our engine.
import assert from 'node:assert/strict';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from 'mcpbolt';
import { accelerate } from 'mcpbolt/sdk';
import { make } from './fast.mjs';
import { COMMAND } from './programs.mjs';
import { expectedOf, Talk } from './talk.mjs';
import { until } from './until.mjs';
import { failsWith, folder } from './wire.mjs';

const FAST = fileURLToPath(new URL('fast.mjs', import.meta.url));
const call = (name, args, meta) => ({ method: 'tools/call', params: { name, ...(args && { arguments: args }), ...(meta && { _meta: meta }) } });
const read = uri => ({ method: 'resources/read', params: { uri } });
const complete = (ref, name, value) => ({ method: 'completion/complete', params: { ref, argument: { name, value } } });
const lists = ['tools', 'resources', 'resources/templates', 'prompts'].map(what => ({ method: `${what}/list` }));

const SCRIPT = [
    { method: 'ping' },
    ...lists,
    call('echo', { text: 'a' }),
    call('echo', { text: 'ü🦀\u2028' }),
    call('echo', { text: 'x'.repeat(5000) }),
    ...[{ text: '' }, { text: 1 }, {}, undefined, { text: 'a', more: 1 }].map(args => call('echo', args)),
    ...['none', 'block', 'many', 'wrong', 'throws', 'refuses', 'late', 'streams', 'log', 'elicit', 'nobody'].map(name => call(name)),
    call('sum', { a: 1, b: 2 }),
    call('sum', { a: 1 }),
    call('progress', { n: 3 }, { progressToken: 't' }),
    call('progress', { n: 3 }),
    ...['memo://a', 'memo://blob', 'user://7', 'memo://none'].map(read),
    { method: 'prompts/get', params: { name: 'greet', arguments: { who: 'Ada' } } },
    { method: 'prompts/get', params: { name: 'greet' } },
    { method: 'prompts/get', params: { name: 'none' } },
    complete({ type: 'ref/prompt', name: 'greet' }, 'who', 'A'),
    complete({ type: 'ref/resource', uri: 'user://{id}' }, 'id', 'x'),
    complete({ type: 'ref/prompt', name: 'none' }, 'who', 'A'),
    { method: 'logging/setLevel', params: { level: 'error' } },
    { method: 'logging/setLevel', params: { level: 'loud' } },
    { method: 'resources/subscribe', params: { uri: 'memo://a' } },
    { method: 'resources/unsubscribe', params: { uri: 'memo://a' } },
    { method: 'com.example/none' },
    call('add'),
    ...lists,
    call('added')
];

const HOW = { accelerated: [FAST, 'accelerated'], exec: [COMMAND, 'exec', FAST, 'own'] };

for (const [how, revision] of [['accelerated', '2025-06-18'], ['accelerated', '2025-11-25'], ['exec', '2025-11-25']])
    test(`${SCRIPT.length} interactions are the same, ${how}, ${revision}`, async () => {
        const [theirs, ours] = [[FAST, 'own'], HOW[how]].map(args => new Talk(args, 'stdio'));
        assert.deepEqual(await ours.open(revision), await theirs.open(revision));
        for (const [index, step] of SCRIPT.entries()) {
            const [expected, actual] = await Promise.all([theirs.step(index, step), ours.step(index, step)]);
            // What is carried is written as it stands.
            assert.deepEqual(actual, expectedOf(expected), JSON.stringify(step));
        }
        await Promise.all([theirs.wire.end(), ours.wire.end()]);
    });

test('over HTTP, one session of it for all clients', async t => {
    const server = make();
    const accelerated = accelerate(server);
    const serving = await accelerated.serve('http://127.0.0.1:0/mcp', { signals: false });
    const clients = await Promise.all([1, 2].map(() => Client.connect(serving.address)));
    t.after(async () => {
        for (const client of clients) await client.close();
        await serving.close();
    });
    for (const client of clients) {
        assert.deepEqual([client.server.name, client.instructions], ['fast', 'Try it.']);
        assert.equal((await client.callTool('echo', { text: 'a' })).content[0].text, 'a');
        assert.equal((await client.listTools()).length, 15);
        assert.equal((await client.readResource('memo://a'))[0].text, 'a');
    }
    await until(() => server.sessions.length > 0);
    assert.equal(server.sessions.length, 1);
    assert.deepEqual(accelerated.report().native, []);
});

test('one that authenticates its clients is not served without that', () => {
    const authenticate = async () => ({ id: 1 });
    assert.throws(() => accelerate(make({ authenticate })), failsWith('ERR_MCP_MISUSE'));
});

test('the command serves one that a module exports', async () => {
    const place = mkdtempSync(join(tmpdir(), 'mcpbolt-fast-'));
    symlinkSync(new URL('node_modules', folder).pathname, join(place, 'node_modules'));
    const file = join(place, 'server.mjs');
    writeFileSync(file, `export { make } from ${JSON.stringify(FAST)};`);
    const client = await Client.spawn(process.execPath, [new URL('bin/mcpbolt.mjs', folder).pathname, 'run', `${file}:make`]);
    assert.equal((await client.callTool('echo', { text: 'a' })).content[0].text, 'a');
    await client.close();
});
