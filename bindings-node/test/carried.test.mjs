// Low-level servers of the SDK, whose messages the engine carries, under every release: what goes over the wire is the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, executed, HELLO, LINES, ran, write } from './programs.mjs';

const NAMES = {
    '@modelcontextprotocol/sdk/server/index.js': 'Server',
    '@modelcontextprotocol/sdk/server/stdio.js': 'StdioServerTransport',
    '@modelcontextprotocol/sdk/types.js': 'CallToolRequestSchema, ListToolsRequestSchema'
};
const BODY = `
    const server = new Server({ name: 'low', version: '1' }, { capabilities: { tools: {}, logging: {} }, instructions: 'Try it.' });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [{ name: 'add', inputSchema: { type: 'object' } }] }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
        if (params.name === 'wait') await new Promise(resolve => extra.signal.addEventListener('abort', resolve));
        if (params.name === 'throws') throw new Error('it broke');
        if (params.name === 'log') await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'said' } });
        return { content: [{ type: 'text', text: String(params.arguments.a + params.arguments.b) }] };
    });
    server.connect(new StdioServerTransport());`;
const PROGRAMS = {
    mjs: Object.entries(NAMES).map(([from, names]) => `import { ${names} } from '${from}';`).join('\n') + BODY,
    cjs: Object.entries(NAMES).map(([from, names]) => `const { ${names} } = require('${from}');`).join('\n') + BODY
};
const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
const SCRIPT = [
    ...LINES,
    '{"jsonrpc":"2.0","id":3,"method":"ping"}',
    '{"jsonrpc":"2.0","id":4,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":"5","method":"resources/list"}',
    call(6, {}, 'throws'),
    call(7, {}, 'wait'),
    cancel,
    call(8, { a: 'ü', b: '🦀' }, 'log'),
    call(9, { a: 1, b: 1 })
];

for (const [ending, text] of Object.entries(PROGRAMS))
    test(`what is said is the same, ${ending}`, async () => {
        const file = write(`low.${ending}`, text);
        // A request before the handshake is the SDK's affair.
        for (const lines of [SCRIPT, [call(9), HELLO, '{', ...SCRIPT.slice(3)]]) {
            const [ours, own] = await Promise.all([executed([file], { lines, last: 9 }), ran([file], { lines, last: 9 })]);
            assert.match(ours.told.join('\n'), /^stdio: the engine carries the messages, the sessions of @modelcontextprotocol\/sdk \d[^\n]*$/, ours.err);
            assert.deepEqual([ours.exit, ours.out.split('\n').sort()], [own.exit, own.out.split('\n').sort()]);
        }
    });
