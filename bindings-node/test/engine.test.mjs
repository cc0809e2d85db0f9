// The engine by itself: messages, and connections that a program drives.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import * as engine from 'mcpbolt/engine';
import { Connection, decode, Decoder, encodeError, encodeNotification, encodeRequest, encodeResponse, json, McpError, Message, Request } from 'mcpbolt/engine';
import { failsWith } from './wire.mjs';

const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":[2.5,null]}}}';

/** A client and a server joined by their bytes, on a clock of their own. */
class Pair {
    now = 0;

    constructor(revision, options) {
        this.client = new Connection({ side: 'client', name: 'me', revisions: [revision], now: 0, ...options });
        this.server = new Connection({ side: 'server', name: 'you', version: '2', capabilities: { tools: {} }, now: 0 });
        this.run();
    }

    run() {
        for (;;) {
            const [there, back] = [this.client.output(this.now), this.server.output(this.now)];
            if (!there && !back) return;
            if (there) this.server.feed(there, this.now);
            if (back) this.client.feed(back, this.now);
        }
    }

    request() {
        const requests = this.server.drain().filter(event => event instanceof Request);
        assert.equal(requests.length, 1);
        return requests[0];
    }
}

test('import and require give the same things', () => {
    const required = createRequire(import.meta.url)('mcpbolt/engine');
    assert.deepEqual(Object.keys(engine).sort(), Object.keys(required).sort());
    for (const [name, value] of Object.entries(required)) assert.equal(engine[name], value, name);
});

test('a message is looked at as far as anybody asks', () => {
    const message = decode(CALL);
    assert.deepEqual([message.kind, message.id, message.rawId, message.method, message.name], ['request', 7, '7', 'tools/call', 'add']);
    assert.deepEqual(message.params, { name: 'add', arguments: { a: 1, b: [2.5, null] } });
    assert.equal(message.params, message.params);
    assert.deepEqual([String(message.raw), String(message.rawArguments)], [CALL, '{"a":1,"b":[2.5,null]}']);
    for (const absent of ['result', 'error', 'fault', 'code', 'uri', 'rawResult', 'progressToken']) assert.equal(message[absent], undefined, absent);
    assert.equal(String(message.withId('x')), CALL.replace('7', '"x"'));
    assert.equal(String(message.withId(9007199254740993n)), CALL.replace('7', '9007199254740993'));
    const bytes = Buffer.from(CALL);
    assert.equal(decode(bytes).raw.buffer, bytes.buffer, 'nothing is copied');
    assert.deepEqual(decode(new Uint8Array(bytes)).params, message.params);
});

test('every kind of message is read and written', () => {
    for (const [text, expected] of [
        [encodeRequest('é', 'tools/call', { a: 'ü' }), ['request', 'é', 'tools/call', { a: 'ü' }]],
        [encodeRequest(-7, 'own/"method"'), ['request', -7, 'own/"method"', undefined]],
        [encodeRequest(1n << 70n, 'ping'), ['request', 1n << 70n, 'ping', undefined]],
        [encodeRequest(json('1180591620717411303424'), 'ping'), ['request', 1n << 70n, 'ping', undefined]],
        [encodeNotification('m', json('{"a":\n1}')), ['notification', undefined, 'm', { a: 1 }]],
        [encodeResponse(0, { big: 2n ** 64n }), ['response', 0, undefined, { big: 2 ** 64 }]],
        [encodeError(1, -3, 'no', [1]), ['error', 1, undefined, { code: -3, message: 'no', data: [1] }]],
        [encodeError(null, -32700, '?'), ['error', undefined, undefined, { code: -32700, message: '?' }]],
        [encodeError(undefined, -32700, '?', json('18446744073709551616')), ['error', undefined, undefined, { code: -32700, message: '?', data: 2 ** 64 }]]
    ]) {
        const message = decode(text);
        assert.ok(!text.includes('\n'));
        assert.deepEqual([message.kind, message.id, message.method, message.params ?? message.result ?? message.error], expected);
    }
    const batch = decode(`[${CALL},{"x":1},${'{},'.repeat(40)}2]`);
    assert.equal(batch.kind, 'batch');
    assert.deepEqual(batch.messages().slice(0, 2).map(({ kind, id }) => [kind, id]), [['request', 7], ['invalid', undefined]]);
    assert.deepEqual(batch.messages()[0].params, decode(CALL).params);
    assert.deepEqual([batch.messages().length, String(batch.messages().at(-1).raw)], [43, '2']);
    assert.deepEqual(decode(CALL).messages(), []);
});

test('what nobody could read is not written', () => {
    for (const wrong of [
        () => encodeRequest(1.5, 'm'),
        () => encodeRequest(true, 'm'),
        () => encodeRequest(2 ** 60, 'm'),
        () => encodeRequest(1, 'm', []),
        () => encodeResponse(1, json('[]')),
        () => encodeResponse(1, undefined)
    ])
        assert.throws(wrong, failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => json('{'), SyntaxError);
});

test('bad bytes say what to answer', () => {
    const broken = decode('{"jsonrpc":"2.0","id":"a","method":01}');
    assert.deepEqual(
        [broken.kind, broken.code, broken.fault, broken.rawId, broken.invitesAnswer],
        ['invalid', -32700, 'unexpected byte at byte 36', '"a"', true]
    );
    assert.equal(decode('['.repeat(20) + ']'.repeat(20), { maxDepth: 19 }).code, -32600);
    const invalid = decode('{"jsonrpc":"2.0","id":1,"method":"m","params":[]}');
    assert.deepEqual([invalid.kind, invalid.code, invalid.fault, invalid.id], ['invalid', -32602, 'params must be an object', 1]);
    assert.ok(!decode('{"jsonrpc":"2.0","method":7}').invitesAnswer);
});

test('a stream gives the same messages whatever its pieces are', () => {
    const texts = [CALL, encodeNotification('m', { text: 'ü\u2028'.repeat(50) }), '{"half":', encodeResponse('x', {}), 'y'.repeat(3000), encodeRequest(2, 'ping')];
    const bytes = Buffer.from(`\n${texts.join('\r\n')}`);
    const expected = [['request', 7], ['notification', undefined], ['invalid', undefined], ['response', 'x'], ['invalid', undefined], ['request', 2]];
    for (const step of [1, 2, 7, 100, 4096, bytes.length]) {
        const decoder = new Decoder({ maxMessageBytes: 2000 });
        const messages = [];
        for (let at = 0; at < bytes.length; at += step) messages.push(...decoder.feed(bytes.subarray(at, at + step)).drain());
        messages.push(...decoder.feedEnd().drain());
        assert.deepEqual(messages.map(({ kind, id }) => [kind, id]), expected, step);
        assert.deepEqual([messages[4].fault, messages[4].code], ['the message is too long', -32600]);
        assert.equal(messages[1].params.text, 'ü\u2028'.repeat(50));
    }
    const many = new Decoder().feed(Buffer.from(`${CALL}\n`.repeat(5000))).drain();
    assert.deepEqual([many.length, many[4999].params.arguments.a], [5000, 1]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(CALL.length);
    assert.equal(new Decoder({ framing: 'detect' }).feed(Buffer.concat([length, Buffer.from(CALL)])).drain()[0].id, 7);
    assert.throws(() => new Decoder({ framing: 'lines' }), failsWith('ERR_MCP_MISUSE'));
});

test('pieces may be fed before those before them are drained, however messages are told apart', () => {
    const texts = Array.from({ length: 9 }, (_, id) => encodeRequest(id, 'm', { text: 'ü'.repeat(id * 9) }));
    const prefixed = text => {
        const bytes = Buffer.from(`    ${text}`);
        bytes.writeUInt32BE(bytes.length - 4);
        return bytes;
    };
    const streams = { line: Buffer.from(texts.join('\n')), length: Buffer.concat(texts.map(prefixed)) };
    for (const [framing, bytes] of Object.entries(streams))
        for (const step of [1, 5, 64, 200])
            for (const feeds of [1, 2, 3]) {
                const decoder = new Decoder({ framing });
                const messages = [];
                for (let at = 0, fed = 1; at < bytes.length; at += step, fed++) {
                    decoder.feed(bytes.subarray(at, at + step));
                    if (fed % feeds === 0) messages.push(...decoder.drain());
                }
                messages.push(...decoder.feedEnd().drain());
                assert.deepEqual(messages.map(({ raw }) => raw.toString()), texts, `${framing}, ${step}, ${feeds}`);
            }
});

for (const revision of REVISIONS)
    test(`a conversation in ${revision}`, () => {
        const pair = new Pair(revision);
        const { client, server } = pair;
        assert.deepEqual(client.drain(), [{ type: 'opened', revision }]);
        assert.equal(client.revision, revision);
        server.drain();
        assert.equal(server.peer?.info?.name ?? 'me', 'me');

        const first = client.request('tools/call', { name: 'add', arguments: { n: 2n ** 60n } }, { progress: true });
        pair.run();
        const request = pair.request();
        assert.deepEqual([request.message.params.name, String(request.message.rawArguments)], ['add', '{"n":1152921504606846976}']);
        assert.deepEqual([request.revision, request.wantsProgress, server.inFlight], [revision, true, 1]);
        request.progress(1, 2, 'half');
        request.respond({ content: [] });
        request.respond({ content: ['again'] });
        pair.run();
        const [progress, answered] = client.drain();
        const { message, ...rest } = progress.progress;
        assert.deepEqual([progress.type, progress.number, rest, message ?? 'half'], ['progress', first, { progress: 1, total: 2 }, 'half']);
        assert.deepEqual([answered.type, answered.number, answered.message.result.content, answered.error], ['answered', first, [], undefined]);
        assert.equal('resultType' in answered.message.result, revision === '2026-07-28');
        assert.deepEqual([server.inFlight, request.isOpen], [0, false]);

        const second = client.request('resources/read', { uri: 'a:b' });
        pair.run();
        pair.request().fail('not found', 'no such thing', { uri: 'a:b' });
        pair.run();
        const [failed] = client.drain();
        assert.equal(failed.number, second);
        assert.deepEqual([failed.error.code, failed.error.rpcCode, failed.error.data], ['ERR_MCP_PEER', revision === '2026-07-28' ? -32602 : -32002, { uri: 'a:b' }]);

        client.request('tools/call', { name: 'slow' }, { timeout: 3000 });
        pair.run();
        const slow = pair.request();
        assert.ok(Math.abs(client.timeout(pair.now) - 3000) < 100);
        pair.now += 4000;
        client.handleTimeout(pair.now);
        pair.run();
        assert.equal(client.drain()[0].error.code, 'ERR_MCP_TIMEOUT');
        const [late] = server.drain();
        assert.deepEqual([late.type, late.request, slow.isCancelled], ['cancelled', slow, true]);
        slow.respond({});
        pair.run();
        assert.deepEqual(client.drain(), []);

        const third = client.request('tools/call', { name: 'slow' });
        pair.run();
        const given = pair.request();
        client.cancel(third, 'enough');
        pair.run();
        const [cancelled] = server.drain();
        assert.deepEqual([cancelled.request, cancelled.reason], [given, 'enough']);

        server.notify('notifications/tools/list_changed');
        client.feed(`no message\n${CALL.replace('tools/call', 'com.example/none')}\n`, pair.now);
        pair.run();
        const events = client.drain();
        const stray = events.find(({ type }) => type === 'stray');
        assert.deepEqual([stray.what, String(stray.frame), client.strayCount > 0], ['bad frame', 'no message', true]);
        if (revision !== '2026-07-28') assert.equal(events.find(({ type }) => type === 'notification').message.method, 'notifications/tools/list_changed');

        client.close();
        client.output(pair.now);
        const closed = client.drain().at(-1);
        assert.deepEqual([closed.type, closed.reason.code, client.isClosed], ['closed', 'ERR_MCP_CLOSED_LOCALLY', true]);
        assert.throws(() => client.request('tools/call', {}), failsWith('ERR_MCP_CLOSED'));
    });

test('what is no setup is refused', () => {
    for (const wrong of [{ side: 'both' }, { revisions: ['1999'] }, { revisions: [] }, { opening: '?' }, { framing: '?' }, { capabilities: [] }])
        assert.throws(() => new Connection({ side: 'server', name: 'x', ...wrong }), failsWith('ERR_MCP_MISUSE'), JSON.stringify(wrong));
    assert.throws(() => new Connection({ side: 'client', name: 'x' }).request('com.example/m'), failsWith('ERR_MCP_MISUSE'));
    const pair = new Pair('2025-11-25');
    pair.server.drain();
    pair.client.request('tools/call', { name: 'x' });
    pair.run();
    const request = pair.request();
    assert.throws(() => request.fail('lost', ''), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => request.log('loud', 1), failsWith('ERR_MCP_MISUSE'));
});

test('what is answered late or twice reaches nobody', () => {
    const pair = new Pair('2025-11-25');
    pair.server.drain();
    pair.client.drain();
    const open = [];
    for (let round = 0; round < 50; round++) {
        for (let i = 0; i < 20; i++) pair.client.request('tools/call', { name: `${round} ${i}` });
        pair.run();
        const now = pair.server.drain().filter(event => event instanceof Request);
        for (const request of [...now, ...open]) request.respond({ content: [{ type: 'text', text: request.message.name }] });
        open.push(...now.slice(0, 3));
        pair.run();
        const texts = pair.client.drain().map(({ message }) => message.result.content[0].text);
        assert.deepEqual(texts, Array.from({ length: 20 }, (_, i) => `${round} ${i}`));
    }
    assert.equal(pair.client.strayCount, 0);
});

test('a message that was given to the program stays as it is', () => {
    const pair = new Pair('2025-11-25');
    pair.server.drain();
    const kept = [];
    for (let i = 0; i < 300; i++) {
        pair.client.request('tools/call', { name: `n${i}`, arguments: { i } });
        pair.run();
        kept.push(pair.request().message);
    }
    assert.ok(kept[0] instanceof Message && new McpError('ERR_MCP_PEER', '') instanceof Error);
    for (const [i, message] of kept.entries()) assert.deepEqual(message.params, { name: `n${i}`, arguments: { i } });
});
