// The schemas of libraries as people have them, run with the libraries themselves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Server } from 'mcpbolt';
import { Type } from '@sinclair/typebox';
import { type } from 'arktype';
import * as TypeBox from 'typebox';
import * as v from 'valibot';
import * as z from 'zod';
import * as z3 from 'zod3';
import * as oldZ3 from 'zod-before-3.24';
import * as oldZ4 from 'zod-before-4.2';
import { connect, failsWith } from './wire.mjs';

const zod = z => {
    const members = { n: z.number().describe('how many'), s: z.string().optional() };
    return [members, z.object(members)];
};
const SCHEMAS = {
    'Zod 4': zod(z),
    'Zod 4, mini': [z.object({ n: z.number(), s: z.optional(z.string()) })],
    'Zod 4 before 4.2': zod(oldZ4),
    'Zod 3': zod(z3),
    'Zod 3 before 3.24': zod(oldZ3),
    'Valibot': [{ n: v.number(), s: v.optional(v.string()) }, v.object({ n: v.number(), s: v.optional(v.string()) })],
    'ArkType': [type({ n: 'number', 's?': 'string' })],
    'TypeBox': [TypeBox.Object({ n: TypeBox.Number(), s: TypeBox.Optional(TypeBox.String()) })],
    'TypeBox before 1.0': [Type.Object({ n: Type.Number(), s: Type.Optional(Type.String()) })],
    'JSON Schema': [{ type: 'object', properties: { n: { type: 'number' }, s: { type: 'string' } }, required: ['n'] }]
};

for (const [library, schemas] of Object.entries(SCHEMAS))
    test(`${library}: arguments are checked, and the model sees what they are`, async () => {
        for (const inputSchema of schemas) {
            const server = new Server('schemas', '1').tool('take', { inputSchema, outputSchema: inputSchema }, args => args);
            const client = await connect(server);
            const [tool] = await client.listTools();
            for (const schema of [tool.inputSchema, tool.outputSchema]) {
                assert.equal(schema.type, 'object');
                assert.equal(schema.properties.n.type, 'number');
                assert.equal(schema.properties.s.type, 'string');
                assert.deepEqual(schema.required, ['n']);
            }
            for (const args of [{ n: 1 }, { n: 1, s: 'a' }])
                assert.deepEqual((await client.callTool('take', args)).structuredContent, args);
            for (const args of [{}, { n: 'one' }, { n: 1, s: 2 }]) {
                const result = await client.callTool('take', args).catch(error => ({ isError: true, content: [{ text: error.message }] }));
                assert.ok(result.isError, JSON.stringify(args));
                assert.match(result.content[0].text, args.n === 1 ? /\bs\b/ : /\bn\b/);
            }
            await client.close();
        }
    });

test('an object of schemas converts, leaves out what it does not name, and has no members if it is empty', async () => {
    const server = new Server('schemas', '1')
        .tool('take', { inputSchema: { n: z.coerce.number(), s: z.string().default('none'), later: z.string().refine(async () => true).optional() } }, args =>
            JSON.stringify(args)
        )
        .tool('nothing', { inputSchema: {} }, args => JSON.stringify(args));
    const client = await connect(server);
    const called = async (name, args) => JSON.parse((await client.callTool(name, args)).content[0].text);
    assert.deepEqual(await called('take', { n: 7, more: true, later: 'x' }), { n: 7, s: 'none', later: 'x' });
    assert.deepEqual(await called('nothing', { more: true }), {});
    assert.deepEqual((await client.listTools()).find(({ name }) => name === 'nothing').inputSchema, { type: 'object', properties: {} });
    await client.close();
});

test('a schema that cannot be used is an error at registration, which says what to pass', () => {
    const refused = (inputSchema, why) => {
        const isThat = error => failsWith('ERR_MCP_SCHEMA')(error) && why.test(error.message);
        assert.throws(() => new Server('schemas', '1').tool('take', { inputSchema }, () => 0), isThat);
    };
    refused({ n: z.number(), s: { type: 'string' } }, /^s is no schema, but 1 other members are: pass/);
    refused(z.string(), /"type": "object"/);
    const tree = z.object({ get inner() { return z.array(tree); } });
    refused({ tree }, /^tree refers to other schemas: pass one schema of the whole object/);
    const vendor = { version: 1, vendor: 'mine', validate: value => ({ value }) };
    refused({ '~standard': vendor }, /^schemas of mine cannot be converted to JSON Schema: pass a JSON Schema/);
});
