// A server within somebody else's HTTP server, when something goes wrong; and several servers in one process.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connect2, createServer as createServer2 } from 'node:http2';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, Server } from 'mcpbolt';
import { messages, said, toolCall } from './http.mjs';
import { failsWith, folder, program } from './wire.mjs';

const closing = [];
afterEach(() => {
    for (const close of closing.splice(0)) close();
});

async function listen(handler) {
    const http = createServer(handler).listen(0, '127.0.0.1');
    closing.push(() => (http.close(), http.closeAllConnections()));
    await once(http, 'listening');
    return `http://127.0.0.1:${http.address().port}/mcp`;
}

/** What a program prints that must end by itself. */
const run = source => execFileSync(process.execPath, program(source), { cwd: folder, encoding: 'utf8', timeout: 20_000 });

test('a request whose client has gone before the endpoint is made keeps no process alive', () => {
    const said = run(`
        import { once } from 'node:events';
        import { createServer, request } from 'node:http';
        import { Server } from 'mcpbolt';
        let go;
        const start = () => new Promise(resolve => (go = resolve));
        const serve = new Server('slow', '1', { lifespan: { start } }).handler();
        const http = createServer((incoming, response) => {
            response.on('close', () => setImmediate(() => (go(), setTimeout(() => http.close(), 100))));
            serve(incoming, response);
            asked.destroy();
        }).listen(0, '127.0.0.1');
        await once(http, 'listening');
        const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
        const asked = request({ port: http.address().port, method: 'POST', path: '/mcp', headers });
        asked.on('error', () => console.log('gone'));
        asked.write('{"jsonrpc":');
    `);
    assert.equal(said, 'gone\n');
});

test('the same over HTTP/2', () => {
    const said = run(`
        import { connect, createServer } from 'node:http2';
        import { once } from 'node:events';
        import { Server } from 'mcpbolt';
        process.on('warning', warning => console.log(warning.message));
        let go;
        const start = () => new Promise(resolve => (go = resolve));
        const serve = new Server('slow', '1', { lifespan: { start } }).handler();
        const http = createServer((incoming, response) => {
            response.on('close', () => setImmediate(() => (go(), setTimeout(() => (http.close(), client.close()), 100))));
            serve(incoming, response);
            asked.close();
        }).listen(0, '127.0.0.1');
        await once(http, 'listening');
        const client = connect('http://127.0.0.1:' + http.address().port);
        const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
        const asked = client.request({ ':method': 'POST', ':path': '/mcp', ...headers });
        asked.on('close', () => console.log('gone'));
        asked.write('{"jsonrpc":');
    `);
    assert.equal(said, 'gone\n');
});

/** One request over HTTP/2: its status and messages. */
async function ask2(session, { headers, body }) {
    const stream = session.request({ ':method': 'POST', ':path': '/mcp', ...headers });
    stream.setEncoding('utf8').end(body);
    const [head] = await once(stream, 'response');
    let text = '';
    for await (const piece of stream) text += piece;
    return { status: head[':status'], all: text === '' ? [] : messages(head['content-type'], text) };
}

test('node:http2 is served as node:http is: answers, streams, cancels, refusals', { timeout: 10_000 }, async t => {
    const warned = t.mock.fn();
    process.once('warning', warned);
    let aborted;
    const gone = new Promise(resolve => (aborted = resolve));
    const server = new Server('h2', '1')
        .tool('news', {}, (_, ctx) => (ctx.progress(1, 2), 'é'))
        .tool('waits', {}, (_, { signal }) => new Promise((_, no) => signal.addEventListener('abort', () => (aborted(), no(signal.reason)))));
    const endpoint = server.endpoint();
    const http = createServer2(endpoint.handler).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const session = connect2(`http://127.0.0.1:${http.address().port}`);
    closing.push(() => (session.close(), http.close(), endpoint.close()));
    const plain = await ask2(session, toolCall('news'));
    assert.deepEqual([plain.status, plain.all[0].result.content[0].text], [200, 'é']);
    const { all } = await ask2(session, toolCall('news', {}, { meta: { progressToken: 'p' } }));
    assert.deepEqual(all.map(({ params }) => params?.progress), [1, undefined]);
    const { headers, body } = toolCall('waits');
    const stream = session.request({ ':method': 'POST', ':path': '/mcp', ...headers }).end(body);
    setTimeout(() => stream.close(), 100);
    await gone;
    endpoint.close();
    assert.equal((await ask2(session, toolCall('news'))).status, 503);
    assert.equal(warned.mock.callCount(), 0);
});

test('an endpoint that cannot be made says so, and is made anew for the next request', async () => {
    const told = [];
    const lives = [];
    const start = () => {
        lives.push('start');
        if (lives.length === 1) throw new Error('not yet');
    };
    const lifespan = { start, stop: () => lives.push('stop') };
    const server = new Server('late', '1', { lifespan, onError: (error, what) => told.push([error.message, what]) });
    server.tool('echo', {}, () => 'x');
    const url = await listen(server.handler());
    assert.equal((await fetch(url, toolCall('echo'))).status, 500);
    assert.deepEqual(told, [['not yet', 'the endpoint']]);
    assert.equal((await fetch(url, toolCall('echo'))).status, 200);
    const wrong = server.endpoint({ grace: -1 });
    await assert.rejects(wrong.fetch(new Request(url, toolCall('echo'))), failsWith('ERR_MCP_MISUSE'));
    wrong.close();
    assert.deepEqual(lives, ['start', 'start', 'start', 'stop']);
});

test('what cannot be served or connected ends its lifespan', async () => {
    let lives = 0;
    const server = new Server('once', '1', { lifespan: { start: () => ++lives, stop: () => lives-- } });
    await assert.rejects(server.serve('ftp://127.0.0.1'), failsWith('ERR_MCP_MISUSE'));
    assert.equal(lives, 0);
    await assert.rejects(Client.connect(server, { revision: '1999-01-01' }), failsWith('ERR_MCP_MISUSE'));
    assert.equal(lives, 0);
    server.close();
});

/** A request with a body of that many good pieces, after which it fails. */
function failing(pieces, error) {
    const { body, ...init } = toolCall('echo');
    const stream = new ReadableStream({
        pull(controller) {
            if (pieces-- > 0) controller.enqueue(new TextEncoder().encode(body.slice(0, 10)));
            else controller.error(error);
        }
    });
    return new Request('http://localhost/mcp', { ...init, body: stream, duplex: 'half' });
}

test('a request of the web’s standards whose body fails, fails', { timeout: 10_000 }, async () => {
    const endpoint = new Server('web', '1').tool('echo', {}, () => 'x').endpoint();
    closing.push(() => endpoint.close());
    const error = new Error('broken off');
    for (const pieces of [0, 1]) await assert.rejects(endpoint.fetch(failing(pieces, error)), error);
    assert.equal((await endpoint.fetch(new Request('http://localhost/mcp', toolCall('echo')))).status, 200);
});

test('a body is not read on when the request is answered', { timeout: 10_000 }, async () => {
    const endpoint = new Server('web', '1').endpoint();
    closing.push(() => endpoint.close());
    const { body, ...init } = toolCall('echo');
    let pulled = 0;
    const stream = new ReadableStream({
        async pull(controller) {
            pulled++;
            await pause(1);
            controller.enqueue(new Uint8Array(10));
        }
    });
    const headers = { ...init.headers, origin: 'https://evil.example.com' };
    const request = new Request('http://localhost/mcp', { ...init, headers, body: stream, duplex: 'half' });
    assert.equal((await endpoint.fetch(request)).status, 403);
    await pause(50);
    const then = pulled;
    await pause(100);
    assert.equal(pulled, then);
});

test('a body is read only as fast as the engine takes it', { timeout: 20_000 }, async () => {
    const server = new Server('web', '1').tool('count', {}, ({ text }) => text.length);
    const endpoint = server.endpoint({ maxMessageBytes: 4 << 20 });
    closing.push(() => endpoint.close());
    const long = { text: 'x'.repeat(3 << 20) };
    const answer = await endpoint.fetch(new Request('http://localhost/mcp', toolCall('count', long)));
    assert.equal((await answer.json()).result.content[0].text, `${3 << 20}`);
    assert.equal(await said(await listen(endpoint.handler), 'count', long), `${3 << 20}`);
    let pulled = 0;
    const stream = new ReadableStream({
        pull(controller) {
            controller.enqueue(new Uint8Array(64 << 10));
            if (++pulled === 1024) controller.close();
        }
    });
    const { body, ...init } = toolCall('count');
    const request = new Request('http://localhost/mcp', { ...init, body: stream, duplex: 'half' });
    assert.equal((await endpoint.fetch(request)).status, 413);
    // 4 MiB that the engine takes, and 1 MiB that waits.
    assert.ok(pulled < 90, `${pulled}`);
});

test('a signal ends every server of the process', () => {
    const said = run(`
        import { Server } from 'mcpbolt';
        const serve = () => new Server('x', '1').serve('http://127.0.0.1:0/mcp');
        const [one, two] = [await serve(), await serve()];
        process.kill(process.pid, 'SIGTERM');
        console.log((await one.ended).reason, (await two.ended).reason);
    `);
    assert.equal(said, 'signal signal\n');
});

test('pages of welcome origins may read answers where the server says so', async () => {
    const server = new Server('cors', '1').tool('echo', {}, () => 'x');
    const origin = 'https://example.com';
    for (const cors of [true, false]) {
        const url = await listen(server.handler({ cors, origins: [origin] }));
        const { headers, ...init } = toolCall('echo');
        const answer = await fetch(url, { ...init, headers: { ...headers, origin } });
        assert.equal(answer.headers.get('access-control-allow-origin'), cors ? origin : null);
        const asked = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'mcp-name' };
        const preflight = await fetch(url, { method: 'OPTIONS', headers: asked });
        assert.equal(preflight.headers.get('access-control-allow-headers'), cors ? 'mcp-name' : null);
    }
});

test('a refusal of HTTP says which, and how the server wants to be shown who asks', async () => {
    const authenticate = 'Bearer realm="here", error="invalid_token"';
    const url = await listen((_, response) => response.writeHead(401, { 'www-authenticate': authenticate }).end());
    const refused = ({ code, fault, status, authenticate }) => ({ code, fault, status, authenticate });
    const error = await Client.connect(url).then(assert.fail, error => error);
    const carried = error.code === 'ERR_MCP_CLOSED' ? error.cause : error;
    assert.deepEqual(refused(carried), { code: 'ERR_MCP_CARRIER', fault: 'refused', status: 401, authenticate });

    let lets = true;
    const serve = new Server('shuts', '1').tool('echo', {}, () => 'x').handler();
    const shut = (request, response) => (lets ? serve(request, response) : response.writeHead(429).end());
    const client = await Client.connect(await listen(shut));
    closing.push(() => client.close());
    lets = false;
    const late = await client.callTool('echo').then(assert.fail, error => error);
    assert.deepEqual(refused(late), { code: 'ERR_MCP_CARRIER', fault: 'refused', status: 429, authenticate: undefined });
});
