// Many of everything, little of anything left: `MCPBOLT_SOAK=N` multiplies the rounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Client, McpError, Server } from 'mcpbolt';
import { Connection, Decoder, encodeRequest, Request } from 'mcpbolt/engine';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const ROUNDS = Number(process.env.MCPBOLT_SOAK ?? 1);
const AT_ONCE = 100;

for (const opening of ['handshake', 'probe']) test(`calls, cancels, rejections, progress and questions leave nothing behind, ${opening}`, async t => {
    const unexpected = [];
    process.on('warning', warning => unexpected.push(warning)).on('unhandledRejection', reason => unexpected.push(reason));
    const server = new Server('soak', '1', { onError: () => {} })
        .tool('echo', {}, async ({ text }) => text)
        .tool('rejects', {}, async () => Promise.reject(new Error('no')))
        .tool('waits', {}, (_, { signal }) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))))
        .tool('late', {}, () => new Promise(resolve => setImmediate(resolve, 'late')))
        .tool('asks', {}, async (_, ctx) => (await ctx.sample({ messages: '?', maxTokens: 1 })).content.text)
        .tool('progress', {}, (_, ctx) => {
            for (let i = 0; i < 5; i++) ctx.progress(i);
        });
    const onSampling = async (_, { signal }) => {
        await new Promise(resolve => setImmediate(resolve));
        signal.throwIfAborted();
        return { model: 'm', content: '!' };
    };
    const client = await Client.connect(server, { opening, onSampling });
    t.after(() => client.close());
    const shared = new AbortController();
    const abortable = async name => {
        const controller = new AbortController();
        const call = client.callTool(name, {}, { signal: controller.signal });
        setImmediate(() => controller.abort());
        await call.catch(error => assert.equal(error.code, 'ERR_MCP_CANCELLED'));
    };
    const batch = () =>
        Promise.all(
            Array.from({ length: AT_ONCE }, (_, i) => {
                if (i % 25 === 0) return client.callTool('asks');
                if (i % 25 === 1) return abortable('asks');
                if (i % 5 === 0) return client.callTool('rejects');
                if (i % 5 === 1) return abortable('waits');
                if (i % 5 === 2) return abortable('late');
                if (i % 5 === 3) return client.callTool('progress', {}, { onProgress: () => {} });
                return client.callTool('echo', { text: 'x'.repeat(i) }, { signal: shared.signal });
            })
        );
    const used = async rounds => {
        for (let i = 0; i < rounds; i++) await batch();
        gc();
        const { heapUsed, rss } = process.memoryUsage();
        return { heapUsed, rss };
    };
    // V8's reserve for garbage grows with the garbage at one time, up to a steady size.
    await used(50 * Math.ceil(ROUNDS / 10));
    const before = await used(20);
    const after = await used(50 * ROUNDS);
    assert.ok(after.heapUsed - before.heapUsed < 1 << 20, `the heap grew from ${before.heapUsed} to ${after.heapUsed}`);
    assert.ok(after.rss - before.rss < 24 << 20, `the process grew from ${before.rss} to ${after.rss}`);
    assert.deepEqual(unexpected, []);
});

test('connections that a program drives itself leave nothing behind', async () => {
    const once = () => {
        const client = new Connection({ side: 'client', name: 'c', opening: 'handshake' });
        const server = new Connection({ side: 'server', name: 's', capabilities: { tools: {} } });
        const run = () => {
            for (let there, back; (there = client.output()), (back = server.output()), there || back; ) {
                if (there) server.feed(there);
                if (back) client.feed(back);
            }
        };
        run();
        for (let i = 0; i < 20; i++) client.request('tools/call', { name: `${i}`, text: 'x'.repeat(i * 100) }, { progress: true });
        client.cancel(client.request('tools/call', {}));
        run();
        for (const event of server.drain())
            if (event instanceof Request && event.message.name !== '7') (event.progress(1), event.respond({ content: [event.message.params] }));
        run();
        assert.equal(client.drain().filter(({ type }) => type === 'answered').length, 19);
        assert.equal(new Decoder().feed(encoded).drain().length, 20);
    };
    const encoded = Buffer.from(`${encodeRequest(1, 'tools/call', { text: 'x'.repeat(1000) })}\n`.repeat(20));
    const used = async rounds => {
        for (let i = 0; i < rounds; i++) {
            once();
            // Their native parts are freed between two turns of the loop.
            if (i % 10 === 0) await new Promise(resolve => setImmediate(resolve));
        }
        gc();
        await new Promise(resolve => setImmediate(resolve));
        const { heapUsed, rss } = process.memoryUsage();
        return { heapUsed, rss };
    };
    await used(400);
    const before = await used(400);
    const after = await used(500 * ROUNDS);
    assert.ok(after.heapUsed - before.heapUsed < 1 << 20, `the heap grew from ${before.heapUsed} to ${after.heapUsed}`);
    assert.ok(after.rss - before.rss < 24 << 20, `the process grew from ${before.rss} to ${after.rss}`);
});

test('calls that are cancelled while they wait never reach JavaScript', async () => {
    let called = 0;
    const server = new Server('soak', '1').tool('count', {}, () => ++called);
    const client = await Client.connect(server);
    const controller = new AbortController();
    const calls = Array.from({ length: 100 }, () => client.callTool('count', {}, { signal: controller.signal }));
    const settled = Promise.allSettled(calls);
    // The engine takes them and their cancellations while this thread does not look.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    controller.abort();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    for (const { reason } of await settled) assert.ok(reason instanceof McpError && reason.code === 'ERR_MCP_CANCELLED');
    assert.equal((await client.callTool('count')).content[0].text, '1');
    await client.close();
});
