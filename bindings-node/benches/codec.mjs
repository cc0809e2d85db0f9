// Bytes to messages, beside the inbound path of the official SDK (v1): `node benches/codec.mjs [--quick] [--json FILE]`.
//
// Answers are checked before anything is timed. Figures are the CPU time of one message in microseconds, the median of
// rounds in which all contenders take turns. The SDK's path is what its transport and its protocol do until a handler has
// the request, on lines that are found already: JSON.parse, its schema of all messages, is it an answer or a request, and
// the schema of the request; ours begins with a chunk of bytes as they come from a pipe, 64 KiB of
// messages or one, and ends lazily with what the message is, its id and its method, or materialised with its params.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { deserializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import { CallToolRequestSchema, isJSONRPCErrorResponse, isJSONRPCRequest, isJSONRPCResultResponse } from '@modelcontextprotocol/sdk/types.js';
import { decode, Decoder } from 'mcpbolt/engine';
import { median, note, quick } from './figures.mjs';

const SIZES = { '100 B': 0, '1 KB': 1 << 10, '10 KB': 10 << 10, '1 MB': 1 << 20 };
const [ROUND_MS, ROUNDS] = quick ? [20, 3] : [300, 9];
const CHUNK = 64 << 10;
/** What is promised: lazy, and materialised. */
const BARS = { '100 B': [40, 10], '1 KB': [25, 4], '10 KB': [12, 2], '1 MB': [10, 1.3] };

/** The call of a tool with nested arguments, of about that length. */
function call(size) {
    let args = { a: 1, b: 2 };
    if (size) {
        const item = i => ({ id: 1000 + i, name: `item number ${i}`, tags: ['red', 'green'], price: 12.75, stock: null, active: true });
        const count = Math.max(1, Math.floor((size - 120) / (JSON.stringify(item(1)).length + 1)));
        args = { items: Array.from({ length: count }, (_, i) => item(i)) };
    }
    return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 42, method: 'tools/call', params: { name: 'add', arguments: args } }));
}

function theirs(line) {
    const message = deserializeMessage(line.toString('utf8'));
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message) || !isJSONRPCRequest(message)) throw new Error('no request');
    return CallToolRequestSchema.parse(message);
}

let sink;
function contenders(line) {
    const count = Math.max(1, Math.floor(CHUNK / (line.length + 1)));
    const chunk = Buffer.concat(Array.from({ length: count }, () => [line, Buffer.from('\n')]).flat());
    const decoder = new Decoder();
    const each = (look, times) => () => {
        for (let i = 0; i < times; i++) look();
        return times;
    };
    const chunked = look => () => {
        for (const message of decoder.feed(chunk).drain()) sink = look(message);
        return count;
    };
    const lazily = message => (message.kind === 'request' ? message.id : 0) + message.method.length;
    return {
        'SDK v1, inbound': each(() => (sink = theirs(line)), count),
        'lazy, from a chunk': chunked(lazily),
        'lazy, one message': each(() => (sink = lazily(decode(line))), count),
        'materialised, from a chunk': chunked(message => message.params),
        'materialised, one message': each(() => (sink = decode(line).params), count),
        'JSON.parse alone': each(() => (sink = JSON.parse(line.toString('utf8'))), count)
    };
}

function perMessage(work) {
    const began = process.cpuUsage();
    let [messages, passed] = [0, 0];
    while (passed < ROUND_MS * 1000) {
        messages += work();
        const { user, system } = process.cpuUsage(began);
        passed = user + system;
    }
    return passed / messages;
}

const { version } = createRequire(import.meta.url)('../node_modules/@modelcontextprotocol/sdk/package.json');
console.log(`node ${process.version}, SDK ${version}; microseconds of CPU, median of ${ROUNDS}`);
const rows = {};
for (const [size, bytes] of Object.entries(SIZES)) {
    const line = call(bytes);
    const expected = JSON.parse(line);
    assert.deepEqual(theirs(line).params.arguments, expected.params.arguments);
    for (const message of [decode(line), ...new Decoder().feed(Buffer.concat([line, Buffer.from('\n')])).drain()]) {
        assert.deepEqual([message.kind, message.id, message.method], ['request', 42, 'tools/call']);
        assert.deepEqual(message.params, expected.params);
    }
    const works = Object.entries(contenders(line));
    const took = Object.fromEntries(works.map(([name]) => [name, []]));
    for (const [, work] of works) perMessage(work);
    for (let round = 0; round < ROUNDS; round++) for (const [name, work] of works) took[name].push(perMessage(work));
    const base = median(took['SDK v1, inbound']);
    for (const [name, all] of Object.entries(took)) {
        const us = median(all);
        const bar = BARS[size][name.startsWith('lazy') ? 0 : name.startsWith('materialised') ? 1 : undefined];
        const mark = bar === undefined ? '' : base / us >= bar ? '' : ` <${bar}`;
        (rows[name] ??= []).push(name.startsWith('SDK') ? us.toFixed(2) : `${us.toFixed(2)} (${(base / us).toFixed(1)}x${mark})`);
        note({ bench: 'node-codec', size, name, us, ratio: base / us });
    }
}
console.log(''.padEnd(28) + Object.keys(SIZES).map(name => name.padStart(22)).join(''));
for (const [name, cells] of Object.entries(rows)) console.log(name.padEnd(28) + cells.map(cell => cell.padStart(22)).join(''));
