// Carriers of ours under the official SDKs, v1 and v2, servers and clients.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { Client } from 'mcpbolt';
import {
    accelerate,
    createMcpHandler,
    StdioClientTransport,
    StdioServerTransport,
    StreamableHTTPClientTransport,
    StreamableHTTPServerTransport,
    WebStandardStreamableHTTPServerTransport
} from 'mcpbolt/sdk';
import { stateless, ask } from './http.mjs';
import { make } from './theirs.mjs';
import { until, within } from './until.mjs';
import { failsWith } from './wire.mjs';

const THEIRS = fileURLToPath(new URL('theirs.mjs', import.meta.url));
const CLIENTS = { 1: FirstClient, 2: SecondClient };
const textOf = result => result.content[0].text;
const info = { name: 'carried', version: '1' };

/** An HTTP server that is gone after the test; gives its address. */
async function listen(t, serve) {
    const http = createServer(serve).listen(0, '127.0.0.1');
    await new Promise(resolve => http.once('listening', resolve));
    t.after(() => (http.closeAllConnections(), http.close()));
    return `http://127.0.0.1:${http.address().port}/mcp`;
}

for (const generation of [1, 2]) {
    const open = async (t, transport) => {
        const client = new CLIENTS[generation](info);
        t.after(() => client.close());
        await client.connect(transport);
        return client;
    };

    test(`a child of the SDK's client (v${generation})`, async t => {
        const transport = new StdioClientTransport({
            command: process.execPath,
            args: ['-e', `console.error('hello'); process.argv[1] = ${JSON.stringify(THEIRS)}; process.argv[2] = '${generation}'; process.argv[3] = 'transport'; import('${THEIRS}')`],
            stderr: 'pipe'
        });
        let said = '';
        transport.stderr.on('data', text => (said += text));
        const closed = new Promise(resolve => (transport.onclose = resolve));
        const client = await open(t, transport);
        assert.ok(transport.pid > 0);
        assert.equal(textOf(await client.callTool({ name: 'echo', arguments: { text: 'é' } })), 'é');
        const long = 'x'.repeat(3 << 20);
        assert.equal(textOf(await client.callTool({ name: 'echo', arguments: { text: long } })), long);
        await client.close();
        await within('the transport to tell that it is closed', closed);
        assert.equal(said, 'hello\n');
        assert.equal(transport.pid, null);
        await assert.rejects(transport.send({ jsonrpc: '2.0', method: 'ping' }), failsWith('ERR_MCP_CLOSED'));
    });

    test(`sessions over HTTP, both ends (v${generation})`, async t => {
        const [sessions, ended] = [new Map(), []];
        const url = await listen(t, async (request, response) => {
            const id = request.headers['mcp-session-id'];
            if (sessions.has(id)) return sessions.get(id).handleRequest(request, response);
            const transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: () => `own-${randomUUID()}`,
                onsessioninitialized: id => sessions.set(id, transport),
                onsessionclosed: id => ended.push(id)
            });
            const server = await make(generation);
            await server.connect(transport);
            await transport.handleRequest(request, response);
        });
        const carriers = [1, 2].map(() => new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { 'x-who': 'ada' } } }));
        const clients = await Promise.all(carriers.map(carrier => open(t, carrier)));
        for (const [index, client] of clients.entries()) assert.equal(textOf(await client.callTool({ name: 'echo', arguments: { text: `${index}` } })), `${index}`);
        assert.equal(sessions.size, 2);
        assert.match(carriers[0].sessionId, /^own-/);
        const told = [];
        await clients[0].callTool({ name: 'progress', arguments: { n: 3 } }, ...(generation === 1 ? [undefined] : []), { onprogress: ({ progress }) => told.push(progress) });
        assert.deepEqual(told, [1, 2, 3]);
        const id = carriers[0].sessionId;
        await carriers[0].terminateSession();
        await until(() => ended.length > 0);
        assert.deepEqual(ended, [id]);
        await assert.rejects(clients[0].callTool({ name: 'none' }));
        assert.equal(textOf(await clients[1].callTool({ name: 'none' })), 'nothing is asked');
        for (const transport of sessions.values()) await transport.close();
    });

    test(`requests without a session, each with a server of its own (v${generation})`, async t => {
        const url = await listen(t, async (request, response) => {
            const [server, transport] = [await make(generation), new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })];
            response.on('close', () => server.close());
            await server.connect(transport);
            await transport.handleRequest(request, response);
        });
        const post = (message, method = 'POST') => {
            const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
            return ask(url, { method, headers, ...(method === 'POST' && { body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }) }) });
        };
        const call = (name, args, more) => post({ id: 7, method: 'tools/call', params: { name, arguments: args, ...more } });
        assert.equal(textOf((await call('echo', { text: 'a' })).last.result), 'a');
        const { all } = await call('progress', { n: 2 }, { _meta: { progressToken: 't' } });
        assert.deepEqual(all.map(({ method, id }) => method ?? id), ['notifications/progress', 'notifications/progress', 7]);
        assert.equal((await post({ method: 'notifications/initialized' })).status, 202);
        assert.deepEqual([(await post('{')).status, (await post('', 'GET')).status], [400, 405]);
        const empty = await post('[]');
        assert.deepEqual([empty.status, empty.last.error], [400, { code: -32600, message: 'an empty batch' }]);
    });

    test(`requests of the web's standards (v${generation})`, async t => {
        const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
        const server = await make(generation);
        t.after(() => server.close());
        await assert.rejects(transport.handleRequest(new Request('http://localhost/mcp')), failsWith('ERR_MCP_MISUSE'));
        await server.connect(transport);
        const post = (message, headers) => {
            const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
            return transport.handleRequest(new Request('http://localhost/mcp', { method: 'POST', headers: all, body: '{}' }), { parsedBody: { jsonrpc: '2.0', ...message } });
        };
        const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info };
        const opened = await post({ id: 1, method: 'initialize', params });
        const id = opened.headers.get('mcp-session-id');
        assert.equal(id, transport.sessionId);
        const { result } = await opened.json();
        assert.equal(result.serverInfo.title, 'Theirs');
        assert.equal((await post({ method: 'notifications/initialized' }, { 'mcp-session-id': id })).status, 202);
        assert.equal((await post({ id: 2, method: 'ping' }, { 'mcp-session-id': 'other' })).status, 404);
    });

    test(`what a handler learns of its request over HTTP (v${generation})`, async t => {
        const server = await make(generation);
        const seen = [];
        server.registerTool('who', {}, async ctx => {
            const http = generation === 1 ? { ...ctx, headers: ctx.requestInfo.headers, url: ctx.requestInfo.url } : { ...ctx.http, headers: Object.fromEntries(ctx.http.req.headers), url: new URL(ctx.http.req.url) };
            seen.push([ctx.sessionId, http.authInfo, http.headers, http.url.pathname]);
            return { content: [] };
        });
        const serve = accelerate(server).handler();
        const url = await listen(t, (request, response) => {
            request.auth = { token: 'secret', who: request.headers['x-who'] };
            serve(request, response);
        });
        for (const who of ['ada', 'bob']) {
            const client = await Client.connect(url, { revision: '2025-11-25', headers: { 'x-who': who } });
            // The first call of a method is the SDK's own.
            for (let i = 0; i < 2; i++) await client.callTool('who');
            await client.close();
        }
        assert.deepEqual(seen.map(([, auth]) => auth), ['ada', 'ada', 'bob', 'bob'].map(who => ({ token: 'secret', who })));
        for (const [, auth, headers, path] of seen) {
            assert.deepEqual([headers['x-who'], path], [auth.who, '/mcp']);
            assert.ok(!Object.keys(headers).some(name => name.startsWith('mcpbolt')));
        }
        const sessions = seen.map(([session]) => session);
        assert.deepEqual([typeof sessions[1], sessions[1] === sessions[3]], ['string', false]);
    });
}

test('a body is read up to maxRequestBodySize bytes, and a longer one refused', { timeout: 10_000 }, async t => {
    const [server, transport] = [await make(1), new WebStandardStreamableHTTPServerTransport({ maxRequestBodySize: 1000 })];
    t.after(() => server.close());
    await server.connect(transport);
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const post = async body => {
        const request = new Request('http://localhost/mcp', { method: 'POST', headers, body, duplex: 'half' });
        return (await transport.handleRequest(request)).status;
    };
    const note = unit => JSON.stringify({ jsonrpc: '2.0', method: 'notifications/any', params: { text: unit.repeat(600) } });
    assert.deepEqual([await post(note('x')), await post(note('é'))], [202, 413]);
    let pulled = 0;
    const long = new ReadableStream({
        pull(controller) {
            controller.enqueue(new Uint8Array(100));
            if (++pulled === 1000) controller.close();
        }
    });
    assert.equal(await post(long), 413);
    assert.ok(pulled < 20, `${pulled}`);
});

test('a server for each era instead of one for each request', async t => {
    const made = [];
    const handler = createMcpHandler(context => {
        made.push(context.era);
        assert.throws(() => context.authInfo, failsWith('ERR_MCP_MISUSE'));
        return make(2);
    });
    t.after(() => handler.close());
    const url = await listen(t, handler.node);
    const serving = await handler.serve('http://127.0.0.1:0/mcp');
    for (const at of [url, serving.address])
        for (const revision of ['2026-07-28', '2025-11-25']) {
            const client = await Client.connect(at, { revision });
            for (let i = 0; i < 3; i++) assert.equal(textOf(await client.callTool('echo', { text: `${i}` })), `${i}`);
            assert.equal((await client.readResource('memo://a'))[0].text, 'a');
            assert.equal((await client.getPrompt('greet', { who: 'Ada' })).messages[0].content.text, 'Hello, Ada');
            await client.close();
        }
    assert.deepEqual(made, ['modern', 'legacy']);
    const listener = await Client.connect(url, { revision: '2026-07-28' });
    const changes = await listener.listen({ tools: true, uris: ['memo://a'] });
    handler.notify.toolsChanged();
    handler.notify.resourceUpdated('memo://a');
    const next = async () => (await within('two changes', changes.next())).value.type;
    const told = [await next(), await next()];
    assert.deepEqual(told.sort(), ['resourceUpdated', 'toolsChanged']);
    await listener.close();
    await handler.close();
    assert.equal((await ask(url, stateless('tools/list'))).status, 500);
    await within('the end of its own listener', serving.ended);
});

test('of v1 there is one era, and whoever wants no other is told so', async t => {
    const handler = createMcpHandler(() => make(1));
    t.after(() => handler.close());
    const client = await Client.connect(await listen(t, handler.node));
    assert.equal(client.revision, '2025-11-25');
    assert.equal(textOf(await client.callTool('echo', { text: 'a' })), 'a');
    await client.close();
    const strict = createMcpHandler(() => make(2), { legacy: 'reject' });
    t.after(() => strict.close());
    await assert.rejects(Client.connect(await listen(t, strict.node), { revision: '2025-11-25' }));
});

for (const generation of [1, 2])
    for (const sessionIdGenerator of [randomUUID, undefined])
        test(`answers in JSON alone, ${sessionIdGenerator ? 'in a session' : 'without one'} (v${generation})`, async t => {
            const make_ = async () => {
                const [server, transport] = [await make(generation), new StreamableHTTPServerTransport({ sessionIdGenerator, enableJsonResponse: true })];
                await server.connect(transport);
                return transport;
            };
            const session = sessionIdGenerator && (await make_());
            const url = await listen(t, async (request, response) => (session ?? (await make_())).handleRequest(request, response));
            const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
            const post = message => ask(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
            const params = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: info };
            if (session) {
                await post({ id: 0, method: 'initialize', params });
                headers['mcp-session-id'] = session.sessionId;
                await post({ method: 'notifications/initialized' });
            }
            const call = (id, name, args, more) => post({ id, method: 'tools/call', params: { name, arguments: args, ...more } });
            const told = await call(7, 'progress', { n: 2 }, { _meta: { progressToken: 't' } });
            assert.deepEqual([told.headers.get('content-type'), told.all.length, textOf(told.last.result)], ['application/json', 1, 'done']);
            const asked = await call(8, 'roots');
            assert.equal(asked.headers.get('content-type'), 'application/json');
            assert.match(textOf(asked.last.result), session ? /cannot send roots\/list/ : /roots/);
        });

test('createMcpHandler answers in JSON alone where it is to', async t => {
    const handler = createMcpHandler(() => make(2), { responseMode: 'json' });
    t.after(() => handler.close());
    const client = await Client.connect(await listen(t, handler.node), { revision: '2026-07-28' });
    t.after(() => client.close());
    const told = [];
    // The first call of a method is the SDK's own.
    for (let i = 0; i < 2; i++) assert.equal(textOf(await client.callTool('progress', { n: 2 }, { onProgress: progress => told.push(progress) })), 'done');
    assert.deepEqual(told, []);
});

test('what a carrier cannot do is said at once', async () => {
    const says = (what, make) => assert.throws(make, error => failsWith('ERR_MCP_MISUSE')(error) && error.message.startsWith(what));
    for (const Carrier of [StreamableHTTPServerTransport, WebStandardStreamableHTTPServerTransport])
        says('eventStore', () => new Carrier({ sessionIdGenerator: randomUUID, eventStore: {} }));
    for (const option of ['authProvider', 'fetch', 'reconnectionOptions', 'reconnectionScheduler'])
        says(option, () => new StreamableHTTPClientTransport('http://localhost/mcp', { [option]: {} }));
    says('redirect', () => new StreamableHTTPClientTransport('http://localhost/mcp', { requestInit: { redirect: 'error' } }));
    says('responseMode', () => createMcpHandler(() => make(2), { responseMode: 'sse' }));
    assert.throws(() => new StdioServerTransport(new (class {})()), failsWith('ERR_MCP_MISUSE'));
    const missing = new StdioClientTransport({ command: '/nonexistent/program' });
    await assert.rejects(missing.start(), failsWith('ERR_MCP_SPAWN'));
    await assert.rejects(new StreamableHTTPClientTransport('no address').start(), failsWith('ERR_MCP_MISUSE'));
});
