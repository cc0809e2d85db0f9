// Requests of the web's standards: Request → Response, streamed and given up.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { Server } from 'mcpbolt';
import { messages, toolCall } from './http.mjs';

// An endpoint keeps a process alive for requests that are under way, not for what is given up.
let alive;
beforeEach(() => (alive = setInterval(() => {}, 1000)));

const endpoints = [];
afterEach(() => {
    clearInterval(alive);
    for (const endpoint of endpoints.splice(0)) endpoint.close();
});

function endpointOf(server, options) {
    const endpoint = server.endpoint(options);
    endpoints.push(endpoint);
    return endpoint;
}

const request = (...args) => new Request('http://localhost/mcp', toolCall(...args));
const news = { meta: { progressToken: 'p' } };

/** A tool that tells something, and waits until it is let go or given up. */
function waiting() {
    let go, begin, gone;
    const begun = new Promise(resolve => (begin = resolve));
    const aborted = new Promise(resolve => (gone = resolve));
    const server = new Server('web', '1').tool('waits', {}, (_, ctx) => {
        ctx.progress(1, 2, 'é');
        ctx.signal.addEventListener('abort', gone);
        begin();
        return new Promise(resolve => (go = resolve));
    });
    return { server, begun, aborted, go: text => go(text) };
}

test('a plain answer is there as a whole', async () => {
    const { fetch } = endpointOf(new Server('web', '1').tool('echo', {}, ({ text }) => text));
    const text = 'é😀'.repeat(100_000);
    const response = await fetch(request('echo', { text }));
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
    assert.equal((await response.json()).result.content[0].text, text);
    assert.equal((await fetch(new Request('http://localhost/mcp', { method: 'PUT' }))).status, 405);
});

test('events are there as they happen', { timeout: 10_000 }, async () => {
    const { server, go } = waiting();
    const { fetch } = endpointOf(server);
    const response = await fetch(request('waits', {}, news));
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('é')) text += (await reader.read()).value;
    go('done');
    for (let next; !(next = await reader.read()).done; ) text += next.value;
    assert.deepEqual(
        messages('text/event-stream', text).map(({ params, result }) => params?.progress ?? result.content[0].text),
        [1, 'done']
    );
});

for (const when of ['before it is answered', 'while its answer is read'])
    test(`a request that is aborted ${when} is given up`, { timeout: 10_000 }, async () => {
        const { server, begun, aborted } = waiting();
        const { fetch } = endpointOf(server);
        const controller = new AbortController();
        const { signal } = controller;
        const isRead = when.startsWith('while');
        const asked = fetch(new Request(request('waits', {}, isRead ? news : {}), { signal }));
        const reason = new Error('enough');
        if (isRead) {
            const reader = (await asked).body.getReader();
            await reader.read();
            controller.abort(reason);
            await assert.rejects(async () => {
                while (!(await reader.read()).done);
            }, reason);
        } else {
            begun.then(() => controller.abort(reason));
            await assert.rejects(asked, reason);
        }
        await aborted;
    });

test('who stops reading gives the call up', { timeout: 10_000 }, async () => {
    const { server, aborted } = waiting();
    const { fetch } = endpointOf(server);
    const { body } = await fetch(request('waits', {}, news));
    await body.cancel();
    await aborted;
});

test('a request that is aborted already is not begun', async () => {
    let called = 0;
    const { fetch } = endpointOf(new Server('web', '1').tool('echo', {}, () => ++called));
    const signal = AbortSignal.abort(new Error('never'));
    await assert.rejects(fetch(new Request(request('echo'), { signal })), /never/);
    assert.equal(called, 0);
});

test('a server may be fetched from without an endpoint of its own', async () => {
    const server = new Server('web', '1').tool('echo', {}, () => 'x');
    assert.equal((await (await server.fetch(request('echo'))).json()).result.content[0].text, 'x');
});
