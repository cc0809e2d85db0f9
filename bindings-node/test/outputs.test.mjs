// Results of tools, checked against their output schemas on both sides.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { json, Server, text } from 'mcpbolt';
import * as z from 'zod';
import { connect, failsWith, spawned } from './wire.mjs';

const SUM = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] };
const isInternal = error => failsWith('ERR_MCP_PEER')(error) && error.rpcCode === -32603 && /output schema/.test(error.message);

test('a server gives back what its schema says, or an error (R-STR-01, R-STR-03, R-STR-07)', async () => {
    const result = structuredContent => ({ content: [{ type: 'text', text: '…' }], structuredContent });
    const outputs = {
        good: { sum: 3 },
        raw: json('{"sum":12345678901234567890}'),
        whole: result({ sum: 3 }),
        failed: { ...result(undefined), isError: true },
        wrong: { sum: 'three' },
        wrongWhole: result({ total: 3 }),
        text: '3',
        block: text('3')
    };
    for (const opening of ['handshake', 'probe']) {
        const server = new Server('sums', '1', { listChanges: true });
        for (const [name, output] of Object.entries(outputs)) server.tool(name, { outputSchema: SUM }, async () => output);
        const client = await connect(server, { opening });
        assert.deepEqual((await client.callTool('good')).structuredContent, { sum: 3 });
        assert.equal((await client.callTool('good')).content[0].text, '{"sum":3}');
        for (const name of ['raw', 'whole', 'failed']) await client.callTool(name);
        for (const name of ['wrong', 'wrongWhole', 'text', 'block']) await assert.rejects(client.callTool(name), isInternal, name);
        // A tool that comes later is held against its own schema.
        server.removeTool('good');
        server.tool('good', { outputSchema: { ...SUM, required: ['total'] } }, () => ({ sum: 3 }));
        await assert.rejects(client.callTool('good'), isInternal);
        await client.close();
    }
});

test('the schema of a library describes what comes out', async () => {
    const outputSchema = z.object({ at: z.string().transform(text => text.length).pipe(z.number()) });
    const server = new Server('sums', '1').tool('length', { outputSchema }, () => ({ at: 3 }));
    const client = await connect(server);
    const [tool] = await client.listTools();
    assert.equal(tool.outputSchema.properties.at.type, 'number');
    assert.deepEqual((await client.callTool('length')).structuredContent, { at: 3 });
    await client.close();
});

test('a client holds results against the schemas that it has listed (R-STR-02, R-SCH-11)', async () => {
    const client = await spawned(
        `
        import { createInterface } from "node:readline";
        const outputSchema = ${JSON.stringify(SUM)};
        const tool = (name, outputSchema) => ({ name, inputSchema: { type: 'object' }, outputSchema });
        const tools = [tool('wrong', outputSchema), tool('right', outputSchema), tool('failed', outputSchema), tool('none', outputSchema),
            tool('odd', { type: 'nonsense' }), tool('free')];
        const results = {
            wrong: { structuredContent: { sum: 'x' } },
            right: { structuredContent: { sum: 1 } },
            failed: { isError: true },
            none: {},
            odd: { structuredContent: { sum: 1 } },
            free: { structuredContent: { sum: 'x' } }
        };
        const answers = {
            initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }),
            'tools/list': () => ({ tools }),
            'tools/call': ({ name }) => ({ content: [], ...results[name] })
        };
        createInterface({ input: process.stdin }).on('line', line => {
            const { id, method, params } = JSON.parse(line);
            if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }));
        });
        `,
        { opening: 'handshake' }
    );
    // Before it is listed, a tool is free to give back what it likes.
    await client.callTool('wrong');
    await client.listTools();
    for (const name of ['right', 'failed', 'free']) await client.callTool(name);
    for (const name of ['wrong', 'none', 'odd']) await assert.rejects(client.callTool(name), failsWith('ERR_MCP_BAD_ANSWER'), name);
    await client.close();
});

test('results that are not what the revisions say of them are refused where that is wanted (R-S14-05)', async () => {
    const wrong = `
        import { createInterface } from 'node:readline';
        const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'wrong', version: '1' } };
        createInterface({ input: process.stdin }).on('line', line => {
            const { id, method } = JSON.parse(line);
            const result = method === 'initialize' ? hello : { content: [{ type: 'text' }] };
            if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
        });
    `;
    for (const checkResults of [true, false]) {
        const client = await spawned(wrong, { opening: 'handshake', checkResults });
        const called = client.callTool('x');
        if (checkResults) await assert.rejects(called, { code: 'ERR_MCP_BAD_ANSWER', message: /tools\/call: content\[0\]\.text: it is missing/ });
        else assert.deepEqual((await called).content, [{ type: 'text' }]);
        await client.close();
    }
});

test('what a tool gives back is structured content of whatever type its schema has', async () => {
    const outputs = { string: 'three', number: 3, integer: 12345678901234567890n, boolean: false, null: null, array: [1, 'two'] };
    const server = new Server('values', '1');
    for (const [type, value] of Object.entries(outputs)) server.tool(type, { outputSchema: { type } }, () => value);
    server.tool('wrong', { outputSchema: { type: 'number' } }, () => 'three');
    const client = await connect(server, { revision: '2026-07-28' });
    await client.listTools();
    for (const [type, value] of Object.entries(outputs)) {
        const result = await client.requestJson('tools/call', { name: type });
        const json = typeof value === 'bigint' ? String(value) : JSON.stringify(value);
        assert.ok(result.includes(`"structuredContent":${json}`), result);
        if (type !== 'integer') assert.deepEqual((await client.callTool(type)).structuredContent, value);
    }
    await assert.rejects(client.callTool('wrong'), isInternal);
});
