// `Pool`: clients that are kept and used again.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { Client, Pool, Server } from 'mcpbolt';

const main = new URL('../index.mjs', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'mcpbolt-pool-'));
after(() => rmSync(folder, { recursive: true }));
const program = join(folder, 'server.mjs');
writeFileSync(
    program,
    `import { Server } from ${JSON.stringify(main)};
    const server = new Server('pid', '1', { subscriptions: true });
    server.tool('pid', {}, () => String(process.pid));
    server.resource('note://1', {}, () => 'one');
    await server.run();`
);
const COMMAND = [process.execPath, program];
const pid = async client => Number((await client.callTool('pid')).content[0].text);
const turn = () => new Promise(setImmediate);

test('R-POL-01 R-POL-02 R-POL-05 callers share few connections and each has its own meanwhile', async t => {
    const pool = new Pool({ maxConnections: 2 });
    t.after(() => pool.close());
    const call = revision =>
        pool.use(COMMAND, { revision }, async client => {
            assert.equal(client.revision, revision);
            const both = [await pid(client), await pid(client)];
            assert.equal(both[0], both[1]);
            return both[0];
        });
    const servers = await Promise.all(Array.from({ length: 12 }, (_, n) => call(n % 2 ? '2025-06-18' : '2026-07-28')));
    const { opened, reused, idle, inUse, waiting } = pool.counts;
    assert.equal(new Set(servers).size, opened);
    assert.ok(opened <= 4);
    assert.deepEqual([opened + reused, idle, inUse, waiting], [12, opened, 0, 0]);
});

test('R-POL-01 other credentials, headers and functions make other connections', async t => {
    const serving = await new Server('http', '1').serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const pool = new Pool();
    t.after(() => pool.close());
    const trace = () => {};
    const options = [{}, { auth: { type: 'bearer', token: 'a' } }, { auth: { type: 'bearer', token: 'b' } }, { headers: { x: '1' } }, { timeout: 5000 }, { trace }];
    for (let n = 0; n < 2; n++) for (const one of options) await pool.use(serving.address, one, () => {});
    assert.deepEqual([pool.counts.opened, pool.counts.reused], [options.length, options.length]);
});

test('R-POL-03 callers wait in order for a limited time', async t => {
    {
        const pool = new Pool({ maxConnections: 1, maxWaiting: 2 });
        t.after(() => pool.close());
        const order = [];
        const client = await pool.acquire(COMMAND);
        const waiting = [1, 2].map(number => pool.use(COMMAND, () => order.push(number)));
        assert.equal(pool.counts.waiting, 2);
        await assert.rejects(pool.acquire(COMMAND), { code: 'ERR_MCP_OVERLOADED' });
        pool.release(client);
        await Promise.all(waiting);
        assert.deepEqual(order, [1, 2]);
    }
    const pool = new Pool({ maxConnections: 1, waitTimeout: 100 });
    t.after(() => pool.close());
    await pool.use(COMMAND, () => assert.rejects(pool.acquire(COMMAND), { code: 'ERR_MCP_TIMEOUT' }));
    assert.equal(pool.counts.timedOut, 1);
});

test('R-POL-03 a connection that breaks leaves the pool', async t => {
    const pool = new Pool({ maxConnections: 1 });
    t.after(() => pool.close());
    const first = await pool.use(COMMAND, async client => {
        const own = await pid(client);
        process.kill(own, 'SIGKILL');
        while (!client.closed) await turn();
        return own;
    });
    const client = await pool.acquire(COMMAND);
    const second = await pid(client);
    pool.release(client, { discard: true });
    pool.release(client);
    const other = await pool.acquire(COMMAND);
    const third = await pid(other);
    pool.release(other);
    // One that breaks while nobody has it.
    process.kill(third, 'SIGKILL');
    while (!other.closed) await turn();
    const fourth = await pool.use(COMMAND, pid);
    assert.equal(new Set([first, second, third, fourth]).size, 4);
    assert.deepEqual([pool.counts.opened, pool.counts.dropped], [4, 3]);
});

for (const revision of ['2025-06-18', '2026-07-28'])
    test(`R-POL-04 a connection with subscriptions goes to nobody else, in ${revision}`, async t => {
        const pool = new Pool({ sharing: 2 });
        t.after(() => pool.close());
        const own = await pool.use(COMMAND, { revision }, async client => {
            const own = await pid(client);
            await client.subscribe('note://1');
            assert.notEqual(await pool.use(COMMAND, { revision }, pid), own);
            return own;
        });
        assert.notEqual(await pool.use(COMMAND, { revision }, pid), own);
    });

for (const revision of ['2025-06-18', '2026-07-28'])
    test(`R-POL-04 a connection with a log level goes to nobody else, in ${revision}`, async t => {
        const pool = new Pool({ sharing: 2 });
        t.after(() => pool.close());
        const [first, second] = [await pool.acquire(COMMAND, { revision }), await pool.acquire(COMMAND, { revision })];
        const own = await pid(first);
        assert.equal(await pid(second), own);
        await first.setLogLevel('debug');
        pool.release(first);
        assert.notEqual(await pool.use(COMMAND, { revision }, pid), own);
        pool.release(second);
        assert.notEqual(await pool.use(COMMAND, { revision }, pid), own);
        assert.equal(pool.counts.dropped, 1);
    });

test('R-POL-05 a client that is given back twice is not taken from its next caller', async t => {
    const pool = new Pool();
    t.after(() => pool.close());
    const first = await pool.acquire(COMMAND);
    assert.ok(first instanceof Client && first.constructor === Client);
    assert.equal(first.on('log', () => {}), first);
    const own = await pid(first);
    pool.release(first);
    const second = await pool.acquire(COMMAND);
    pool.release(first);
    pool.release(first, { discard: true });
    assert.deepEqual([pool.counts.inUse, pool.counts.idle], [1, 0]);
    assert.notEqual(await pool.use(COMMAND, pid), own);
    assert.equal(await pid(second), own);
    pool.release(second);
    assert.deepEqual([pool.counts.inUse, pool.counts.idle, pool.counts.dropped], [0, 2, 0]);
});

test('a connection that goes while its grant is on its way is replaced', async t => {
    const pool = new Pool({ maxConnections: 1, sharing: 2 });
    t.after(() => pool.close());
    const [first, second] = [await pool.acquire(COMMAND), await pool.acquire(COMMAND)];
    const own = await pid(first);
    const waiting = pool.acquire(COMMAND);
    assert.equal(pool.counts.waiting, 1);
    pool.release(first);
    pool.release(second, { discard: true });
    assert.notEqual(await pid(await waiting), own);
    assert.deepEqual([pool.counts.inUse, pool.counts.dropped], [1, 1]);
    // The pool is closed meanwhile.
    const fourth = await pool.acquire(COMMAND);
    const late = assert.rejects(pool.acquire(COMMAND), { code: 'ERR_MCP_CLOSED', message: 'the pool is closed' });
    assert.equal(pool.counts.waiting, 1);
    pool.release(fourth);
    await pool.close();
    await late;
});

test('idle connections end with time and a closed pool has nothing', async t => {
    {
        const pool = new Pool({ idleTimeout: 50 });
        t.after(() => pool.close());
        const client = await pool.use(COMMAND, client => client);
        while (!client.closed) await new Promise(resolve => setTimeout(resolve, 5));
        assert.deepEqual([pool.counts.closedIdle, pool.counts.idle], [1, 0]);
    }
    const pool = new Pool({ maxConnections: 1 });
    const client = await pool.acquire(COMMAND);
    const waiting = assert.rejects(pool.acquire(COMMAND), { code: 'ERR_MCP_CLOSED' });
    await pool.close();
    await waiting;
    await assert.rejects(pool.acquire(COMMAND), { code: 'ERR_MCP_CLOSED' });
    assert.ok(client.closed);
    pool.release(client);
});

test('what cannot be opened leaves no place behind', async t => {
    const pool = new Pool({ maxConnections: 1 });
    t.after(() => pool.close());
    for (let n = 0; n < 2; n++) await assert.rejects(pool.acquire(['/nothing/here']), { code: 'ERR_MCP_SPAWN' });
    assert.deepEqual([pool.counts.failed, pool.counts.opening], [2, 0]);
    assert.throws(() => new Pool({ waitTimeout: -1 }), /waitTimeout/);
});
