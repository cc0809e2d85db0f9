// `mcpbolt exec` and `mcpbolt/register`: programs of all kinds, whose servers the engine serves.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { call, COMMAND, executed, HELLO, imports, LINES, made, program, ran, REGISTER, write } from './programs.mjs';
import { Wire } from './wire.mjs';

const CONNECT = 'server.connect(new StdioServerTransport())';
const serves = isModule => program(2, isModule, '').replace('const server', 'const make = () => { const server').replaceAll('StdioServerTransport', 'serveStdio') + 'return server; };\n';
const SERVES = { mjs: `${serves(true)}serveStdio(make);`, cjs: `${serves(false)}serveStdio(make);` };
/** Programs by how they come to their server: the ending of their file, and their text. */
const PROGRAMS = {
    'v1, a module': ['mjs', program(1)],
    'v1, CommonJS': ['cjs', program(1, false)],
    'v2, a module': ['mjs', program(2)],
    'v2, CommonJS': ['cjs', program(2, false)],
    'v2, serveStdio': ['mjs', SERVES.mjs],
    'v2, serveStdio, CommonJS': ['cjs', SERVES.cjs],
    'a subclass': ['mjs', `${imports(1)}\nclass Own extends McpServer { async connect(to) { await super.connect(to); } }\n${made(1, 'Own')}await ${CONNECT};`],
    'a factory, later': ['mjs', `${imports(1)}\nfunction make() { ${made(1)} return server; }\nsetTimeout(() => make().connect(new StdioServerTransport()), 50);`],
    'dynamic imports': ['cjs', `(async () => {
        const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
        const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
        const z = await import('zod');
        ${made(1)} await ${CONNECT};
    })();`],
    'listeners on stdin': ['mjs', program(1, true, `${CONNECT}; process.stdin.on('end', () => console.error('stdin has ended')).on('close', () => process.exit(0));`)],
    'stdin kept alive': ['mjs', program(1, true, `await ${CONNECT}; process.stdin.resume();`)]
};

describe('the engine serves whatever the program looks like', { concurrency: 3 }, () => {
    for (const [how, [ending, text]] of Object.entries(PROGRAMS))
        test(how, async () => {
            const file = write(`${how.replaceAll(/\W+/g, '-')}.${ending}`, text);
            // Both ways to begin do the same.
            const on = how.includes(',') ? ran(['--import', REGISTER, file]) : executed([file]);
            const [done, off] = await Promise.all([on, executed([file], { env: { MCPBOLT: 'off' } })]);
            assert.equal(done.exit, 0, done.err);
            assert.match(done.told[0], /^stdio: the engine serves 'program' \(@modelcontextprotocol\/\w+ \d/, done.err);
            assert.deepEqual(done.told.slice(1), ['tool add: native']);
            assert.deepEqual(done.answers, off.answers);
            assert.equal(done.err.includes('stdin has ended'), off.err.includes('stdin has ended'));
            assert.deepEqual([off.exit, off.told, off.answers[2].result.content[0].text], [0, [], '3']);
        });
});

/** What a request says of itself from 2026-07-28 on. */
const ENVELOPE = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}';

test('serveStdio without a handshake, and what its factory may do', async () => {
    const request = (id, method, params = '') => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}${ENVELOPE}}}`;
    const lines = [request(1, 'server/discover'), request(3, 'tools/list'), request(4, 'tools/call', '"name":"none",'), request(2, 'tools/call', '"name":"add","arguments":{"a":1,"b":2},')];
    const file = write('modern.mjs', SERVES.mjs);
    const [ours, own] = await Promise.all([executed([file], { lines }), ran([file], { lines })]);
    // The engine tells of the revisions with a handshake, too.
    assert.deepEqual(ours.answers[1].result.supportedVersions.slice(0, 1), own.answers[1].result.supportedVersions);
    for (const id of [2, 3, 4]) assert.deepEqual(ours.answers[id], own.answers[id]);
    const low = `import { Server } from '@modelcontextprotocol/server'; import { serveStdio } from '@modelcontextprotocol/server/stdio';
        serveStdio(() => { const server = new Server({ name: 'low', version: '1' }, { capabilities: { tools: {} } }); server.setRequestHandler('tools/call', async () => ({ content: [{ type: 'text', text: '3' }] })); return server; });`;
    const fails = `${serves(true)} let count = 0; serveStdio(() => { if (count++ < 2) throw new Error('not yet'); return make(); }, { onerror: error => console.error('heard', error.message) });`;
    // A transport that is given is taken, too, unless it is not as it was made.
    for (const [change, reason] of [['', /the engine serves 'program'/], ['transport.onmessage = () => {};', /: the program reads the messages itself$/]]) {
        const text = `${SERVES.mjs.replace('serveStdio(make)', `const transport = new StdioServerTransport(); ${change} serveStdio(make, { transport })`)} import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';`;
        const done = await executed([write('given.mjs', text)]);
        assert.match(done.told[0], reason);
        assert.equal(done.answers[2].result.content[0].text, '3');
    }
    for (const [name, text, reason, answered] of [['low-entry.mjs', low, /: it is neither an McpServer nor a Server of v1/, true], ['fails.mjs', fails, /: it cannot be served: not yet$/m, false]]) {
        const done = await executed([write(name, text)]);
        assert.match(done.told.join('\n'), reason);
        if (answered) assert.equal(done.answers[2].result.content[0].text, '3');
        else assert.match(done.err, /heard not yet/);
    }
});

test('a report tells what is native and kept', async () => {
    const file = write('parts.mjs', program(1, true, `
        server.registerTool('off', {}, async () => ({ content: [] })).disable();
        server.registerResource('memo', 'memo://a', {}, async () => ({ contents: [] }));
        const { ReadResourceRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
        server.server.setRequestHandler(ReadResourceRequestSchema, async () => ({ contents: [{ uri: 'memo://a', text: 'another' }] }));
        await ${CONNECT};`));
    const read = id => `{"jsonrpc":"2.0","id":${id},"method":"resources/read","params":{"uri":"memo://a"}}`;
    const { told, answers } = await executed([file], { lines: [...LINES, read(3), read(4)], last: 4 });
    // Earlier releases complete, too, where there are resources.
    assert.deepEqual(told.slice(1).filter(line => !line.startsWith('completion/complete: kept')), [
        'tool add: native',
        'tool off: kept, it is disabled',
        "resource memo://a: kept, resources/read has a handler of the program's own"
    ]);
    assert.deepEqual([3, 4].map(id => answers[id].result.contents[0].text), ['another', 'another']);
});

const LOWLEVEL = `${imports(1)}
    import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js';
    const server = new Server({ name: 'low', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) => ({ content: [{ type: 'text', text: String(params.arguments.a + params.arguments.b) }] }));
    await ${CONNECT};`;
const OPENS = program(1, true, `
    const { InitializeRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    server.server.setRequestHandler(InitializeRequestSchema, async () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'own', version: '7' } }));
    await ${CONNECT};`);
const HEARD = 'for (const { method, id, result } of seen) console.error("seen", method ?? (result ? "result" : ""), id ?? "");';
const SEES = {
    'a listener before': `const transport = new StdioServerTransport(); const seen = []; transport.onmessage = message => seen.push(message);
        process.on('exit', () => { ${HEARD} }); await server.connect(transport);`,
    'a method of its own': `const transport = new StdioServerTransport(); const seen = []; const { send } = transport;
        transport.send = async (message, options) => (seen.push(message), send.call(transport, message, options));
        process.on('exit', () => { ${HEARD} }); await server.connect(transport);`,
    'a subclass of the transport': `const seen = [];
        class Logging extends StdioServerTransport { async send(message, options) { seen.push(message); return super.send(message, options); } }
        process.on('exit', () => { ${HEARD} }); await server.connect(new Logging());`
};

test('where the program takes part in the protocol, its sessions answer', async () => {
    const cases = [
        ['opens.mjs', OPENS, /: initialize has a handler of the program's own$/],
        ['direct.mjs', `${imports(1)}\nconst transport = new StdioServerTransport();
            transport.onmessage = ({ id }) => id && transport.send({ jsonrpc: '2.0', id, result: { content: [] } });
            await transport.start();`, /: the program reads the messages itself$/],
        ...Object.entries(SEES).map(([name, end]) => [`${name.replaceAll(' ', '-')}.mjs`, program(1, true, end), /: the program sees each message$/])
    ];
    for (const [name, text, reason] of cases) {
        const file = write(name, text);
        const [ours, own] = await Promise.all([executed([file]), ran([file])]);
        assert.equal(ours.exit, 0, ours.err);
        assert.match(ours.told[0], /^stdio: the engine carries the messages, the sessions of @modelcontextprotocol\/sdk /, name);
        assert.match(ours.told[0], reason);
        assert.deepEqual(ours.answers, own.answers);
        const seen = err => err.split('\n').filter(line => line.startsWith('seen'));
        assert.deepEqual(seen(ours.err), seen(own.err));
    }
});

const LOOK = `const { onmessage } = transport;
    transport.onmessage = (message, extra) => (console.error('seen', message.id), onmessage(message, extra));`;
const LOOKS = {
    McpServer: program(1, true, `const transport = new StdioServerTransport();
        await server.connect(transport);
        server.registerTool('look', {}, async () => { ${LOOK} return { content: [] }; });`),
    Server: LOWLEVEL.replace('async ({ params }) => (', `async ({ params }) => { if (params.name === 'look') { ${LOOK} } return (`)
        .replace('}] }));', '}] }); });').replace(`await ${CONNECT}`, 'const transport = new StdioServerTransport(); await server.connect(transport)')
};

for (const [name, text] of Object.entries(LOOKS)) test(`a program of ${name} that begins to look at the messages while it serves sees them from then on`, async () => {
    const file = write(`looks-${name}.mjs`, text);
    const wire = await Wire.open([COMMAND, 'exec', file]);
    for (const [id, name] of [[2, 'add'], [3, 'look'], [4, 'add'], [5, 'add']]) {
        wire.call(id, name, { a: 1, b: 2 });
        await wire.answer(id);
    }
    await wire.end();
    assert.equal(wire.stderr, 'seen 4\nseen 5\n');
});

test('where the engine cannot serve, the program does', async () => {
    const cases = [
        ['streams.mjs', program(1, true, `const { PassThrough } = await import('node:stream'); const through = new PassThrough(); process.stdin.pipe(through); await server.connect(new StdioServerTransport(through, process.stdout));`), 'the program has streams of its own'],
        ['reads.mjs', program(1, true, `process.stdin.on('data', () => console.error('some')); await ${CONNECT};`), 'the program has begun to read stdin'],
        ['thread.mjs', `import { isMainThread, Worker } from 'node:worker_threads'; import { fileURLToPath } from 'node:url';\n${program(1, true, `if (isMainThread) new Worker(fileURLToPath(import.meta.url), { stdin: false }); else await ${CONNECT};`)}`, 'it runs in a worker thread']
    ];
    for (const [name, text, reason] of cases.slice(0, 2)) {
        const done = await executed([write(name, text)]);
        assert.deepEqual([done.exit, done.told.length, done.answers[2].result.content[0].text], [0, 1, '3'], done.err);
        assert.ok(done.told[0].startsWith('stdio: the program serves by itself (@modelcontextprotocol/sdk ') && done.told[0].endsWith(`): ${reason}`), done.told[0]);
    }
    const [name, text, reason] = cases[2];
    const done = await ran(['--import', REGISTER, write(name, text)], { last: null, until: new RegExp(reason) });
    assert.ok(done.told.some(line => line.endsWith(reason)), done.err);
});

test('a call that runs when stdin ends is answered, as by itself', async () => {
    const slow = `server.registerTool('slow', {}, async () => { await new Promise(done => setTimeout(done, 300)); return { content: [] }; });`;
    for (const text of [program(1, true, `${slow} await ${CONNECT};`), LOWLEVEL.replace('async ({ params }) => (', 'async ({ params }) => (await new Promise(done => setTimeout(done, 300)), ')]) {
        const file = write('slow.mjs', text);
        const lines = [...LINES.slice(0, 2), text === LOWLEVEL ? call(2) : call(2, { a: 1, b: 1 }, 'slow')];
        const [ours, own] = await Promise.all([executed([file], { lines, last: null }), ran([file], { lines, last: null })]);
        assert.deepEqual([ours.exit, ours.answers], [own.exit, own.answers]);
        assert.ok(ours.answers[2].result);
    }
});

test('what is answered before the program exits is written', async () => {
    const file = write('exits.mjs', program(1, true, `
        server.registerTool('exit', {}, async () => (setImmediate(() => process.exit(7)), { content: [] }));
        await ${CONNECT};`));
    const lines = [...LINES.slice(0, 2), call(2, {}, 'exit')];
    for (let i = 0; i < 3; i++) {
        const done = await executed([file], { lines });
        assert.deepEqual([done.exit, done.answers[2]?.result], [7, { content: [] }], done.err);
    }
});

test('a server that is closed lets its process end, also by a handler', async () => {
    const end = 'server.server.onclose = () => console.error("closed");';
    const cases = [
        program(1, true, `await ${CONNECT}; ${end} setTimeout(() => server.close(), 500);`),
        program(2, true, `await ${CONNECT}; ${end} setTimeout(() => server.close(), 500);`),
        program(1, true, `${end} server.registerTool('quit', {}, async () => { await server.close(); console.error('after'); return { content: [] }; }); await ${CONNECT};`)
    ];
    for (const [at, text] of cases.entries()) {
        const done = await executed([write(`closes${at}.mjs`, text)], { lines: [...LINES, ...(at === 2 ? [call(3, {}, 'quit')] : [])], last: 99, until: at === 2 ? /after/ : /closed/ });
        assert.deepEqual([done.exit, done.err.match(/closed/g)?.length], [0, 1], done.err);
    }
});

test('what is printed stays off the wire', async () => {
    const file = write('loud.mjs', program(1, true, `
        const { execSync } = await import('node:child_process');
        await ${CONNECT};
        server.registerTool('loud', {}, async () => { console.log('in Node'); execSync('echo from a child', { stdio: 'inherit' }); return { content: [] }; });`));
    const done = await executed([file], { lines: [...LINES.slice(0, 2), call(2, {}, 'loud')] });
    assert.ok(done.err.includes('in Node') && done.err.includes('from a child'), done.err);
});

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
    test(`${signal} ends it as it does by itself`, async () => {
        for (const end of ['', `process.on('${signal}', async () => { await server.close(); process.exit(3); });`]) {
            const file = write(`ends-${signal}${end.length}.mjs`, program(1, true, `await ${CONNECT}; ${end} console.error('ready');`));
            const ended = how =>
                new Promise(resolve => {
                    const child = spawn(process.execPath, [...how, file]);
                    child.stderr.setEncoding('utf8').on('data', text => text.includes('ready') && child.kill(signal));
                    child.on('close', (code, by) => resolve(by ?? code));
                });
            assert.equal(await ended([COMMAND, 'exec']), await ended([]));
        }
    });

test('messages that are no JSON and calls that are wrong are answered', async () => {
    const lines = [HELLO, '{', call(2, { a: 'x' }), call(3, {}, 'none')];
    for (const generation of [1, 2]) {
        const file = write(`wrong${generation}.mjs`, program(generation));
        const [ours, own] = await Promise.all([executed([file], { lines, last: 3 }), ran([file], { lines, last: 3 })]);
        assert.deepEqual([ours.answers[2], ours.answers[3]], [own.answers[2], own.answers[3]]);
    }
});

test('a program hears of the end of stdin once it has begun with every call before it', async () => {
    for (const generation of [1, 2]) {
        const file = write(`exits${generation}.mjs`, program(generation, true, `
            process.stdin.on('end', () => process.exit());
            await server.connect(new StdioServerTransport());`));
        const ids = Array.from({ length: 600 }, (_, number) => number + 2);
        const done = await executed([file], { lines: [...LINES.slice(0, 2), ...ids.map(id => call(id))], last: null });
        assert.deepEqual(ids.filter(id => !done.answers[id]), [], done.stderr);
    }
});
