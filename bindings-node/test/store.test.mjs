// `store`: processes of a server that accept each other's sessions.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Own, Server } from 'mcpbolt';
import { Session } from './http.mjs';
import { place } from './place.mjs';
import { at, SERVER, Tree } from './trees.mjs';
import { until } from './until.mjs';
import { valkey } from './valkey.mjs';
import { program } from './wire.mjs';

/** A file of keys, the same for all processes of a server. */
function keys(...lines) {
    const file = join(place('mcpbolt-keys-'), 'store.keys');
    writeFileSync(file, lines.join('\n'), { mode: 0o600 });
    return file;
}

test('R-SES-05 servers with one store and the same keys accept sessions of each other', { timeout: 120_000 }, async () => {
    const store = { url: 'redis://127.0.0.1:1/0', keys: keys('a1'.repeat(32), 'b2'.repeat(32)), prefix: 'many:' };
    const source = program(SERVER + at(`store: ${JSON.stringify(store)}`));
    const [one, two, other] = [await Tree.start(source), await Tree.start(source), await Tree.start()];
    const client = new Client({ name: 'official', version: '1' });
    const transport = new StreamableHTTPClientTransport(one.address);
    await client.connect(transport);
    const { sessionId } = transport;
    const again = new Client({ name: 'official', version: '1' });
    await again.connect(new StreamableHTTPClientTransport(two.address, { sessionId }));
    const { content } = await again.callTool({ name: 'process', arguments: {} });
    assert.ok(two.workers.includes(Number(content[0].text)));
    const stranger = new Client({ name: 'official', version: '1' });
    await stranger.connect(new StreamableHTTPClientTransport(other.address, { sessionId }));
    await assert.rejects(stranger.callTool({ name: 'process', arguments: {} }), { code: 404 });
    await Promise.all([client, again, stranger].map(one => one.close()));
    await Promise.all([one, two, other].map(tree => tree.end()));
});

test('what a store cannot be is told', async () => {
    const [good, short] = [keys('a1'.repeat(32), 'b2'.repeat(32)), keys('a1'.repeat(32), 'b2b2')];
    for (const [store, why] of [
        [{ url: 'http://127.0.0.1:1', keys: good }, /^store: .* write redis:/],
        [{ url: 'redis://127.0.0.1:1', keys: short }, /^store\.keys: line 2 is not a key/],
        [{ url: 'redis://127.0.0.1:1', keys: '/none/store.keys' }, /^store\.keys: it cannot be read/],
        [{ url: 'rediss://127.0.0.1:1', keys: good, ca: '/none/ca.pem' }, /^store\.ca: /]
    ]) {
        const server = new Server('many', '1');
        await assert.rejects(server.serve('http://127.0.0.1:0/mcp', { store }), { code: 'ERR_MCP_MISUSE', message: why });
    }
});

/** A server that says which one it is. */
function offer(name, options = {}) {
    const server = new Server('many', '1', { subscriptions: true, ...options });
    server.tool('which', {}, () => name);
    server.resource('memo://a', {}, () => 'a memo');
    return server;
}

test('R-SES-05 R-RES-06 servers with one store go on with sessions of each other, and tell each other of changes', async t => {
    const store = { url: await valkey(t), keys: keys('a1'.repeat(32), 'b2'.repeat(32)) };
    const [one, other] = ['one', 'other'].map(name => offer(name));
    const [here, there] = await Promise.all([one, other].map(server => server.serve('http://127.0.0.1:0/mcp', { store })));
    t.after(() => Promise.all([here.close(), there.close()]));
    const session = await Session.open(here.address);
    assert.equal(await session.said('which'), 'one');
    session.url = there.address;
    assert.equal(await session.said('which'), 'other');
    const updates = [];
    const client = await Own.connect(there.address, { revision: '2025-11-25', on: { resourceUpdated: uri => updates.push(uri) } });
    await client.subscribe('memo://a');
    // Processes hear of each other once both have begun.
    await until(() => (one.resourceUpdated('memo://a'), updates.length > 0));
    await client.close();
});

test('R-S14-05 servers with one store count the calls of a client together', async t => {
    const store = { url: await valkey(t), keys: keys('a1'.repeat(32), 'b2'.repeat(32)) };
    const policy = { quota: { calls: 3, period: 3_600_000 } };
    const all = await Promise.all(['one', 'other'].map(name => offer(name, { policy }).serve('http://127.0.0.1:0/mcp', { store })));
    t.after(() => Promise.all(all.map(one => one.close())));
    const session = await Session.open(all[0].address);
    const statuses = [];
    for (const { address } of [...all, ...all, ...all]) {
        session.url = address;
        statuses.push((await session.request('tools/call', { name: 'which', arguments: {} })).status);
    }
    assert.deepEqual(statuses, [200, 200, 200, 429, 429, 429]);
});

for (const revision of ['2025-11-25', '2026-07-28']) {
    const title = `a task that one server runs is known to others with its store, ${revision} (R-TSK-10, R-TSX-08, R-TSX-12)`;
    test(title, { timeout: 120_000 }, async t => {
        const store = { url: await valkey(t), keys: keys('a1'.repeat(32), 'b2'.repeat(32)) };
        const events = new EventEmitter();
        const optional = { taskSupport: 'optional' };
        const policy = { keys: { secret: { client: 'ada' } } };
        const [one, other] = await Promise.all(['one', 'other'].map(() => {
            const server = new Server('many', '1', { taskLimits: { pollInterval: 5 }, policy });
            server.tool('gate', optional, async (_, ctx) => {
                ctx.beginTask();
                return (await once(events, 'opens'))[0];
            });
            server.tool('wait', optional, async (_, ctx) => {
                ctx.beginTask();
                events.emit('waits');
                await once(ctx.signal, 'abort');
                events.emit('aborted');
            });
            return server.serve('http://127.0.0.1:0/mcp', { store });
        }));
        t.after(() => Promise.all([one.close(), other.close()]));
        const [here, there] = await Promise.all([one, other].map(({ address }) =>
            Own.connect(address, { revision, tasks: true, headers: { 'X-API-Key': 'secret' } })));
        const task = await here.startTool('gate');
        const same = there.task(task.id);
        assert.equal((await same.status()).status, 'working');
        const result = same.result();
        await until(() => events.emit('opens', 'through'));
        assert.equal((await result).content[0].text, 'through');
        assert.deepEqual(await task.status(), await same.status());
        const [waits, aborted] = ['waits', 'aborted'].map(name => once(events, name));
        const wait = await here.startTool('wait');
        await waits;
        await there.task(wait.id).cancel();
        await aborted;
        assert.equal((await wait.status()).status, 'cancelled');
        await Promise.all([here.close(), there.close()]);
    });
}

test('a store is refused where there are no sessions', async () => {
    const store = { url: 'redis://127.0.0.1:1/0', keys: keys('a1'.repeat(32), 'b2'.repeat(32)) };
    const refused = { code: 'ERR_MCP_MISUSE', message: /^store: a store shares sessions of HTTP, and .* has none/ };
    for (const address of ['tcp:127.0.0.1:0', `unix:${join(place('mcpbolt-store-'), 'socket')}`]) {
        await assert.rejects(offer('one').serve(address, { store }), refused);
    }
    await assert.rejects(offer('one').run('stdio:', { store }), refused);
});
