// A server on an address: TLS, pages, counters, worker threads, and calls while a handler holds the loop.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Client, Server } from 'mcpbolt';
import { certificate } from './certificate.mjs';
import { ask, said, Session, stateless, toolCall } from './http.mjs';
import { until } from './until.mjs';

const closing = [];
afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
});

async function serve(server, options, address = 'http://127.0.0.1:0/mcp') {
    const serving = await server.serve(address, options);
    closing.push(() => serving.close());
    return serving;
}

test('https and wss are for who trusts the certificate', { timeout: 20_000 }, async () => {
    const tls = certificate();
    const ca = readFileSync(tls.certificate, 'utf8');
    const server = new Server('tls', '1').tool('echo', {}, ({ text }) => text);
    for (const address of ['https://localhost:0/mcp', 'wss://localhost:0/mcp']) {
        const serving = await serve(server, { tls }, address);
        const client = await Client.connect(serving.address, { ca });
        closing.push(() => client.close());
        assert.equal((await client.callTool('echo', { text: 'é' })).content[0].text, 'é');
        await assert.rejects(Client.connect(serving.address));
    }
    await assert.rejects(server.serve('https://localhost:0/mcp'), /certificate/);
});

test('a client shows its certificate to who asks for one', { timeout: 20_000 }, async () => {
    const [server, client, other] = [certificate(), certificate(), certificate()].map(files => ({
        cert: readFileSync(files.certificate, 'utf8'),
        key: readFileSync(files.key, 'utf8')
    }));
    const asking = https.createServer({ ...server, requestCert: true, ca: client.cert }, (request, response) => {
        const data = { who: request.socket.getPeerCertificate().subject.CN };
        response.setHeader('content-type', 'application/json');
        request.on('end', () => response.end(JSON.stringify({ status: 'success', data }))).resume();
    });
    await once(asking.listen(0), 'listening');
    closing.push(() => asking.close());
    const act = async shown => {
        const address = `https://localhost:${asking.address().port}/mcp`;
        const connected = await Client.connect(address, { ca: server.cert, opening: 'actions', ...shown });
        closing.push(() => connected.close());
        return (await connected.action('who', {}, { retry: { tries: 1 } })).data;
    };
    assert.deepEqual(await act(client), { who: 'localhost' });
    // Its alert, where that comes before the end of the connection, which takes it along at times.
    for (const shown of [{}, other]) await assert.rejects(act(shown), { code: 'ERR_MCP_CARRIER', message: /fatal alert|broke off/ });
    await assert.rejects(act({ cert: client.cert, key: other.key }), /the key is not that of the client's certificate/);
    await assert.rejects(act({ cert: client.cert }), /cert and key belong together/);
});

test('pages of welcome origins may read the answers, where the server says so', async () => {
    const origin = 'https://example.com';
    const server = new Server('cors', '1').tool('echo', {}, () => 'x');
    for (const cors of [true, false]) {
        const { address } = await serve(server, { cors, origins: [origin] });
        const { headers, ...init } = toolCall('echo');
        const answer = await fetch(address, { ...init, headers: { ...headers, origin } });
        assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [200, cors ? origin : null]);
        const refused = await fetch(address, { ...init, headers: { ...headers, origin: 'https://evil.example.com' } });
        assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [403, null]);
        const asked = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'mcp-name' };
        const preflight = await fetch(address, { method: 'OPTIONS', headers: asked });
        assert.equal(preflight.headers.get('access-control-allow-headers'), cors ? 'mcp-name' : null);
    }
});

test('a server counts what it does', { timeout: 10_000 }, async () => {
    const serving = await serve(new Server('counts', '1').tool('echo', {}, () => 'x'));
    const none = { openConnections: 0, connections: 0, webSockets: 0, httpRequests: 0, httpErrors: 0, bytesRead: 0, bytesWritten: 0 };
    assert.deepEqual(serving.counts, none);
    await said(serving.address, 'echo');
    assert.equal((await ask(serving.address, stateless('no/such'))).status, 404);
    const client = await Client.connect(serving.address.replace('http', 'ws'));
    const { counts } = serving;
    assert.deepEqual([counts.httpErrors, counts.webSockets], [1, 1]);
    assert.ok(counts.httpRequests >= 3 && counts.openConnections >= 1 && counts.bytesRead > 500 && counts.bytesWritten > 300);
    await client.close();
    await serving.close();
    await until(() => serving.counts.openConnections === 0);
});

const WORKER = `
    const { parentPort } = require('node:worker_threads');
    const { Server } = require('mcpbolt');
    const server = new Server('w', '1').tool('echo', {}, ({ text }) => text).tool('never', {}, () => new Promise(() => {}));
    server.serve('http://127.0.0.1:0/mcp').then(({ address }) => parentPort.postMessage(address));
`;

test('each worker thread may serve, and may be ended while it does', { timeout: 20_000 }, async () => {
    const workers = Array.from({ length: 3 }, () => new Worker(WORKER, { eval: true }));
    const address = worker => new Promise((yes, no) => worker.once('message', yes).once('error', no));
    const addresses = await Promise.all(workers.map(address));
    assert.equal(new Set(addresses).size, 3);
    const texts = await Promise.all(addresses.flatMap(url => ['a', 'b', 'c'].map(text => said(url, 'echo', { text }))));
    assert.deepEqual(texts, ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c']);
    const calls = addresses.map(url => fetch(url, toolCall('never')).then(({ status }) => status, () => 'gone'));
    await pause(100);
    assert.deepEqual(await Promise.all(workers.map(worker => worker.terminate())), [1, 1, 1]);
    for (const outcome of await Promise.all(calls)) assert.notEqual(outcome, 200);
    for (const url of addresses) await assert.rejects(fetch(url, toolCall('echo')));
});

const HOLDER = `
    const { parentPort } = require('node:worker_threads');
    const { Server } = require('mcpbolt');
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    new Server('held', '1')
        .tool('hold', {}, ({ ms }) => { for (const end = Date.now() + ms; Date.now() < end; ); return 'held'; })
        .tool('echo', { inputSchema }, ({ text }) => text)
        .serve('http://127.0.0.1:0/mcp', { commentInterval: 50 })
        .then(({ address }) => parentPort.postMessage(address));
`;
const HELD_MS = 4000;
/** Ten times what is promised, since whoever measures has to share the machine. */
const LIMIT_MS = 200;

test('a handler that holds the loop delays nothing else (R-HTP-16)', { timeout: 30_000 }, async t => {
    const worker = new Worker(HOLDER, { eval: true });
    closing.push(() => worker.terminate());
    const url = await new Promise((yes, no) => worker.once('message', yes).once('error', no));
    const session = await Session.open(url);
    const stream = await session.stream();
    const took = { comment: [] };
    const timed = async (what, expected, act) => {
        const began = performance.now();
        const { last } = await act();
        (took[what] ??= []).push(performance.now() - began);
        assert.ok(JSON.stringify(last).includes(expected), JSON.stringify(last));
    };
    let isHeld = true;
    const held = session.said('hold', { ms: HELD_MS }).finally(() => (isHeld = false));
    const listening = (async () => {
        let last;
        for await (const _ of stream.body) {
            if (!isHeld) return;
            const now = performance.now();
            if (last !== undefined) took.comment.push(now - last - 50);
            last = now;
        }
    })();
    await pause(100);
    const end = Date.now() + HELD_MS - 1000;
    while (Date.now() < end) {
        await timed('ping', '"result":{}', () => session.request('ping'));
        await timed('list', '"hold"', () => session.request('tools/list', {}));
        await timed('stateless list', '"hold"', () => ask(url, stateless('tools/list')));
        await timed('unknown tool', '-32602', () => ask(url, toolCall('nobody')));
        await timed('wrong arguments', 'string', () => ask(url, toolCall('echo', { text: 7 })));
        // A call that waits for the loop ends when it is cancelled.
        await timed('cancel', 'ended', async () => {
            const id = `c${took.ping.length}`;
            const call = session.stream({ id, method: 'tools/call', params: { name: 'echo', arguments: { text: 'never' } } });
            let isOver = false;
            const body = call.then(response => response.text()).finally(() => (isOver = true));
            // On a connection of its own, a cancel may overtake its call: then it is ignored.
            while (!isOver) {
                await session.post({ method: 'notifications/cancelled', params: { requestId: id } });
                await pause(5);
            }
            const text = await body;
            return { last: text.includes('never') ? text : 'ended' };
        });
        await pause(20);
    }
    assert.ok(isHeld);
    assert.equal(await held, 'held');
    await listening;
    for (const [what, all] of Object.entries(took)) {
        all.sort((a, b) => a - b);
        const [median, most, longest] = [all[all.length >> 1], all[Math.floor(all.length * 0.9)], all.at(-1)];
        t.diagnostic(`${what}: ${all.length}, median ${median.toFixed(2)} ms, 90 % ${most.toFixed(2)} ms, longest ${longest.toFixed(2)} ms`);
        assert.ok(most < LIMIT_MS, `${what}: ${most} ms`);
        assert.ok(longest < HELD_MS / 2, `${what}: ${longest} ms`);
    }
});
