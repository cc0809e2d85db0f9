// Every feature over every carrier, in each era.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Client, Server } from 'mcpbolt';
import { failsWith } from './wire.mjs';

const closing = [];
afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
});

const served = address => async server => {
    const serving = await server.serve(address);
    closing.push(() => serving.close());
    return serving.address;
};

/** How a server is reached; each gives an address. */
const CARRIERS = {
    http: served('http://127.0.0.1:0/mcp'),
    websocket: served('ws://127.0.0.1:0/mcp'),
    tcp: served('tcp:127.0.0.1:0'),
    length: served('tcp:127.0.0.1:0?framing=length'),
    unix: served(`unix:${join(tmpdir(), `mcpbolt-${process.pid}.sock`)}`),
    handler: async server => {
        const http = createServer(server.handler()).listen(0, '127.0.0.1');
        closing.push(() => (http.close(), http.closeAllConnections()));
        await new Promise(resolve => http.once('listening', resolve));
        return `http://127.0.0.1:${http.address().port}/mcp`;
    }
};

const ask = { type: 'object', properties: { name: { type: 'string' } } };
const make = () =>
    new Server('carried', '1', { listChanges: true, subscriptions: true, onError: () => {} })
        .tool('echo', {}, ({ text }) => text)
        .tool('sum', { outputSchema: { type: 'object' } }, ({ a, b }) => ({ sum: a + b }))
        .tool('progress', {}, (_, ctx) => [1, 2].forEach(n => ctx.progress(n, 2)))
        .tool('log', {}, (_, ctx) => ctx.log('error', 'x'))
        .tool('waits', {}, (_, { signal }) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))))
        .tool('form', {}, async (_, ctx) => (await ctx.elicit('Who?', ask)).content.name)
        .tool('model', {}, async (_, ctx) => (await ctx.sample({ messages: '?', maxTokens: 5 })).content.text)
        .tool('roots', {}, async (_, ctx) => (await ctx.roots())[0].uri)
        .resource('memo://a', {}, () => 'a memo')
        .resourceTemplate('user://{id}', {}, (_, { id }) => id)
        .prompt('greet', { arguments: [{ name: 'who', complete: () => ['Ada'] }] }, ({ who }) => `Greet ${who}`);

const textOf = ({ content }) => content[0]?.text;

for (const [name, reach] of Object.entries(CARRIERS))
    for (const revision of ['2026-07-28', '2025-11-25'])
        test(`every feature over ${name}, ${revision}`, async () => {
            const server = make();
            const client = await Client.connect(await reach(server), {
                revision,
                roots: ['file:///a'],
                onElicitation: () => ({ action: 'accept', content: { name: 'Ada' } }),
                onSampling: () => ({ model: 'm', content: 'said' })
            });
            closing.push(() => client.close());
            assert.deepEqual([client.revision, client.server.name], [revision, 'carried']);
            const call = async (...args) => textOf(await client.callTool(...args));
            assert.equal(await call('echo', { text: 'é😀' }), 'é😀');
            assert.deepEqual((await client.callTool('sum', { a: 1, b: 2 })).structuredContent, { sum: 3 });
            const seen = [];
            await client.callTool('progress', {}, { onProgress: ({ progress }) => seen.push(progress) });
            assert.deepEqual(seen, [1, 2]);
            await assert.rejects(client.callTool('waits', {}, { timeout: 50 }), failsWith('ERR_MCP_TIMEOUT'));
            assert.deepEqual(await Promise.all([call('form'), call('model'), call('roots')]), ['Ada', 'said', 'file:///a']);
            assert.equal((await client.readResource('memo://a'))[0].text, 'a memo');
            assert.equal((await client.readResource('user://7'))[0].text, '7');
            assert.equal((await client.getPrompt('greet', { who: 'Ada' })).messages[0].content.text, 'Greet Ada');
            assert.deepEqual((await client.complete({ prompt: 'greet' }, 'who', '')).values, ['Ada']);
            await client.setLogLevel('warning');
            const logged = new Promise(resolve => client.once('log', resolve));
            await client.callTool('log');
            assert.equal((await logged).data, 'x');
            const listening = await client.listen({ tools: true, uris: ['memo://a'] });
            server.resourceUpdated('memo://a');
            assert.equal((await listening.next()).value.uri, 'memo://a');
            listening.close();
            const many = Array.from({ length: 100 }, (_, i) => call('echo', { text: `${i}` }));
            assert.deepEqual(await Promise.all(many), many.map((_, i) => `${i}`));
            assert.equal((await client.listTools()).length, 8);
            await client.ping();
        });

test('what is not there, and what refuses, is an error that says so', async () => {
    for (const address of ['tcp:127.0.0.1:1', 'unix:/no/such.sock', 'ws://127.0.0.1:1/mcp'])
        await assert.rejects(Client.connect(address), failsWith('ERR_MCP_IO'), address);
    await assert.rejects(Client.connect('ftp://x'), failsWith('ERR_MCP_MISUSE'));
    await assert.rejects(Client.connect('stdio:'), failsWith('ERR_MCP_MISUSE'));
    await assert.rejects(Client.connect('http://127.0.0.1:1/mcp'), error => error.code.startsWith('ERR_MCP_'));
});
