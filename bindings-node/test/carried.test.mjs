// Low-level servers of the SDK under every release, whose messages the engine carries, or whose handlers it calls: what goes
// over the wire is the same.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { call, executed, HELLO, LINES, ran, write } from './programs.mjs';
import { folder } from './wire.mjs';

const { known } = createRequire(import.meta.url)('../dist/sdk/gate.js');

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
        if (params.name === 'refuses') throw Object.assign(new Error('no'), { code: 7, data: { why: params.arguments } });
        if (params.name === 'throws nothing much') throw 'text';
        if (params.name === 'says nothing') return undefined;
        if (params.name === 'asks for more') server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [], more: 1 }));
        if (params.name === 'log') await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'said' } });
        return { content: [{ type: 'text', text: String(params.arguments.a + params.arguments.b) }] };
    });
    server.fallbackRequestHandler = async ({ method, params }) => {
        if (method === 'own/fails') throw Object.assign(new Error(method), { code: 1.5 });
        return { method, params };
    };
    const transport = new StdioServerTransport();`;
const ENDS = {
    // The program looks at each message.
    'the engine carries the messages, the sessions of @modelcontextprotocol/sdk': 'transport.onmessage = () => {};',
    "the engine serves 'low' (@modelcontextprotocol/sdk": ''
};
const CONNECT = 'server.connect(transport);';
const PROGRAMS = {
    mjs: Object.entries(NAMES).map(([from, names]) => `import { ${names} } from '${from}';`).join('\n') + BODY,
    cjs: Object.entries(NAMES).map(([from, names]) => `const { ${names} } = require('${from}');`).join('\n') + BODY
};
const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
const SCRIPT = [
    ...LINES,
    '{"jsonrpc":"2.0","id":3,"method":"ping"}',
    '{"jsonrpc":"2.0","id":4,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":"5","method":"com.example/answers"}',
    '{"jsonrpc":"2.0","id":51,"method":"own/fails","params":{"a":1}}',
    '{"jsonrpc":"2.0","id":52,"method":"logging/setLevel","params":{"level":"debug"}}',
    '{"jsonrpc":"2.0","id":53,"method":"logging/setLevel","params":{"level":"loud"}}',
    '{"jsonrpc":"2.0","id":54,"method":"tools/call","params":{"arguments":{}}}',
    '{"jsonrpc":"2.0","id":55,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"_meta":{"x":1},"task":{"ttl":1}}}',
    ...['refuses', 'throws nothing much', 'says nothing', 'asks for more'].map((name, i) => call(60 + i, { a: [1] }, name))
];
// What comes with the request that replaces a handler may meet the old one.
const AFTER = [
    '{"jsonrpc":"2.0","id":65,"method":"tools/list"}',
    call(6, {}, 'throws'),
    call(7, {}, 'wait'),
    cancel,
    call(8, { a: 'ü', b: '🦀' }, 'log'),
    call(99, { a: 1, b: 1 })
];

const releaseOf = name => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, folder))).version;
const [name, version] = ['@modelcontextprotocol/sdk', releaseOf('@modelcontextprotocol/sdk')];
const isCarried = known({ name, version }) === 'carried';

for (const [ending, text] of Object.entries(PROGRAMS))
    for (const [said, looks] of Object.entries(ENDS))
        test(`what is said is the same, ${ending}: ${said}`, async () => {
            const file = write(`low.${ending}`, text + looks + CONNECT);
            const carries = isCarried || looks !== '';
            const lines = [SCRIPT];
            // A request before the handshake is the SDK's affair, unless the engine serves.
            if (carries) lines.push([call(9), HELLO, '{', ...SCRIPT.slice(3)]);
            for (const script of lines) {
                const options = { lines: script, then: { after: 63, lines: AFTER }, last: 99 };
                const [ours, own] = await Promise.all([executed([file], options), ran([file], options)]);
                assert.ok(ours.told[0].startsWith(`stdio: ${carries ? Object.keys(ENDS)[0] : said}`), ours.err);
                const sorted = ({ out }) => out.split('\n').filter(Boolean).map(line => JSON.parse(line)).sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
                // Errors are told on one line.
                const expected = sorted(own).map(message => (carries || !message.error ? message : { ...message, error: { ...message.error, message: message.error.message.replace(/\s+/g, ' ') } }));
                assert.deepEqual([ours.exit, sorted(ours)], [own.exit, expected]);
            }
        });
