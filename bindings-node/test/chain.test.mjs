// Chains: fronts, middleware and external servers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client, External, Front, McpError, Prefix, ProtocolError, Server, ToolError } from 'mcpbolt';
import { within } from './until.mjs';

const REVISIONS = ['2025-06-18', '2026-07-28'];
const path = name => fileURLToPath(new URL(`../examples/${name}`, import.meta.url));
const DIAGNOSTIC = [process.execPath, path('diagnostic.mjs')];
const quiet = { onError: () => {} };

function inner(options = {}) {
    const server = new Server('inner', '1.0.0', options);
    const integer = { type: 'integer' };
    const inputSchema = { type: 'object', properties: { a: integer, b: integer }, required: ['a', 'b'] };
    server.tool('add', { inputSchema }, ({ a, b }) => String(a + b));
    server.tool('ask', {}, async (_, ctx) => {
        const form = { type: 'object', properties: { name: { type: 'string' } } };
        return JSON.stringify((await ctx.elicit('Your name?', form)).content);
    });
    server.tool('log', {}, (_, ctx) => {
        ctx.log('info', 'one');
        ctx.log('info', 'two');
        return 'logged';
    });
    return server;
}

const texts = result => result.content.map(one => one.text).join();

class Watching {
    constructor(name = '', seen = []) {
        Object.assign(this, { name, seen });
    }
    async request(message, next) {
        this.seen.push(`${this.name}> ${message.method} ${next.direction}`);
        const response = await next(message);
        assert.equal(response.id, message.id);
        this.seen.push(`${this.name}< ${response.error ? 'error' : 'result'}`);
        return response;
    }
    async notification(message, next) {
        this.seen.push(`${this.name}! ${message.method} ${next.direction}`);
        await next(message);
    }
}

for (const revision of REVISIONS) {
    test(`R-CHN-08 middleware sees requests in order and answers in reverse, in ${revision}`, async t => {
        const seen = [];
        const front = new Front(new External(inner()), { middleware: [new Watching('a', seen), new Watching('b', seen)] });
        assert.equal(front.name, 'inner');
        const client = await Client.connect(front, { revision });
        t.after(() => client.close());
        assert.equal(texts(await client.callTool('add', { a: 1, b: 2 })), '3');
        assert.equal(client.server.name, 'inner');
        assert.deepEqual(seen, ['a> tools/call to_server', 'b> tools/call to_server', 'b< result', 'a< result']);
    });

    test(`questions of the server pass in the other direction, in ${revision}`, async t => {
        const watching = new Watching();
        const front = new Front(new External(inner()), { middleware: [watching] });
        const client = await Client.connect(front, { revision, onElicitation: () => ({ action: 'accept', content: { name: 'Faust' } }) });
        t.after(() => client.close());
        assert.equal(texts(await client.callTool('ask')), '{"name":"Faust"}');
        // Between two sides of the stateless era, questions are parts of answers.
        assert.equal(watching.seen.includes('> elicitation/create to_client'), revision === '2025-06-18');
    });

    test(`messages may be changed on their way, in ${revision}`, async t => {
        const changing = {
            async request(message, next) {
                if (message.params.name === 'add') message.params.arguments.b = 40;
                return next(message);
            },
            async response(message, next) {
                assert.equal(next.direction, 'to_client');
                assert.equal(next.revision, revision);
                if (next.request.method === 'tools/call') message.result.content[0].text += '!';
                await next(message);
            },
            async notification(message, next) {
                if (message.params.data === 'one') return;
                message.params.data = 'other';
                await next(message);
            }
        };
        const front = new Front(new External(inner()), { middleware: [changing] });
        const logs = [];
        const client = await Client.connect(front, { revision, on: { log: ({ data }) => logs.push(data) } });
        t.after(() => client.close());
        await client.setLogLevel('debug');
        assert.equal(texts(await client.callTool('add', { a: 2, b: 2 })), '42!');
        assert.equal(texts(await client.callTool('log')), 'logged!');
        assert.deepEqual(logs, ['other']);
    });
}

test('answers do not overtake notifications', async t => {
    const front = new Front(new External(inner()), { middleware: [{ notification: (message, next) => next(message) }] });
    const logs = [];
    const client = await Client.connect(front, { on: { log: ({ data }) => logs.push(data) } });
    t.after(() => client.close());
    await client.setLogLevel('debug');
    for (let n = 0; n < 30; n++) await client.callTool('log');
    assert.deepEqual(logs, Array.from({ length: 30 }, () => ['one', 'two']).flat());
});

test('middleware may answer itself and refuse, and its exceptions are errors for the sender', async t => {
    const own = {
        async request(message, next) {
            switch (message.params.name) {
                case 'mine':
                    return { result: { content: [{ type: 'text', text: 'mine' }], resultType: 'complete' } };
                case 'error':
                    return { error: { code: -32000, message: 'no', data: [1] } };
                case 'protocol':
                    throw new ProtocolError('invalid params', 'not so', { a: 1 });
                case 'peer':
                    throw new McpError('ERR_MCP_PEER', 'as the other said', { rpcCode: -7 });
                case 'tool':
                    throw new ToolError('shown');
                case 'fails':
                    throw new Error('a secret');
                case 'nothing':
                    return undefined;
                case 'twice':
                    await next(message);
                    return next(message);
                case 'method':
                    return next({ ...message, method: 'tools/list' });
                case 'circular': {
                    const data = {};
                    throw new ProtocolError('invalid params', 'not so', (data.self = data));
                }
            }
            return next(message);
        }
    };
    const failures = [];
    const front = new Front(new External(inner()), { middleware: [own], onError: error => failures.push(error.message) });
    const client = await Client.connect(front);
    t.after(() => client.close());
    assert.equal(texts(await client.callTool('mine')), 'mine');
    const unexpected = [-32603, 'the middleware failed unexpectedly', undefined];
    const refused = {
        error: [-32000, 'no', [1]],
        protocol: [-32602, 'not so', { a: 1 }],
        peer: [-7, 'as the other said', undefined],
        tool: [-32603, 'shown', undefined],
        ...{ fails: unexpected, nothing: unexpected, twice: unexpected, method: unexpected, circular: unexpected }
    };
    for (const [name, [rpcCode, message, data]] of Object.entries(refused))
        await assert.rejects(client.callTool(name), error => {
            assert.deepEqual([error.rpcCode, error.message, error.data], [rpcCode, message, data]);
            return true;
        });
    assert.equal(failures.length, 5);
    assert.match(failures[2], /passed on before/);
    // The front goes on.
    assert.equal(texts(await client.callTool('add', { a: 1, b: 2 })), '3');
});

test('R-CAN-12 a cancellation reaches middleware and the server', async t => {
    const server = inner();
    let begun, reached;
    const [begins, aborted] = [new Promise(resolve => (begun = resolve)), new Promise(resolve => (reached = resolve))];
    server.tool('wait', {}, (_, ctx) => {
        begun();
        return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => (reached(), reject(ctx.signal.reason))));
    });
    let told;
    const waiting = {
        async request(message, next) {
            next.signal.addEventListener('abort', () => (told = next.signal.reason));
            return next(message);
        }
    };
    const client = await Client.connect(new Front(new External(server), { middleware: [waiting], ...quiet }));
    t.after(() => client.close());
    const abort = new AbortController();
    const call = client.callTool('wait', {}, { signal: abort.signal });
    await begins;
    abort.abort();
    await assert.rejects(call);
    await aborted;
    while (told === undefined) await new Promise(setImmediate);
    assert.equal(told.code, 'ERR_MCP_CANCELLED');
});

test('R-CAN-12 messages go on when a client has given up a notification that middleware has in hand', async t => {
    const [held, released] = [[], []];
    const middleware = [
        {
            async notification(message, next) {
                if (message.method === 'notifications/subscriptions/acknowledged') {
                    held.shift()();
                    await new Promise(resolve => released.push(resolve));
                }
                await next(message);
            }
        }
    ];
    const front = new Front(new External(inner({ listChanges: true }), { opening: 'handshake' }), { middleware });
    const logs = [];
    const client = await Client.connect(front, { revision: '2026-07-28', on: { log: ({ data }) => logs.push(data) } });
    t.after(() => client.close());
    await client.setLogLevel('debug');
    for (let n = 0; n < 5; n++) {
        const isHeld = new Promise(resolve => held.push(resolve));
        const abort = new AbortController();
        const listening = assert.rejects(client.listen({ tools: true }, { signal: abort.signal }));
        await within('the acknowledgement', isHeld);
        abort.abort();
        await listening;
        // That it is given up is then told before anything else comes.
        await new Promise(resolve => setTimeout(resolve, 20));
        await within('the call', client.callTool('log'));
    }
    for (const release of released) release();
    assert.deepEqual(logs, Array.from({ length: 5 }, () => ['one', 'two']).flat());
});

test('middleware may make a notification another one, without params', async t => {
    const middleware = [{ notification: ({ jsonrpc }, next) => next({ jsonrpc, method: 'notifications/prompts/list_changed' }) }];
    const front = new Front(new External(inner()), { middleware });
    const told = [];
    const on = { log: () => told.push('log'), promptsChanged: () => told.push('changed') };
    const client = await Client.connect(front, { revision: '2025-06-18', on });
    t.after(() => client.close());
    await client.setLogLevel('debug');
    await client.callTool('log');
    assert.deepEqual(told, ['changed', 'changed']);
});

test('R-CHN-14 a server that cannot be reached is an exception for middleware and an error for the client', async t => {
    const seen = [];
    const seeing = {
        async request(message, next) {
            try {
                return await next(message);
            } catch (error) {
                seen.push(error);
                throw error;
            }
        }
    };
    const server = inner();
    server.tool('wait', {}, () => new Promise(() => {}));
    const client = await Client.connect(new Front(new External(server, { timeout: 50 }), { middleware: [seeing] }));
    t.after(() => client.close());
    await assert.rejects(client.callTool('wait'), error => error.data.reason === 'upstream_timeout' && error.data.upstream === 'inner');
    assert.equal(seen[0].code, 'ERR_MCP_TIMEOUT');
    const gone = new Front(new External('tcp:127.0.0.1:1', { name: 'gone' }));
    await assert.rejects(Client.connect(gone), /the server "gone"/);
});

test('R-CHN-10 what is passed on unchanged stays as it is byte for byte', async t => {
    const echo = `
        const { createInterface } = require('node:readline');
        createInterface({ input: process.stdin }).on('line', line => {
            const { id, method } = JSON.parse(line);
            if (id === undefined) return;
            const first = '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"e","version":"1"}}';
            const at = line.indexOf('"arguments":') + 12;
            let depth = 0, end = at;
            do depth += (line[end] === '{') - (line[end] === '}'), end++;
            while (depth > 0);
            const result = method === 'initialize' ? first : '{"content":[],"structuredContent":' + line.slice(at, end) + '}';
            console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}');
        });`;
    const looking = { request: (message, next) => next(message) };
    const front = new Front(new External([process.execPath, '-e', echo], { opening: 'handshake' }), { middleware: [looking] });
    const serving = await front.serve('tcp:127.0.0.1:0');
    t.after(() => serving.close());
    const socket = connect(Number(serving.address.split(':').at(-1)), '127.0.0.1');
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    await lines.next();
    const asked = '{"a":1.00000000000000000000000000000000001,"a":2,"\\u00e9":"\\u0041","big":123456789012345678901234567890e0}';
    socket.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    socket.write(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"raw","arguments":${asked}}}\n`);
    const { value } = await lines.next();
    assert.equal(value, `{"jsonrpc":"2.0","id":"x","result":{"content":[],"structuredContent":${asked}}}`);
    socket.destroy();
});

test('a front serves another process over HTTP with a prefix and another front', async t => {
    const first = new Front(new External(DIAGNOSTIC), { middleware: [new Prefix('first')] });
    const watching = new Watching();
    const second = new Front(new External(first, { name: 'second' }), { middleware: [watching] });
    const serving = await second.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    for (const revision of REVISIONS) {
        const client = await Client.connect(serving.address, { revision });
        t.after(() => client.close());
        const tools = await client.listTools();
        assert.ok(tools.length > 0 && tools.every(({ name }) => name.startsWith('first_')));
    }
    assert.ok(watching.seen.includes('> tools/list to_server') && serving.counts.httpRequests > 0);
});

test('the lifespan of a server at the end is open while the front is served', async t => {
    const seen = [];
    const lifespan = { start: () => (seen.push('open'), 'state'), stop: () => seen.push('closed') };
    const server = new Server('alive', '1', { lifespan });
    server.tool('state', {}, (_, ctx) => ctx.state);
    const front = new Front(new External(server));
    for (let n = 0; n < 2; n++) {
        const serving = await front.serve('http://127.0.0.1:0/mcp');
        const client = await Client.connect(serving.address);
        assert.equal(texts(await client.callTool('state')), 'state');
        await client.close();
        assert.equal((await serving.close()).reason, 'stopped');
    }
    assert.deepEqual(seen, ['open', 'closed', 'open', 'closed']);
});

test('a front has a policy of its own whose credentials stay with it', async t => {
    const token = 'k'.repeat(40);
    const seen = [];
    const who = { request: (message, next) => (seen.push(next.principal, JSON.stringify(message)), next(message)) };
    const policy = { keys: { [token]: { client: 'alice', scopes: [] } } };
    const front = new Front(new External(inner()), { middleware: [who], policy });
    const serving = await front.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const client = await Client.connect(serving.address, { auth: { type: 'apiKey', key: token } });
    t.after(() => client.close());
    assert.equal(texts(await client.callTool('add', { a: 1, b: 2 })), '3');
    await assert.rejects(Client.connect(serving.address));
    assert.ok(seen.includes('key:alice') && !seen.join().includes(token));
    assert.throws(() => new Front(new External(inner()), { policy: { ...policy, verifier: () => null } }), /takes the place of keys/);
});

test('the chain of the document runs, and ends with its client', async t => {
    const lines = [];
    const client = await Client.spawn(process.execPath, [path('chain.mjs'), ...DIAGNOSTIC], { stderr: line => lines.push(line) });
    assert.ok((await client.listTools()).length > 0);
    assert.deepEqual(await client.close(), { code: 0, signal: null });
    assert.ok(lines.includes('→ tools/list') && lines.includes('← result'));
});

const SDK = `
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
    const server = new McpServer({ name: 'theirs', version: '1' });
    server.registerTool('add', {}, () => ({ content: [{ type: 'text', text: 'added' }] }));
    await server.connect(new StdioServerTransport());`;
const module = ['--input-type=module', '-e'];
const cwd = fileURLToPath(new URL('..', import.meta.url));

test('a server and a client of the official SDK are joined', async t => {
    const external = new External([process.execPath, ...module, SDK], { cwd });
    const client = await Client.connect(new Front(external, { middleware: [new Watching(), new Prefix('their')] }));
    t.after(() => client.close());
    assert.deepEqual((await client.listTools()).map(({ name }) => name), ['their_add']);
    assert.equal(texts(await client.callTool('their_add')), 'added');

    const front = `
        import { External, Front } from 'mcpbolt';
        const middleware = [{ request: (message, next) => next(message) }];
        await new Front(new External([process.execPath, ...${JSON.stringify([...module, SDK])}]), { middleware }).run();`;
    const theirs = new TheirClient({ name: 'theirs', version: '1' });
    await theirs.connect(new StdioClientTransport({ command: process.execPath, args: [...module, front], cwd }));
    t.after(() => theirs.close());
    assert.deepEqual((await theirs.listTools()).tools.map(({ name }) => name), ['add']);
    assert.equal(texts(await theirs.callTool({ name: 'add', arguments: {} })), 'added');
});

test('what no middleware sees passes while the event loop is blocked', async t => {
    const serving = await new Front(new External(DIAGNOSTIC), { middleware: [{}] }).serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const program = `
        import { Client } from 'mcpbolt';
        const client = await Client.connect(${JSON.stringify(serving.address)});
        console.log((await client.listTools()).length > 0);
        await client.close();`;
    // Blocks this thread until the client has its answers.
    assert.equal(execFileSync(process.execPath, [...module, program], { cwd, encoding: 'utf8', timeout: 30_000 }), 'true\n');
});

test('a signal ends a front that is served', async () => {
    const program = `
        import { External, Front } from 'mcpbolt';
        const front = new Front(new External(${JSON.stringify(DIAGNOSTIC)}), { middleware: [{ request: (message, next) => next(message) }] });
        const { ended } = await front.serve('http://127.0.0.1:0/mcp');
        process.kill(process.pid, 'SIGTERM');
        console.log(JSON.stringify(await ended));`;
    const said = execFileSync(process.execPath, [...module, program], { cwd, encoding: 'utf8', timeout: 30_000 });
    assert.deepEqual(JSON.parse(said), { reason: 'signal', signal: 15, unanswered: 0 });
});

test('messages of a front that has ended are refused', async t => {
    let stuck;
    const reached = new Promise(resolve => (stuck = resolve));
    const middleware = [{ request: () => (stuck(), new Promise(() => {})) }];
    const serving = await new Front(new External(inner()), { middleware }).serve('http://127.0.0.1:0/mcp', { grace: 100 });
    const client = await Client.connect(serving.address, { opening: 'stateless', revision: '2026-07-28' });
    const call = assert.rejects(client.listTools());
    await reached;
    await serving.close();
    await call;
    await client.close();
});

test('wrong arguments are named, in CommonJS too', () => {
    const cjs = createRequire(import.meta.url)('mcpbolt');
    assert.equal(cjs.Front, Front);
    assert.throws(() => new External('nothing://here'), { code: 'ERR_MCP_MISUSE' });
    assert.throws(() => new External([]), /the command is empty/);
    assert.throws(() => new External('tcp:localhost:1', { timeout: -1 }), /timeout/);
    assert.throws(() => new Prefix('not a prefix'), /prefix/);
});
