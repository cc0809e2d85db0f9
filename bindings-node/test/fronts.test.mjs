// Fronts in existing HTTP servers, their verifiers, and which clients share a connection to a server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import express from 'express';
import { Client, External, Front, Server } from 'mcpbolt';
import { until, within } from './until.mjs';

const SDKS = { v1: [Client1, Transport1], v2: [Client2, Transport2] };
const cwd = fileURLToPath(new URL('..', import.meta.url));
const text = result => result.content[0].text;

function inner(options) {
    const server = new Server('inner', '1.0.0', options);
    server.tool('hello', {}, (_, ctx) => (ctx.progress(1, 2), 'hello'));
    return server;
}

/** The address of a server of `node:http` that passes requests to `handler`. */
async function listening(t, handler) {
    const server = createServer(handler).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => (server.closeAllConnections(), server.close()));
    return `http://127.0.0.1:${server.address().port}/mcp`;
}

async function drive(url, options) {
    for (const [name, [Client, Transport]] of Object.entries(SDKS)) {
        const client = new Client({ name, version: '1' });
        await client.connect(new Transport(new URL(url), options));
        assert.deepEqual((await client.listTools()).tools.map(({ name }) => name), ['far_hello'], name);
        const seen = [];
        const call = { name: 'far_hello', arguments: {} };
        const request = { onprogress: ({ progress }) => seen.push(progress) };
        const result = await (name === 'v1' ? client.callTool(call, undefined, request) : client.callTool(call, request));
        assert.deepEqual([text(result), seen], ['hello', [1]], name);
        await client.close();
    }
}

test('R-CHN-02 a front serves in existing HTTP servers, to clients of both official SDKs', async t => {
    const lived = [];
    const lifespan = { start: () => lived.push('open'), stop: () => lived.push('closed') };
    const front = new Front(new External(inner({ lifespan }), { prefix: 'far' }), { middleware: [{ request: (message, next) => next(message) }] });
    const endpoint = front.endpoint();
    t.after(() => endpoint.close());
    await drive(await listening(t, endpoint.handler));
    const app = express().use(express.json()).all('/mcp', endpoint.handler);
    await drive(await listening(t, app));
    await drive('http://localhost/mcp', { fetch: (url, init) => endpoint.fetch(new Request(url, init)) });
    assert.deepEqual(lived, ['open']);
    endpoint.close();
    await until(() => lived.length === 2);
    const after = await endpoint.fetch(new Request('http://localhost/mcp', { method: 'POST', body: '{}' }));
    assert.equal(after.status, 503);
});

test('a front has a handler and a fetch of its own, and its close ends them', async t => {
    const lived = [];
    const lifespan = { start: () => lived.push('open'), stop: () => lived.push('closed') };
    const front = new Front(new External(inner({ lifespan }), { prefix: 'far' }));
    await drive(await listening(t, front.handler()));
    await drive('http://localhost/mcp', { fetch: (url, init) => front.fetch(new Request(url, init)) });
    front.close();
    await until(() => lived.length === 4);
    assert.deepEqual(lived, ['open', 'open', 'closed', 'closed']);
});

test('what an endpoint of a front cannot serve is reported', async t => {
    const errors = [];
    const lifespan = { start: () => { throw new Error('no database'); } };
    const front = new Front(new External(inner({ lifespan, onError: () => {} })), { onError: (error, what) => errors.push(`${what}: ${error.message}`) });
    const url = await listening(t, front.handler());
    assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 500);
    assert.deepEqual(errors, ['the endpoint: no database']);
});

test('a front shows its messages to a trace, at an address and at an endpoint', async t => {
    const front = new Front(new External(inner()));
    const endpointSeen = [];
    const endpoint = front.endpoint({ trace: (direction, message) => endpointSeen.push([direction, JSON.parse(message).method]) });
    t.after(() => endpoint.close());
    const seen = [];
    const serving = await front.serve('http://127.0.0.1:0/mcp', { trace: (direction, message) => seen.push([direction, JSON.parse(message).method]) });
    t.after(() => serving.close());
    for (const [url, told] of [[serving.address, seen], [await listening(t, endpoint.handler), endpointSeen]]) {
        const client = await Client.connect(url);
        assert.equal(text(await client.callTool('hello')), 'hello');
        await client.close();
        await until(() => told.some(([direction, method]) => direction === 'in' && method === 'tools/call'));
        assert.ok(told.some(([direction, method]) => direction === 'out' && method === undefined));
    }
});

test('R-CHN-15 a verifier of the program decides who may use a front', async t => {
    const seen = [];
    const verifier = async ({ secret }) => {
        if (secret === 'throw') throw new Error('no database');
        return { alice: { name: 'alice', scopes: ['write'] }, bob: 'bob' }[secret];
    };
    const errors = [];
    const watching = { request: (message, next) => (seen.push(next.principal, JSON.stringify(message)), next(message)) };
    const policy = { verifier, scopes: { hello: ['write'] } };
    const front = new Front(new External(inner()), { middleware: [watching], policy, onError: (error, what) => errors.push(`${what}: ${error.message}`) });
    const serving = await front.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const endpoint = front.endpoint();
    t.after(() => endpoint.close());
    const secret = kind => ({ auth: { type: 'bearer', token: kind } });
    const status = opening => opening.then(() => 'connected', error => error.cause?.status);
    for (const address of [serving.address, await listening(t, endpoint.handler)]) {
        const alice = await Client.connect(address, secret('alice'));
        t.after(() => alice.close());
        assert.equal(text(await alice.callTool('hello')), 'hello');
        const bob = await Client.connect(address, secret('bob'));
        t.after(() => bob.close());
        await assert.rejects(bob.callTool('hello'));
        assert.deepEqual([await status(Client.connect(address)), await status(Client.connect(address, secret('eve')))], [401, 401]);
        assert.equal(await status(Client.connect(address, secret('throw'))), 503);
    }
    assert.ok(seen.includes('alice'));
    assert.ok(errors.length > 0 && errors.every(error => error === 'the verifier: no database'));
});

const PID = `
    import { Server } from 'mcpbolt';
    await new Server('pid', '1').tool('pid', {}, () => String(process.pid)).run();`;
const CHILD = [process.execPath, '--input-type=module', '-e', PID];

test('clients share the process of a server as its isolation says', async t => {
    const policy = { verifier: ({ secret }) => secret };
    for (const [isolation, processes] of [[undefined, 4], ['session', 4], ['principal', 2], ['shared', 1]]) {
        const front = new Front(new External(CHILD, { cwd, isolation }), { policy });
        const serving = await front.serve('http://127.0.0.1:0/mcp');
        const pids = new Set();
        const clients = [];
        for (const token of ['alice', 'alice', 'bob', 'bob']) {
            const client = await Client.connect(serving.address, { revision: '2025-06-18', auth: { type: 'bearer', token } });
            clients.push(client);
            pids.add(text(await client.callTool('pid')));
        }
        assert.equal(pids.size, processes, isolation);
        for (const client of clients) await client.close();
        await serving.close();
    }
});

test('R-CHN-17 connections to a server are bounded, and a further client is told', async t => {
    const front = new Front(new External(CHILD, { cwd, maxConnections: 1 }));
    const serving = await front.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const first = await Client.connect(serving.address, { revision: '2025-06-18' });
    assert.ok(text(await first.callTool('pid')));
    await within('the refusal', assert.rejects(Client.connect(serving.address, { revision: '2025-06-18' })));
    await first.close();
});

test('wrong options of an external are named', () => {
    const wrong = (options, message) => {
        for (const server of ['tcp:localhost:1', inner()]) assert.throws(() => new External(server, options), { code: 'ERR_MCP_MISUSE', message });
    };
    wrong({ isolation: 'process' }, /isolation: "process" is no isolation; write session, principal or shared/);
    wrong({ maxConnections: -1 }, /maxConnections/);
    wrong({ rules: [{ request: () => {} }] }, /rules of an External/);
});
