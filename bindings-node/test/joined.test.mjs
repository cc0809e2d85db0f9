// Fronts before several servers.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client, External, Front, Server } from 'mcpbolt';

const THEIRS = `
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
    const server = new McpServer({ name: 'theirs', version: '1.0.0' });
    server.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hello' }] }));
    await server.connect(new StdioServerTransport());
`;

function named(name) {
    const server = new Server(name, '1.0.0');
    server.tool('whose', {}, () => name);
    server.prompt('greet', {}, () => `hello from ${name}`);
    server.resource('book://list', {}, () => `books of ${name}`);
    return server;
}

const names = list => list.map(({ name }) => name).join();
const text = result => result.content[0].text;

for (const revision of ['2025-06-18', '2026-07-28'])
    for (const carrier of ['within', 'http'])
        test(`R-CHN-11 joined servers are one with prefixes, ${carrier}, in ${revision}`, async t => {
            const far = new External(named('far'), { prefix: 'far' });
            const front = new Front(new External(named('own'))).join(far).join(new External(named('b'), { prefix: 'b' }));
            assert.equal(front.name, 'own');
            let place = front;
            if (carrier === 'http') {
                const serving = await front.serve('http://127.0.0.1:0/mcp');
                t.after(() => serving.close());
                place = serving.address;
            }
            const client = await Client.connect(place, { revision });
            t.after(() => client.close());
            assert.equal(names(await client.listTools()), 'whose,far_whose,b_whose');
            assert.equal(names(await client.listPrompts()), 'greet,far_greet,b_greet');
            const uris = (await client.listResources()).map(({ uri }) => uri);
            assert.deepEqual(uris, ['book://list', 'book://far/list', 'book://b/list']);
            for (const [tool, own] of [['whose', 'own'], ['far_whose', 'far'], ['b_whose', 'b']])
                assert.equal(text(await client.callTool(tool, {})), own);
            assert.match(JSON.stringify(await client.readResource('book://far/list')), /books of far/);
            await assert.rejects(client.callTool('c_whose', {}), { code: 'ERR_MCP_PEER' });
        });

test('R-CHN-11 a client and a server of the official SDK are joined to a server of the program', async t => {
    const cwd = fileURLToPath(new URL('.', import.meta.url));
    const theirs = new External([process.execPath, '--input-type=module', '-e', THEIRS], { name: 'theirs', prefix: 'theirs', cwd });
    const front = new Front(new External(named('own')), { patience: 60_000 }).join(theirs);
    const serving = await front.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const client = new TheirClient({ name: 'theirs', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(serving.address)));
    t.after(() => client.close());
    assert.equal(names((await client.listTools()).tools), 'whose,theirs_hello');
    assert.equal(text(await client.callTool({ name: 'theirs_hello' })), 'hello');
    assert.equal(text(await client.callTool({ name: 'whose' })), 'own');
});

test('R-CHN-11 a server that fails is left out, and a front may be joined', async t => {
    const gone = new External('tcp:127.0.0.1:9', { prefix: 'gone', connectTimeout: 1000 });
    const inner = new Front(new External(named('one'))).join(new External(named('two'), { prefix: 'two' }));
    const front = new Front(new External(named('own'))).join(gone).join(new External(inner, { prefix: 'inner' }));
    const client = await Client.connect(front);
    t.after(() => client.close());
    assert.equal(names(await client.listTools()), 'whose,inner_whose,inner_two_whose');
    assert.equal(text(await client.callTool('inner_two_whose', {})), 'two');
});

test('servers that could be confused are refused', async t => {
    const front = new Front(new External(named('own'), { prefix: 'a' }));
    const refused = (external, message) => assert.throws(() => front.join(external), { message, code: 'ERR_MCP_MISUSE' });
    refused(new External(named('own'), { prefix: 'b' }), /the same name/);
    refused(new External(named('x'), { prefix: 'A' }), /prefix of its own/);
    refused(new External(named('x'), { prefix: 'a_b' }), /prefix of its own/);
    refused(new External(new Front(new External(front)), { name: 'round', prefix: 'round' }), /leads to this front itself/);
    for (const [prefix, message] of [['', /at least one/], ['a b', /letters/], ['7', /number/], ['localhost', /localhost/]])
        assert.throws(() => new External(named('x'), { prefix }), { message, code: 'ERR_MCP_MISUSE' });
    for (const patience of [-1, NaN]) assert.throws(() => new Front(new External(named('x')), { patience }), /patience/);
    // The servers that were refused are not among those of the front.
    front.join(new External(named('x'), { prefix: 'b' }));
    const client = await Client.connect(front);
    t.after(() => client.close());
    assert.equal(names(await client.listTools()), 'a_whose,b_whose');
});
