// Metadata of requests, and capabilities that a call requires of its client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, ProtocolError, Server } from 'mcpbolt';
import { connect, failsWith } from './wire.mjs';

const TRACE = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01',
    tracestate: 'vendor=1',
    baggage: 'user=ada'
};

for (const revision of ['2024-11-05', '2025-11-25', '2026-07-28'])
    test(`a handler sees the _meta of its request, the trace context of the caller in it, ${revision} (R-MET-10)`, async () => {
        const server = new Server('meta', '1')
            .tool('now', {}, (_, ctx) => ({ content: [{ type: 'text', text: JSON.stringify(ctx.meta) }], _meta: { 'example.com/n': 1 } }))
            .tool('later', {}, async (_, ctx) => {
                await null;
                return [ctx.meta.traceparent, Object.isFrozen(ctx.meta), ctx.meta === ctx.meta].join();
            })
            .prompt('said', {}, (_, ctx) => String(ctx.meta.traceparent));
        const client = await connect(server, { revision });
        const meta = { ...TRACE, 'example.com/n': { deep: [1] } };
        const result = await client.callTool('now', {}, { meta, onProgress: () => {} });
        const { progressToken, ...seen } = JSON.parse(result.content[0].text);
        assert.ok(progressToken !== undefined);
        for (const [key, value] of Object.entries(meta)) assert.deepEqual(seen[key], value, key);
        assert.equal(result._meta['example.com/n'], 1);
        assert.equal((await client.callTool('later', {}, { meta })).content[0].text, `${TRACE.traceparent},true,true`);
        const prompt = await client.getPrompt('said', {}, { meta });
        assert.equal(prompt.messages[0].content.text, TRACE.traceparent);
        assert.equal((await client.getPrompt('said')).messages[0].content.text, 'undefined');
    });

for (const revision of ['2025-11-25', '2026-07-28'])
    test(`a call may require what its client declares, ${revision} (R-ERR-16)`, async () => {
        const server = new Server('strict', '1', { onError: () => {} })
            .tool('page', {}, (_, ctx) => (ctx.require('elicitation', 'url'), 'may ask'))
            .tool('model', {}, async (_, ctx) => (ctx.require('sampling'), 'may ask'));
        const bare = await connect(server, { revision });
        const lacks = required => error => {
            assert.deepEqual(error.data, { requiredCapabilities: required });
            return error.code === 'ERR_MCP_PEER' && error.rpcCode === (revision === '2026-07-28' ? -32021 : error.rpcCode);
        };
        await assert.rejects(bare.callTool('page'), lacks({ elicitation: { url: {} } }));
        await assert.rejects(bare.callTool('model'), lacks({ sampling: {} }));
        const able = await connect(server, { revision, onElicitationUrl: () => ({ action: 'accept' }) });
        assert.equal((await able.callTool('page')).content[0].text, 'may ask');
        await assert.rejects(able.callTool('model'), failsWith('ERR_MCP_PEER'));
    });

test('an error of the protocol may carry data (R-ERR-01)', async () => {
    const data = { rows: [1, 'zwei', null], text: 'ä "quoted"\n' };
    const server = new Server('data', '1').tool('fails', {}, ({ kind }) => {
        throw new ProtocolError(kind, 'no "such" row: ä', data);
    });
    const client = await connect(server);
    for (const kind of [-31000, 'internal', 'invalid params']) {
        const is = error => error.message === 'no "such" row: ä' && assert.deepEqual(error.data, data) === undefined;
        await assert.rejects(client.callTool('fails', { kind }), is);
    }
});

for (const revision of ['2025-11-25', '2026-07-28'])
    test(`a handler sees who calls it, and in which revision, ${revision} (R-MET-08)`, async () => {
        const seen = [];
        const kept = [];
        const server = new Server('who', '1')
            .tool('now', {}, (_, ctx) => void seen.push(ctx.revision, ctx.client))
            .tool('later', {}, (_, ctx) => void kept.push(ctx));
        const client = await connect(server, { name: 'Ada', version: '7', revision, onElicitation: () => ({ action: 'decline' }) });
        await client.callTool('now');
        const [own, { info, capabilities, ...rest }] = seen;
        assert.deepEqual([own, rest, info], [revision, { revision, connection: 0 }, { name: 'Ada', version: '7' }]);
        assert.ok('form' in capabilities.elicitation, JSON.stringify(capabilities));
        await client.callTool('later');
        assert.throws(() => kept[0].client, failsWith('ERR_MCP_CANCELLED'));
    });

test('what is no duration is refused', async () => {
    const misuse = failsWith('ERR_MCP_MISUSE');
    const client = await connect(new Server('s', '1').tool('a', {}, () => 'a'));
    for (const ms of [-1, NaN]) {
        await assert.rejects(client.callTool('a', {}, { timeout: ms }), misuse);
        await assert.rejects(client.callTool('a', {}, { maxTimeout: ms }), misuse);
        assert.throws(() => new Server('s', '1', { cacheLists: ms }), misuse);
        assert.throws(() => new Server('s', '1', { taskLimits: { ttl: ms } }), misuse);
        assert.throws(() => new Server('s', '1', { taskLimits: { pollInterval: ms } }), misuse);
        await assert.rejects(new Server('s', '1').run({ grace: ms, signals: false }), misuse);
        await assert.rejects(Client.spawn(process.execPath, [], { closeTimeout: ms }), misuse);
    }
    assert.equal((await client.callTool('a', {}, { timeout: 5000.5 })).content[0].text, 'a');
});
