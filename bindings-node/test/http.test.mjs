// Servers on HTTP, by raw requests.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Server } from 'mcpbolt';
import { ask, said, Session, stateless, toolCall } from './http.mjs';
import { until } from './until.mjs';
import { failsWith } from './wire.mjs';

const open = new Set();
afterEach(async () => {
    for (const serving of open) await serving.close();
    open.clear();
});

/** Serves on a port of the system's choice; gives the address. */
async function serve(server, options) {
    const serving = await server.serve('http://127.0.0.1:0/mcp', options);
    open.add(serving);
    return serving.address;
}

test('a plain answer is JSON, news before it make it events, in order (R-HTP-17, R-HTP-18)', async () => {
    const server = new Server('http', '1').tool('news', {}, (_, ctx) => {
        ctx.progress(1, 2);
        ctx.progress(2, 2, 'zwei');
        return 'é';
    });
    const url = await serve(server);
    const plain = await ask(url, toolCall('news'));
    assert.deepEqual([plain.status, plain.headers.get('content-type'), plain.all.length], [200, 'application/json', 1]);
    const { headers, all } = await ask(url, toolCall('news', {}, { meta: { progressToken: 'p' } }));
    assert.equal(headers.get('content-type'), 'text/event-stream');
    assert.deepEqual(
        all.map(({ params, result }) => params?.progress ?? result.content[0].text),
        [1, 2, 'é']
    );
});

test('each call knows whose it is: requests that stand alone, and sessions with their connections', async () => {
    const heard = [];
    const server = new Server('http', '1', {
        onInitialized: client => heard.push(['initialized', client.info.name, client.connection]),
        onClosed: (reason, client) => heard.push([reason.code, client.info.name, client.connection])
    }).tool('who', {}, (_, { client }) => ({ name: client.info.name, connection: client.connection }));
    const url = await serve(server);
    const ada = await Session.open(url, 'ada');
    const bob = await Session.open(url, 'bob', '2025-06-18');
    const [first, second] = (await Promise.all([ada.said('who'), bob.said('who')])).map(text => JSON.parse(text));
    assert.deepEqual([first.name, second.name], ['ada', 'bob']);
    assert.notEqual(first.connection, second.connection);
    assert.deepEqual(JSON.parse(await ada.said('who')), first);
    assert.equal(await said(url, 'who'), '{"name":"raw"}');
    assert.equal((await ada.end()).status, 204);
    await until(() => heard.length === 3);
    assert.deepEqual(heard, [
        ['initialized', 'ada', first.connection],
        ['initialized', 'bob', second.connection],
        ['ERR_MCP_CLOSED_BY_PEER', 'ada', first.connection]
    ]);
});

test('a client is asked in its own session, and none of the others (R-HTP-08)', async () => {
    const server = new Server('http', '1').tool('ask', {}, async (_, ctx) => {
        const { content } = await ctx.elicit('Who?', { type: 'object', properties: { name: { type: 'string' } } });
        return content.name;
    });
    const url = await serve(server);
    const answers = await Promise.all(
        ['ada', 'bob'].map(async name => {
            const session = await Session.open(url, name, '2025-11-25', { elicitation: {} });
            const response = await session.stream({ id: 1, method: 'tools/call', params: { name: 'ask' } });
            let text = '';
            for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
                text += piece;
                const asked = /"id":([^,]+),"method":"elicitation\/create"/.exec(text) ?? /"method":"elicitation\/create".*?"id":(\d+)/.exec(text);
                if (!asked) continue;
                text = '';
                await session.post({ id: JSON.parse(asked[1]), result: { action: 'accept', content: { name } } });
            }
            return /"text":"(\w+)"/.exec(text)[1];
        })
    );
    assert.deepEqual(answers, ['ada', 'bob']);
});

test('a log level belongs to the session that set it (R-LOG-02)', async () => {
    const server = new Server('http', '1').tool('log', {}, (_, ctx) => ctx.log('info', 'x'));
    const url = await serve(server);
    const [quiet, chatty] = [await Session.open(url), await Session.open(url)];
    await quiet.request('logging/setLevel', { level: 'error' });
    await chatty.request('logging/setLevel', { level: 'debug' });
    const count = async session => (await session.request('tools/call', { name: 'log' })).all.length;
    assert.deepEqual([await count(quiet), await count(chatty)], [1, 2]);
});

test('changes are told to every session that listens (R-HTP-11)', async () => {
    const server = new Server('http', '1', { listChanges: true });
    const url = await serve(server);
    const streams = await Promise.all(['ada', 'bob'].map(async name => (await Session.open(url, name)).stream()));
    server.tool('new', {}, () => '');
    for (const { body } of streams) {
        let text = '';
        for await (const piece of body.pipeThrough(new TextDecoderStream())) {
            text += piece;
            if (text.includes('notifications/tools/list_changed')) break;
        }
    }
});

test('a thousand calls at once are all answered, each with its own answer', async () => {
    const server = new Server('http', '1').tool('echo', {}, async ({ text }) => text);
    const url = await serve(server);
    const texts = Array.from({ length: 1000 }, (_, i) => `${i} ${'é'.repeat(i % 50)}`);
    const answers = await Promise.all(texts.map((text, id) => ask(url, toolCall('echo', { text }, { id }))));
    for (const [id, { last }] of answers.entries()) assert.deepEqual([last.id, last.result.content[0].text], [id, texts[id]]);
});

test('who goes away cancels a call that stands alone, also one that waits for JavaScript (R-CAN-06)', async () => {
    const seen = { called: 0, aborted: 0 };
    const server = new Server('http', '1')
        .tool('waits', {}, (_, { signal }) => {
            seen.called++;
            return new Promise((_, no) => signal.addEventListener('abort', () => (seen.aborted++, no(signal.reason))));
        })
        .tool('alive', {}, () => 'yes');
    const url = await serve(server);
    const controllers = Array.from({ length: 50 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => fetch(url, toolCall('waits', {}, { signal })));
    const settled = Promise.allSettled(calls);
    await until(() => seen.called === 50);
    for (const controller of controllers) controller.abort();
    assert.ok((await settled).every(({ reason }) => reason.name === 'AbortError'));
    await until(() => seen.aborted === 50);
    assert.equal(await said(url, 'alive'), 'yes');
});

test('a call of a session outlives the request that brought it (R-CAN-06)', async () => {
    let call;
    const waits = (_, { signal }) => new Promise(resolve => (call = { signal, resolve }));
    const url = await serve(new Server('http', '1').tool('waits', {}, waits));
    const { headers } = await Session.open(url);
    const controller = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'waits' } });
    const gone = fetch(url, { method: 'POST', headers, body, signal: controller.signal });
    await until(() => call !== undefined);
    controller.abort();
    await assert.rejects(gone);
    await pause(100);
    assert.equal(call.signal.aborted, false);
    call.resolve();
});

test('what is refused is refused before JavaScript is called (R-HTP-01, R-HTP-06)', async () => {
    let called = 0;
    const server = new Server('http', '1').tool('echo', {}, () => ++called);
    const url = await serve(server, { maxMessageBytes: 2000, origins: ['https://example.com'] });
    const status = async (init, more = {}) => (await fetch(url, { ...init, headers: { ...init.headers, ...more } })).status;
    const good = toolCall('echo');
    assert.equal(await status(good, { origin: 'https://evil.example.com' }), 403);
    assert.equal(await status(good, { 'content-type': 'text/plain' }), 415);
    assert.equal(await status(good, { 'mcp-name': 'other' }), 400);
    assert.equal(await status(toolCall('echo', { text: 'x'.repeat(3000) })), 413);
    assert.equal(await status(stateless('no/such')), 404);
    assert.equal(called, 0);
    assert.equal(await status(good, { origin: 'https://example.com' }), 200);
    assert.equal(called, 1);
});

test('sessions are bounded: the longest unused gives way, and is told so', async () => {
    const server = new Server('http', '1').tool('echo', {}, () => 'here');
    const url = await serve(server, { maxSessions: 2 });
    const [first, second, third] = [await Session.open(url), await Session.open(url), await Session.open(url)];
    assert.equal((await first.request('tools/list', {})).status, 404);
    assert.deepEqual([await second.said('echo'), await third.said('echo')], ['here', 'here']);
});

test('two servers in one process are two servers', async () => {
    const [one, two] = await Promise.all(
        ['one', 'two'].map(name => serve(new Server(name, '1').tool('name', {}, () => name)))
    );
    assert.notEqual(one, two);
    assert.deepEqual(await Promise.all([said(one, 'name'), said(two, 'name')]), ['one', 'two']);
});

test('one server may be served at two addresses, each with a life of its own', async () => {
    let lives = 0;
    const server = new Server('twice', '1', { lifespan: { start: () => ++lives, stop: () => lives-- } }).tool(
        'life',
        {},
        (_, ctx) => ctx.state
    );
    const [one, two] = [await server.serve('http://127.0.0.1:0/a'), await server.serve('http://127.0.0.1:0/b')];
    assert.deepEqual([await said(one.address, 'life'), await said(two.address, 'life')], ['1', '2']);
    assert.deepEqual(await one.close(), { unanswered: 0, reason: 'stopped' });
    await assert.rejects(fetch(one.address, toolCall('life')));
    assert.equal(await said(two.address, 'life'), '2');
    await two.close();
    assert.equal(lives, 0);
});

test('what is in flight is answered when the server ends, within the grace period', async () => {
    let begun;
    const server = new Server('http', '1').tool('slow', {}, async () => {
        begun = true;
        await pause(200);
        return 'done';
    });
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    const answer = said(serving.address, 'slow');
    await until(() => begun);
    const report = await serving.close();
    assert.deepEqual([await answer, report.unanswered], ['done', 0]);
});

test('a handler that never ends holds nobody up for longer than that', async () => {
    const server = new Server('http', '1').tool('never', {}, () => new Promise(() => {}));
    const serving = await server.serve('http://127.0.0.1:0/mcp', { grace: 200 });
    const call = fetch(serving.address, toolCall('never')).catch(() => 'gone');
    await until(async () => (await ask(serving.address, stateless('tools/list'))).status === 200);
    const asked = Date.now();
    assert.equal((await serving.close()).unanswered, 1);
    assert.ok(Date.now() - asked < 4000, `${Date.now() - asked} ms`);
    await call;
});

test('an AbortSignal ends a server', async () => {
    const controller = new AbortController();
    const serving = await new Server('http', '1').serve('http://127.0.0.1:0/mcp', { signal: controller.signal });
    controller.abort();
    assert.equal((await serving.ended).reason, 'stopped');
});

test('what cannot be served is an error', async () => {
    const url = await serve(new Server('http', '1'));
    const other = new Server('other', '1');
    await assert.rejects(other.serve(url), failsWith('ERR_MCP_IO'));
    await assert.rejects(other.serve('ftp://127.0.0.1'), failsWith('ERR_MCP_MISUSE'));
    await assert.rejects(other.serve('http://127.0.0.1:0/mcp', { grace: -1 }), failsWith('ERR_MCP_MISUSE'));
});

test('messages are shown to who traces them', async () => {
    const seen = [];
    const server = new Server('http', '1').tool('echo', {}, () => 'x');
    const url = await serve(server, { trace: (direction, message) => seen.push(`${direction} ${message.includes('tools/call')}`) });
    await said(url, 'echo');
    // The answer may be here before its trace.
    await until(() => seen.length >= 2);
    assert.deepEqual(seen, ['in true', 'out false']);
});

test('a long message over the budget of the server is refused, and a short one is served', async () => {
    const server = new Server('small', '1', { maxBytes: 1 << 17 }).tool('length', {}, ({ text }) => String(text.length));
    const url = await serve(server);
    const refused = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: ' '.repeat(200_000)
    });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
    const served = await ask(url, toolCall('length', { text: 'short' }));
    assert.equal(served.all[0].result.content[0].text, '5');
    assert.throws(() => new Server('none', '1', { maxBytes: 0 }), /maxBytes/);
});
