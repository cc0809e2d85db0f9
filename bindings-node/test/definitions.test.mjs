// Definitions in lists, the server's description of itself, and errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProtocolError, Server } from 'mcpbolt';
import { connect, failsWith } from './wire.mjs';

const icons = [{ src: 'https://example.com/icon.png', mimeType: 'image/png', sizes: ['48x48'] }];
const _meta = { 'example.com/colour': 'red' };

test('definitions have everything that the protocol knows of them', async () => {
    const described = { title: 'Title', description: 'What it is.', icons, _meta };
    const annotations = { audience: ['user'], priority: 0.5 };
    const server = new Server('full', '1')
        .tool('look', { ...described, annotations: { readOnlyHint: true } }, () => '')
        .resource('memo://a', { ...described, name: 'A', mimeType: 'text/plain', size: 7, annotations }, () => '')
        .resourceTemplate('user://{id}', { ...described, name: 'users', annotations }, () => '')
        .prompt('greet', { ...described, arguments: [{ name: 'who', title: 'Who?', required: true }] }, () => '');
    const client = await connect(server);
    const inputSchema = { type: 'object' };
    assert.deepEqual(await client.listTools(), [{ name: 'look', inputSchema, ...described, annotations: { readOnlyHint: true } }]);
    const [resource] = await client.listResources();
    assert.deepEqual(resource, { uri: 'memo://a', name: 'A', ...described, mimeType: 'text/plain', size: 7, annotations });
    const [template] = await client.listResourceTemplates();
    assert.deepEqual(template, { uriTemplate: 'user://{id}', name: 'users', ...described, annotations });
    const [prompt] = await client.listPrompts();
    assert.deepEqual(prompt, { name: 'greet', ...described, arguments: [{ name: 'who', title: 'Who?', required: true }] });
    assert.throws(() => new Server('odd', '1').resource('memo://b', { icons: 'none' }, () => ''), failsWith('ERR_MCP_MISUSE'));
});

test('a template that is taken away finishes what it began', async () => {
    let begun;
    const waits = new Promise(resolve => (begun = resolve));
    let finish;
    const server = new Server('live', '1', { listChanges: true })
        .resourceTemplate('user://{id}', {}, (_, { id }) => new Promise(resolve => ((finish = () => resolve(id)), begun())))
        .resourceTemplate('group://{name}', {}, (_, { name }) => name);
    const client = await connect(server);
    const read = client.readResource('user://7');
    await waits;
    assert.ok(server.removeResourceTemplate('user://{id}'));
    assert.ok(!server.removeResourceTemplate('user://{id}'));
    finish();
    assert.equal((await read)[0].text, '7');
    await assert.rejects(client.readResource('user://7'), failsWith('ERR_MCP_PEER'));
    assert.equal((await client.readResource('group://x'))[0].text, 'x');
});

test('what cannot be answered is an error of the protocol, numbered as its revision does (R-ERR-09)', async () => {
    const kinds = ['not found', 'invalid params', 'internal', -31999];
    const server = new Server('errors', '1')
        .tool('fails', {}, ({ kind }) => {
            throw new ProtocolError(kind, 'no such thing');
        })
        .resourceTemplate('user://{id}', {}, async (uri, { id }) => {
            throw new ProtocolError('not found', `nobody is ${id}`);
        });
    for (const [revision, notFound] of [
        ['2025-11-25', -32002],
        ['2026-07-28', -32602]
    ]) {
        const client = await connect(server, { revision });
        const codes = [notFound, -32602, -32603, -31999];
        for (const [index, kind] of kinds.entries()) {
            const is = error => error.rpcCode === codes[index] && error.message === 'no such thing';
            await assert.rejects(client.callTool('fails', { kind }), is, String(kind));
        }
        await assert.rejects(client.readResource('user://7'), error => error.rpcCode === notFound && error.message === 'nobody is 7');
    }
});

test('extensions are declared by both sides, and used if both do (R-CAP-06, R-EXT-03)', async () => {
    const id = 'com.example/colours';
    const server = new Server('extended', '1', { extensions: { [id]: { red: true } } }).tool('look', {}, (_, ctx) => ({
        settings: ctx.extension(id) ?? null,
        other: ctx.extension('com.example/other') ?? null
    }));
    const look = async client => (await client.callTool('look')).structuredContent;
    const client = await connect(server, { extensions: { [id]: { shades: 3 } } });
    assert.deepEqual(client.capabilities.extensions, { [id]: { red: true } });
    assert.deepEqual(await look(client), { settings: { shades: 3 }, other: null });
    assert.deepEqual(await look(await connect(server)), { settings: null, other: null });
    assert.deepEqual(await look(await connect(server, { opening: 'handshake' })), { settings: null, other: null });
    assert.throws(() => new Server('odd', '1', { extensions: { unprefixed: {} } }), failsWith('ERR_MCP_MISUSE'));
    await assert.rejects(connect(server, { extensions: { unprefixed: {} } }), failsWith('ERR_MCP_MISUSE'));
});

test('an extension has methods of its own (R-EXT-04)', async () => {
    const id = 'com.example/colours';
    const server = new Server('extended', '1', { extensions: { [id]: {} }, onError: () => {} })
        .extensionMethod(id, 'com.example/mix', async ({ of }, ctx) => ({ mixed: of.join('-'), declared: ctx.extension(id) }))
        .extensionMethod(id, 'com.example/none', () => 7);
    const client = await connect(server, { extensions: { [id]: { shades: 3 } } });
    const mixed = await client.request('com.example/mix', { of: ['red', 'blue'] });
    assert.deepEqual([mixed.mixed, mixed.declared], ['red-blue', { shades: 3 }]);
    await assert.rejects(client.request('com.example/none', {}), error => error.rpcCode === -32603);
    const bare = await connect(server, { opening: 'stateless' });
    await assert.rejects(bare.request('com.example/mix', { of: [] }), error => error.rpcCode === -32021);
    const older = await connect(server, { opening: 'handshake' });
    await assert.rejects(older.request('com.example/mix', { of: [] }), error => error.rpcCode === -32601);
    const misuse = () => server.extensionMethod('com.example/other', 'other/x', () => ({}));
    assert.throws(misuse, failsWith('ERR_MCP_MISUSE'));
});

test('a server hears that roots have changed (R-ROO-02)', async () => {
    let server;
    const changed = new Promise(resolve => (server = new Server('hears', '1', { onRootsChanged: resolve })));
    const client = await connect(server, { name: 'ada', opening: 'handshake', roots: [] });
    client.setRoots(['file:///a']);
    assert.equal((await changed).info.name, 'ada');
});
