// Each option of the SDKs' transports under `mcpbolt exec`: it does what it does by itself, or its server stays as it is.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { call, COMMAND, executed, HELLO, LINES, program, ran, write } from './programs.mjs';
import { until } from './until.mjs';

const require = createRequire(import.meta.url);

/** The text of all types that a package has. */
function typesOf(file) {
    const folder = dirname(require.resolve(file));
    const files = readdirSync(folder).filter(name => /\.d\.m?ts$/.test(name));
    return files.map(name => readFileSync(join(folder, name), 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')).join('\n');
}

/** The members of a type, as it is declared: those that begin a line with the least indentation. */
function membersOf(text, start) {
    const at = text.search(start);
    assert.ok(at >= 0, `no ${start}`);
    const body = text.slice(text.indexOf('{', at) + 1);
    const lines = body.slice(0, body.search(/\n\s{0,4}\}/)).split('\n').filter(line => line.trim());
    const indent = Math.min(...lines.map(line => line.search(/\S/)));
    return lines.filter(line => line.search(/\S/) === indent).map(line => /^\s*(\w+)\??:/.exec(line)?.[1]).filter(Boolean);
}

const TYPES = { 1: typesOf('@modelcontextprotocol/sdk/server/stdio.js'), 2: typesOf('@modelcontextprotocol/server') };

/** How a program is run on the engine, and as it is. */
const WAYS = { exec: [COMMAND, 'exec'], own: [] };

const HTTP = {
    1: `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'; import { StreamableHTTPServerTransport as Transport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';`,
    2: `import { McpServer } from '@modelcontextprotocol/server'; import { NodeStreamableHTTPServerTransport as Transport } from '@modelcontextprotocol/node';`
};
/** A program with one session, whose transport has these options; `parse` is code that may read the body before. */
const http = (generation, options, parse = '', server = '{}') => `
    import { createServer } from 'node:http';
    import * as z from 'zod';
    ${HTTP[generation]}
    const sleep = ms => new Promise(done => setTimeout(done, ms));
    const server = new McpServer({ name: 'program', version: '1' }, ${server});
    server.registerTool('length', { inputSchema: ${generation === 1 ? '{ text: z.string() }' : 'z.object({ text: z.string() })'} }, async ({ text }) => ({ content: [{ type: 'text', text: String(text.length) }] }));
    const transport = new Transport({ sessionIdGenerator: () => 'my-session', ...${options} });
    transport.onerror = error => console.error('onerror', error.message);
    transport.onclose = () => console.error('onclose');
    await server.connect(transport);
    const listener = createServer(async (request, response) => {
        let body;
        ${parse}
        try { await transport.handleRequest(request, response, body); } catch (error) { console.error('thrown', error.message); response.statusCode = 500; response.end(); }
    }).listen(0, '127.0.0.1', () => console.error('at http://127.0.0.1:' + listener.address().port + '/mcp'));`;

const children = new Set();
after(() => children.forEach(child => child.kill('SIGKILL')));

/** A program that serves HTTP. */
async function started(name, text, how) {
    const child = spawn(process.execPath, [...WAYS[how], write(`${name}-${how}.mjs`, text)], { env: { ...process.env, MCPBOLT_REPORT: '1' } });
    children.add(child);
    const run = { child, err: '' };
    child.stderr.setEncoding('utf8').on('data', text => (run.err += text));
    await until(() => /at http\S+/.test(run.err) || child.exitCode !== null);
    run.url = /at (http\S+)/.exec(run.err)?.[1];
    assert.ok(run.url, run.err);
    run.headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    run.send = async (body, { method = 'POST', headers = {} } = {}) => {
        const response = await fetch(run.url, { method, headers: { ...run.headers, ...headers }, ...(body && { body }) });
        const text = await response.text();
        const json = text.startsWith('{') ? text : /^data: (.+)$/m.exec(text)?.[1];
        return { status: response.status, message: json && JSON.parse(json), session: response.headers.get('mcp-session-id') };
    };
    run.open = async () => {
        const opened = await run.send(HELLO);
        Object.assign(run.headers, { 'mcp-session-id': 'my-session', 'mcp-protocol-version': '2025-11-25' });
        await run.send(LINES[1]);
        return opened;
    };
    run.end = () => (child.kill(), children.delete(child));
    run.said = () => run.err.split('\n').filter(line => /^(onerror|onclose|thrown|heard)/.test(line));
    return run;
}

/** What both ways give for the steps of a case. */
async function both(name, text, steps) {
    const [own, exec] = await Promise.all(['own', 'exec'].map(how => once(name, text, how, steps)));
    return { own: own.found, exec: exec.found, told: exec.told };
}

/** The output of a program run in one way, and the report of this package. */
async function once(name, text, how, steps) {
    const run = await started(name, text, how);
    const found = await steps(run);
    run.end();
    return { found, told: run.err.split('\n').filter(line => line.startsWith('mcpbolt: ')) };
}

/** The engine serves, and does the same. */
async function heeds(name, text, steps) {
    const { own, exec, told } = await both(name, text, steps);
    assert.match(told[0] ?? '', /^mcpbolt: http: the engine serves/);
    assert.deepEqual(exec, own);
    return own;
}

/** The program serves by itself, and one line says why. */
async function keeps(name, text, reason) {
    const { told } = await once(name, text, 'exec', run => run.open());
    assert.equal(told.length, 1, told.join('\n'));
    assert.ok(told[0].startsWith('mcpbolt: http: the program serves by itself') && told[0].endsWith(`: ${reason}`), told[0]);
}

const length = (characters, id = 2) => call(id, { text: 'x'.repeat(characters) }, 'length');
const PARSE = `if (request.method === 'POST') { let text = ''; for await (const piece of request.setEncoding('utf8')) text += piece; body = JSON.parse(text); }`;

/** For each option of a transport over HTTP: what it does, or why the program serves by itself. */
const OPTIONS = {
    sessionIdGenerator: async (name, g) => {
        await keeps(name, http(g, '{ sessionIdGenerator: undefined }'), 'it has no sessions');
        const own = await heeds(`${name}-own`, http(g, '{}'), async run => [(await run.open()).session, (await run.send(length(7))).message]);
        assert.equal(own[0], 'my-session');
    },
    onsessioninitialized: async (name, g) => {
        const waits = await heeds(name, http(g, `{ onsessioninitialized: async id => { console.error('heard begins'); await sleep(300); console.error('heard ends', id); } }`), async run => {
            const { status } = await run.open();
            return [status, run.said()];
        });
        assert.deepEqual(waits, [200, ['heard begins', 'heard ends my-session']]);
        for (const body of [`async () => { await sleep(50); throw new Error('no room'); }`, `() => { throw new Error('no room'); }`]) {
            const fails = await heeds(`${name}-fails`, http(g, `{ onsessioninitialized: ${body} }`), async run => {
                const { status, message } = await run.send(HELLO);
                return [status, message, run.said()];
            });
            assert.deepEqual(fails, [400, { jsonrpc: '2.0', error: { code: -32700, message: 'Parse error', data: 'Error: no room' }, id: null }, ['onerror no room']]);
        }
    },
    onsessionclosed: async (name, g) => {
        const close = async run => {
            await run.open();
            const { status } = await run.send('', { method: 'DELETE' });
            const said = run.said();
            await until(() => run.err.includes('onclose'));
            return [status < 300, said.slice(0, 2)];
        };
        const waits = await heeds(name, http(g, `{ onsessionclosed: async id => { console.error('heard begins'); await sleep(300); console.error('heard ends', id); } }`), close);
        assert.deepEqual(waits, [true, ['heard begins', 'heard ends my-session']]);
        const { own, exec } = await both(`${name}-fails`, http(g, `{ onsessionclosed: async () => { throw new Error('still open'); } }`), async run => {
            await run.open();
            return (await run.send('', { method: 'DELETE' })).status;
        });
        assert.deepEqual([exec, own], [500, 500]);
    },
    enableJsonResponse: (name, g) => keeps(name, http(g, '{ enableJsonResponse: true }'), 'it answers with JSON only'),
    eventStore: (name, g) => keeps(name, http(g, `{ eventStore: { storeEvent: async () => 'a', replayEventsAfter: async () => '' } }`), 'it keeps events for clients that resume'),
    enableDnsRebindingProtection: (name, g) => keeps(name, http(g, '{ enableDnsRebindingProtection: true, allowedHosts: [] }'), 'it checks hosts and origins itself'),
    // Without the option above, these do nothing.
    allowedHosts: (name, g) => heeds(name, http(g, `{ allowedHosts: ['other.example'] }`), async run => (await run.open()).status),
    allowedOrigins: (name, g) => heeds(name, http(g, `{ allowedOrigins: ['https://other.example'] }`), async run => (await run.send(HELLO, { headers: { origin: 'https://evil.example' } })).status),
    // The SDK sends it to clients that resume, with an event store only.
    retryInterval: (name, g) => heeds(name, http(g, '{ retryInterval: 50 }'), async run => (await run.open(), (await run.send(length(3))).message)),
    keepAliveMs: async (name, g) => {
        for (const [value, isSilent] of [[100, false], [0, true], ['Infinity', true]]) {
            const beats = await heeds(`${name}-${value}`, http(g, `{ keepAliveMs: ${value} }`), async run => {
                await run.open();
                const controller = new AbortController();
                const stream = await fetch(run.url, { headers: { ...run.headers, accept: 'text/event-stream' }, signal: controller.signal });
                const reader = stream.body.getReader();
                // Time decides only whether silence is found to be broken.
                const comment = await Promise.race([reader.read().then(({ value }) => Buffer.from(value).toString().startsWith(':')), new Promise(done => setTimeout(done, isSilent ? 700 : 10_000, false))]);
                controller.abort();
                return comment;
            });
            assert.equal(beats, !isSilent, `keepAliveMs: ${value}`);
        }
    },
    maxRequestBodySize: async (name, g) => {
        const sizes = async run => {
            await run.open();
            const found = [];
            for (const size of [100, 900, 2000]) found.push((await run.send(length(size))).status);
            // Without a length, as a stream.
            const body = new Blob([length(2000)]).stream();
            const streamed = await fetch(run.url, { method: 'POST', headers: run.headers, body, duplex: 'half' });
            const tooLong = await run.send(length(2000));
            return [found, streamed.status, tooLong.status === 413 && tooLong.message];
        };
        for (const value of [1000, 1000.5]) {
            const [found, streamed, message] = await heeds(`${name}-${value}`, http(g, `{ maxRequestBodySize: ${value} }`), sizes);
            assert.deepEqual([found, streamed], [[200, 200, 413], 413]);
            assert.equal(message.error.message, `Payload Too Large: Request body must not exceed ${value} bytes`);
        }
        // What the program has parsed is bounded by its parser.
        const large = async run => (await run.open(), (await run.send(length(6 << 20))).message?.result?.content[0].text);
        assert.equal(await heeds(`${name}-parsed`, http(g, '{}', PARSE), large), String(6 << 20));
        assert.equal(await heeds(`${name}-read`, http(g, '{}'), async run => (await run.open(), (await run.send(length(6 << 20))).status)), 413);
    },
    // A server tells its transport anew.
    supportedProtocolVersions: async (name, g) => {
        await heeds(name, http(g, `{ supportedProtocolVersions: ['2025-03-26'] }`), async run => (await run.open()).message.result.protocolVersion);
        await keeps(`${name}-server`, http(g, '{}', '', `{ supportedProtocolVersions: ['2025-06-18'] }`), 'it chooses its protocol versions itself');
    }
};

describe('options over HTTP', { concurrency: 3 }, () => {
    for (const g of [1, 2]) {
        const names = membersOf(TYPES[g], /interface WebStandardStreamableHTTPServerTransportOptions \{/);
        for (const name of names)
            test(`${name}, v${g}`, { timeout: 120_000 }, async () => {
                assert.ok(OPTIONS[name], `${name} is new: does the engine heed it?`);
                await OPTIONS[name](`${name.toLowerCase()}-${g}`, g);
            });
        test(`the options of v${g} are known`, () => assert.deepEqual(Object.keys(OPTIONS).filter(name => !names.includes(name)), g === 1 ? ['supportedProtocolVersions'] : []));
    }
});

const SERVE = program(2, true, '').replace('const server', 'const make = () => { const server').replaceAll('StdioServerTransport', 'serveStdio') + 'return server; };\n';
/** For each option of `serveStdio`: a program, and what is told of it. */
const SERVE_OPTIONS = {
    legacy: [`serveStdio(make, { legacy: 'reject' });`, /the engine serves/],
    onerror: [`serveStdio(make, { onerror: error => console.error('heard', error.message) });`, /the engine serves/],
    transport: [`import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'; serveStdio(make, { transport: new StdioServerTransport() });`, /the engine serves/],
    maxSubscriptions: [`serveStdio(make, { maxSubscriptions: 1 });`, /: it limits subscriptions itself$/]
};
const META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}';
const modern = (id, name) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":{"a":1,"b":2},${META}}}`;

describe('options on stdin and stdout', { concurrency: 3 }, () => {
    for (const g of [1, 2])
        test(`those of the transport, v${g}`, async () => {
            const [names] = /options\?: \{([^}]*)\}/.exec(TYPES[g].slice(TYPES[g].search(/class StdioServerTransport /))) ?? [''];
            assert.deepEqual([...names.matchAll(/(\w+)\?:/g)].map(([, name]) => name), ['options', 'maxBufferSize']);
            const text = program(g, true, 'await server.connect(new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 4096 }));');
            const lines = [...LINES, call(3, { a: 1, b: 2, c: 'x'.repeat(5000) })];
            const file = write(`buffer${g}.mjs`, text);
            // The transport closes itself, and answers nothing more.
            const [ours, own] = await Promise.all([executed([file], { lines, last: null }), ran([file], { lines, last: null })]);
            assert.deepEqual([own.exit, own.answers], [0, {}]);
            assert.deepEqual([ours.exit, ours.answers, ours.told.length], [own.exit, own.answers, 1], ours.err);
            assert.match(ours.told[0], /^stdio: the program serves by itself .*: it bounds its buffer itself$/);
        });

    test('those of serveStdio', async () => {
        const names = membersOf(TYPES[2], /interface ServeStdioOptions \{/);
        assert.deepEqual(names.toSorted?.() ?? [...names].sort(), Object.keys(SERVE_OPTIONS).sort());
        for (const [name, [end, told]] of Object.entries(SERVE_OPTIONS)) {
            const file = write(`serve-${name}.mjs`, `${SERVE}${end}`);
            const [ours, own] = await Promise.all([executed([file], { lines: [modern(2, 'add')] }), ran([file], { lines: [modern(2, 'add')] })]);
            assert.deepEqual([ours.exit, ours.answers], [own.exit, own.answers], ours.err);
            assert.match(ours.told[0], told);
            if (name === 'legacy') assert.ok((await executed([file], { lines: [HELLO], last: 1 })).answers[1].error);
        }
    });

    test('versions that a server chooses', async () => {
        const file = write('versions.mjs', program(2, true, 'await server.connect(new StdioServerTransport());').replace("version: '1' }", "version: '1' }, { supportedProtocolVersions: ['2025-06-18'] }"));
        const [ours, own] = await Promise.all([executed([file]), ran([file])]);
        assert.deepEqual(ours.answers, own.answers);
        assert.equal(ours.answers[1].result.protocolVersion, '2025-06-18');
        assert.match(ours.told[0], /^stdio: the engine carries .*: it chooses its protocol versions itself$/);
    });
});
