// Integers beyond 2^53: as they are wanted, and the same bytes whoever passes them on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { json, Server } from 'mcpbolt';
import { Connection, decode, Decoder, Request } from 'mcpbolt/engine';
import { connect, failsWith, spawned } from './wire.mjs';

const BIG = ['9007199254740991', '-9007199254740991', '9007199254740992', '-9007199254740993', '18446744073709551616', `-${'9'.repeat(40)}`];
/** What no such integer is, however it looks. */
const OTHERS = '1.5,12345678901234567.5,1e30,-0,"9007199254740993","\\"9007199254740993","\\\\",{"9007199254740993":"x"},[],true,null';
const TEXT = `{"big":[${BIG}],"others":[ ${OTHERS} ],"deep":{"n":${BIG[4]}}}`;
const READ = { number: Number, bigint: token => (Number.isSafeInteger(Number(token)) ? Number(token) : BigInt(token)), text: token => (Number.isSafeInteger(Number(token)) ? Number(token) : token) };

for (const [integers, read] of Object.entries(READ)) {
    const expected = { big: BIG.map(read), others: JSON.parse(`[${OTHERS}]`), deep: { n: read(BIG[4]) } };

    test(`the engine level reads integers as ${integers}`, () => {
        const line = `{"jsonrpc":"2.0","id":${BIG[4]},"method":"m","params":${TEXT}}`;
        const bytes = Buffer.from(`${line}\n`);
        for (const message of [decode(line, { integers }), ...new Decoder({ integers }).feed(bytes).drain(), ...decode(`[${line}]`, { integers }).messages()]) {
            assert.deepEqual(message.params, expected);
            // Ids are exact in any case.
            assert.deepEqual([message.id, message.rawId, String(message.rawParams)], [BigInt(BIG[4]), BIG[4], TEXT]);
            assert.equal(String(message.withId(1)), line.replace(BIG[4], '1'), 'forwarded byte for byte');
        }
        const server = new Connection({ side: 'server', name: 'n', integers, capabilities: { tools: {} } });
        const open = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
        server.feed(`${JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: open })}\n${line.replace('"m"', '"tools/call"')}\n`);
        const request = server.drain().find(event => event instanceof Request);
        assert.deepEqual(request.message.params, expected);
        server.output();
        request.respond(json(TEXT));
        assert.ok(String(server.output()).includes(`"id":${BIG[4]},"result":${TEXT.slice(0, -1)}`));
    });

    test(`servers and clients read integers as ${integers}`, async () => {
        let seen;
        const server = new Server('numbers', '1', { integers, onError: () => {} })
            .tool('take', {}, (args, ctx) => ((seen = args), json(ctx.argumentsJson)))
            .tool('ask', {}, async (_, ctx) => ((seen = await ctx.sample({ messages: 'n', maxTokens: 5, metadata: { n: 2n ** 60n } })), 'asked'));
        let asked;
        const onSampling = request => ((asked = request), { model: 'm', content: 'c', n: 2n ** 63n });
        for (const opening of ['handshake', 'stateless']) {
            const client = await connect(server, { integers, onSampling, opening });
            const result = await client.callTool('take', json(TEXT));
            assert.deepEqual(seen, expected);
            assert.deepEqual(result.structuredContent, expected);
            assert.ok((await client.requestJson('tools/call', json(`{"name":"take","arguments":${TEXT}}`))).includes(TEXT));
            await client.callTool('ask');
            assert.deepEqual([asked.metadata.n, seen.n], [read(String(2n ** 60n)), read(String(2n ** 63n))]);
        }
    });
}

test('a bigint goes out as the integer that it is', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'integer' } } };
    const server = new Server('numbers', '1', { integers: 'bigint', onError: () => {} })
        .tool('next', { outputSchema }, ({ n }) => ({ n: n + 1n, text: '"1"' }))
        .tool('bare', { outputSchema: { type: 'integer' } }, () => 2n ** 64n)
        .tool('circle', {}, () => { const it = { n: 1n }; return Object.assign(it, { it }); });
    for (const integers of ['bigint', 'text']) {
        const client = await connect(server, { integers, revision: '2026-07-28' });
        const read = READ[integers];
        await client.listTools();
        const { structuredContent } = await client.callTool('next', { n: 2n ** 53n });
        assert.deepEqual(structuredContent, { n: read('9007199254740993'), text: '"1"' });
        assert.equal((await client.callTool('bare')).structuredContent, read('18446744073709551616'));
        assert.equal((await client.callTool('circle')).isError, true);
    }
});

test('a server program gets and gives what it was sent', async () => {
    const client = await spawned(
        `
        import { Server } from 'mcpbolt';
        await new Server('numbers', '1', { integers: 'bigint' }).tool('echo', {}, args => args).run();
        `,
        { integers: 'bigint' }
    );
    const values = { n: 2n ** 64n, list: [-(2n ** 70n), 1, 'x'] };
    assert.deepEqual((await client.callTool('echo', values)).structuredContent, values);
    await assert.rejects(client.callTool('none', { n: 1n }), failsWith('ERR_MCP_PEER'));
});
