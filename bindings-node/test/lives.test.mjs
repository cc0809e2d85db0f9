// Servers and clients that are made and dropped, closed or not, leave nothing behind: `MCPBOLT_SOAK=N` has N times as
// many, up to 100,000 in memory, 5,000 on sockets and HTTP each, and 300 children.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Approval, Client, External, Front, Server } from 'mcpbolt';
import { within } from './until.mjs';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const SOAK = Number(process.env.MCPBOLT_SOAK ?? 1);
const AT_ONCE = 10;
/** The most memory and objects that may remain of all of them together. */
const LEFT_HEAP = 1 << 20;
const LEFT_RESIDENT = 24 << 20;
const CHILD = `import { Server } from ${JSON.stringify(new URL('../index.mjs', import.meta.url).href)};
await new Server('child', '1').tool('echo', {}, ({ text }) => text).tool('late', {}, async () => 'late').run();`;

const folder = mkdtempSync(join(tmpdir(), 'mcpbolt-'));
process.on('exit', () => rmSync(folder, { recursive: true }));

let alive = 0;
const registry = new FinalizationRegistry(() => alive--);
function seen(object) {
    alive++;
    registry.register(object);
    return object;
}

function made(options) {
    const server = new Server('lives', '1', { onError: () => server, onClosed: () => server, ...options });
    server.tool('echo', {}, ({ text }) => text + (server ? '' : '?'));
    server.tool('late', {}, async (_, ctx) => {
        server.context = ctx;
        await null;
        ctx.progress(1);
        return 'late';
    });
    return seen(server);
}

/** A server whose verifier leads to it. */
function verified() {
    const held = {};
    return (held.server = made({ policy: { verifier: () => held.server && 'anybody' } }));
}

/** A front whose callbacks lead to it. */
function front() {
    const held = {};
    const rules = [new Approval(['echo'], { approve: () => held.front !== undefined })];
    const policy = { verifier: () => held.front && 'anybody' };
    held.front = new Front(new External(made(), { rules }), { policy, middleware: [new Approval(['late'], { approve: () => held.front !== undefined })] });
    return seen(held.front);
}

/** A front that is mounted in a server, with a lifespan. */
function mounted() {
    const lives = { start: () => seen({}), stop: () => {} };
    return made({ lifespan: lives }).mount('far', new External(new Front(new External(made({ lifespan: lives }), { name: 'inner' }), { middleware: [{ request: (message, next) => next(message) }] }), { name: 'far' }));
}

async function used(client) {
    seen(client).self = client;
    assert.equal((await client.callTool('echo', { text: 'x' })).content[0].text, 'x');
    await client.callTool('late', {}, { onProgress: () => client });
    return client;
}

const onSampling = client => ({ onSampling: () => client });

/** A front before a server that live as long as the test. */
const SHARED = new Front(new External(new Server('lives', '1').tool('echo', {}, ({ text }) => text).tool('late', {}, async () => 'late')));

/** Each makes a server and a client, or a child and a client. */
const KINDS = {
    'in memory, closed': [100_000, 1000, async () => (await used(await Client.connect(made(), onSampling({})))).close()],
    'in memory, dropped': [100_000, 500, async () => void (await used(await Client.connect(made())))],
    'in memory, with listeners, closed': [
        20_000,
        200,
        async () => {
            const client = await used(await Client.connect(made(), { on: { closed: () => client } }));
            client.on('notification', () => client);
            await client.close();
        }
    ],
    'behind a front, closed': [20_000, 200, async () => (await used(await Client.connect(front()))).close()],
    'behind a front, dropped': [20_000, 200, async () => void (await used(await Client.connect(front())))],
    'with external servers, dropped': [5000, 50, async () => void (await used(await Client.connect(mounted())))],
    'behind a front that others use, dropped': [20_000, 200, async () => void (await used(await Client.connect(SHARED)))],
    'with a verifier, closed': [5000, 50, () => on('http://127.0.0.1:0/mcp', client => client.close(), verified())],
    'behind a front with a verifier, closed': [5000, 50, () => on('http://127.0.0.1:0/mcp', client => client.close(), front())],
    'on HTTP, closed': [5000, 50, () => on('http://127.0.0.1:0/mcp', client => client.close())],
    'on HTTP, dropped': [5000, 50, () => on('http://127.0.0.1:0/mcp', () => {})],
    'on sockets, closed': [5000, 50, i => on(`unix:${join(folder, String(i))}`, client => client.close())],
    'on sockets, dropped': [5000, 50, i => on(`unix:${join(folder, String(i))}`, () => {})],
    'children, closed': [150, 4, async () => (await used(await spawned())).close()],
    'children, dropped': [150, 4, async () => void (await used(await spawned()))],
    'children behind a front, dropped': [150, 4, async () => void (await used(await Client.connect(new Front(child()))))]
};

async function on(address, end, server = made()) {
    const serving = await server.serve(address, { signals: false, grace: 100 });
    await end(await used(await Client.connect(serving.address)));
    await serving.close();
}

const child = () => new External([process.execPath, '--input-type=module', '--eval', CHILD]);
const spawned = () => Client.spawn(process.execPath, ['--input-type=module', '--eval', CHILD]);

const count = path => readdirSync(path).length;

function children() {
    const own = String(process.pid);
    const isOwn = pid => {
        try {
            const [, , parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/\(.*\)/, 'name').split(' ').slice(1);
            return parent === own;
        } catch {
            return false;
        }
    };
    return readdirSync('/proc').filter(name => /^\d+$/.test(name) && isOwn(name)).length;
}

/** Once all that is over has ended: the collector runs, its finalizers, the threads, and what they tell. */
async function left() {
    for (let before = -1, now = NaN; before !== now; ) {
        before = now;
        for (let i = 0; i < 3; i++) (gc(), await pause(30));
        now = alive + count('/proc/self/task') + count('/proc/self/fd') + children();
        if (Number.isNaN(before)) before = -1;
    }
    const { heapUsed, rss } = process.memoryUsage();
    return { alive, threads: count('/proc/self/task'), descriptors: count('/proc/self/fd'), children: children(), heapUsed, rss };
}

let number = 0;
async function many(times, make) {
    for (let i = 0; i < times; i += AT_ONCE) {
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, times - i) }, () => make(number++)));
        // As a program does that has something else to do; dropped ones have threads until they are collected.
        if (i % 200 === 0) (gc(), await pause(1));
    }
    return left();
}

for (const [kind, [most, few, make]] of Object.entries(KINDS)) test(`servers and clients ${kind}, leave nothing behind`, { skip: process.platform !== 'linux' && 'by /proc' }, async t => {
    const times = Math.min(most, few * SOAK);
    await within('the first', many(Math.min(times, 2 * few), make));
    const before = await many(few, make);
    const after = await many(times, make);
    t.diagnostic(`${times} more: ${((after.heapUsed - before.heapUsed) / 1024).toFixed()} KiB of the heap, ${((after.rss - before.rss) / 1024).toFixed()} KiB resident, ${after.alive} objects`);
    assert.equal(after.alive, 0);
    assert.equal(after.children, before.children);
    assert.ok(after.threads <= before.threads, `${before.threads} threads were ${after.threads}`);
    assert.ok(after.descriptors <= before.descriptors, `${before.descriptors} descriptors were ${after.descriptors}`);
    assert.ok(after.heapUsed - before.heapUsed < LEFT_HEAP, `the heap grew from ${before.heapUsed} to ${after.heapUsed}`);
    assert.ok(after.rss - before.rss < LEFT_RESIDENT, `the process grew from ${before.rss} to ${after.rss}`);
});

test('the callbacks of a server and of a front that nobody holds are called as long as it is served', async () => {
    for (const make of [verified, front]) {
        const serving = await make().serve('http://127.0.0.1:0/mcp', { signals: false, grace: 100 });
        for (let i = 0; i < 20; i++) (gc(), await pause(5));
        const client = await within('the verdicts', (async () => used(await Client.connect(serving.address)))());
        await client.close();
        await serving.close();
    }
});

test('a client that somebody waits for, or that is listened to, is not collected', async t => {
    const server = new Server('held', '1', { listChanges: true }).tool('slow', {}, () => pause(300, 'slow'));
    const waits = (async () => (await (await Client.connect(server)).callTool('slow')).content[0].text)();
    const told = new Promise(resolve => void Client.connect(server, { opening: 'handshake', on: { toolsChanged: resolve } }));
    const listened = (async () => {
        const client = await Client.connect(server);
        for await (const change of await client.listen({ tools: true })) return change.type;
    })();
    for (let i = 0; i < 20; i++) (gc(), await pause(20));
    assert.equal(await within('the answer', waits), 'slow');
    server.tool('another', {}, () => {});
    await within('the event', told);
    assert.equal(await within('the change', listened), 'toolsChanged');
    server.close();
});
