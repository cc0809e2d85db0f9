// The checks of every request before it is read: its origin, its host, and the server's settings for them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import { afterEach, test } from 'node:test';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Server } from 'mcpbolt';
import { createMcpHandler, StreamableHTTPServerTransport, WebStandardStreamableHTTPServerTransport } from 'mcpbolt/sdk';
import { failsWith } from './wire.mjs';

const closing = [];
afterEach(() => {
    for (const close of closing.splice(0)) close();
});

const ACTION = '{"action":"write","params":{}}';
const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{}}}';
const HELLO =
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}';
const EVIL = 'http://evil.example';
// The headers that browsers send for pages of other origins, with and without `Origin`.
const FOREIGN = [
    { origin: EVIL },
    { origin: 'null' },
    { origin: EVIL, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
    { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }
];
const JSON_BOTH = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** The status of an answer; what the headers are is as they are given. */
async function status(url, { method = 'POST', body = '', headers = {} } = {}) {
    const asked = ask(url, { method, headers, agent: false });
    asked.end(body);
    const [event] = await Promise.race([once(asked, 'response'), once(asked, 'upgrade')]);
    asked.destroy();
    return event.statusCode;
}

/** Whatever a page of another origin sends is refused. */
async function turnedAway(url) {
    for (const page of FOREIGN) {
        for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) assert.equal(await status(url, { method, headers: page }), 403, method);
        for (const kind of ['application/json', 'text/plain', 'application/x-www-form-urlencoded'])
            for (const body of [ACTION, CALL, HELLO])
                assert.equal(await status(url, { body, headers: { ...page, accept: JSON_BOTH.accept, 'content-type': kind } }), 403, kind);
    }
    for (const body of [ACTION, CALL]) assert.equal(await status(url, { body, headers: { 'content-type': 'text/plain' } }), 415);
}

function counting(options) {
    const ran = { count: 0 };
    const run = () => `${++ran.count}`;
    const annotations = { readOnlyHint: true };
    ran.server = new Server('gate', '1', options).tool('write', {}, run).tool('look', { annotations, onGet: true }, run);
    return ran;
}

async function listen(handler) {
    const http = createServer(handler).listen(0, '127.0.0.1');
    closing.push(() => (http.close(), http.closeAllConnections()));
    await once(http, 'listening');
    return `http://127.0.0.1:${http.address().port}/mcp`;
}

async function serve(server, options, address = 'http://127.0.0.1:0/mcp') {
    const serving = await server.serve(address, options);
    closing.push(() => serving.close());
    return serving.address;
}

test('pages of other origins run nothing', { timeout: 60_000 }, async () => {
    const ran = counting({ actions: true });
    for (const hosts of [undefined, ['*']]) {
        const options = hosts && { hosts };
        const url = await serve(ran.server, options);
        await turnedAway(url);
        const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
        for (const headers of FOREIGN) {
            for (const action of ['look', 'write']) assert.equal(await status(`${url}/stream?action=${action}`, { method: 'GET', headers }), 403);
            assert.equal(await status(url, { method: 'GET', headers: { ...headers, ...upgrade } }), 403);
        }
        const mounted = await listen(ran.server.handler(options));
        await turnedAway(mounted);
        const endpoint = ran.server.endpoint(options);
        closing.push(() => endpoint.close());
        for (const headers of FOREIGN) {
            const request = new Request('http://localhost/mcp', { method: 'POST', body: CALL, headers: { ...JSON_BOTH, ...headers } });
            // Its own headers alone: `fetch` adds none here.
            assert.equal((await endpoint.fetch(request)).status, 403);
        }
    }
    assert.equal(ran.count, 0);
});

test("pages of other origins run nothing of the SDK's servers", { timeout: 60_000 }, async () => {
    let count = 0;
    const make = () => {
        const server = new McpServer({ name: 'theirs', version: '1' });
        server.registerTool('write', {}, () => ({ content: [{ type: 'text', text: `${++count}` }] }));
        return server;
    };
    const handler = createMcpHandler(make);
    closing.push(() => handler.close());
    await turnedAway(await listen((request, response) => handler.node(request, response)));
    for (const sessionIdGenerator of [undefined, randomUUID]) {
        const transported = async (request, response) => {
            const transport = new StreamableHTTPServerTransport({ sessionIdGenerator });
            await make().connect(transport);
            await transport.handleRequest(request, response);
            response.on('close', () => transport.close());
        };
        const url = await listen(transported);
        await turnedAway(url);
        assert.equal(await status(url, { body: HELLO, headers: JSON_BOTH }), 200);
        const web = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator });
        await make().connect(web);
        for (const headers of FOREIGN) {
            const request = new Request('http://localhost/mcp', { method: 'POST', body: CALL, headers: { ...JSON_BOTH, ...headers } });
            assert.equal((await web.handleRequest(request)).status, 403);
        }
        await web.close();
    }
    assert.equal(count, 0);
    const open = createMcpHandler(make, { origins: ['https://app.example'] });
    closing.push(() => open.close());
    const url = await listen((request, response) => open.node(request, response));
    for (const [origin, expected] of [['https://app.example', 200], [EVIL, 403]])
        assert.equal(await status(url, { body: HELLO, headers: { ...JSON_BOTH, origin } }), expected);
});

test('origins are those that are named', { timeout: 30_000 }, async () => {
    const { server } = counting({ actions: true });
    for (const [origins, origin, expected] of [
        [undefined, 'http://localhost:3000', 200],
        [[], 'http://localhost:3000', 403],
        [['https://app.example'], 'https://app.example', 200],
        [['https://app.example'], 'https://app.example:444', 403],
        [['https://app.example:*'], 'https://app.example:444', 200],
        [['*'], EVIL, 200]
    ]) {
        const url = await serve(server, origins && { origins });
        const said = headers => status(url, { body: ACTION, headers: { ...JSON_BOTH, ...headers } });
        assert.equal(await said({ origin }), expected, `${origins} ${origin}`);
        assert.equal(await said({ origin: new URL(url).origin, 'sec-fetch-site': 'same-origin' }), 200);
    }
    for (const wrong of [{ origins: ['app.example'] }, { origins: ['null'] }, { hosts: ['a.example:80'] }])
        await assert.rejects(serve(server, wrong), failsWith('ERR_MCP_MISUSE'));
});

test('actions are spoken where they are asked for, and a GET runs what its author allows', async () => {
    const silent = counting();
    const url = await serve(silent.server);
    assert.equal(await status(url, { body: ACTION, headers: JSON_BOTH }), 400);
    assert.equal(await status(`${url}/stream?action=look`, { method: 'GET' }), 404);
    assert.equal(silent.count, 0);
    const spoken = counting({ actions: true });
    const other = await serve(spoken.server);
    assert.equal(await status(`${other}/stream?action=write`, { method: 'GET' }), 405);
    assert.equal(spoken.count, 0);
    assert.equal(await status(`${other}/stream?action=look`, { method: 'GET' }), 200);
    assert.equal(spoken.count, 1);
    assert.throws(() => new Server('wrong', '1').tool('write', { onGet: true }, () => ''), /readOnlyHint/);
});

test('a server that anybody may use stays on its machine', async () => {
    for (const address of ['http://0.0.0.0:0/mcp', 'ws://[::]:0/mcp', 'tcp:0.0.0.0:0'])
        await assert.rejects(serve(new Server('open', '1'), {}, address), error => error.code === 'ERR_MCP_IO' && /`anonymous`/.test(error.message));
    const url = await serve(new Server('open', '1'), { anonymous: true });
    assert.equal(await status(url, { body: '{', headers: JSON_BOTH }), 400);
});
