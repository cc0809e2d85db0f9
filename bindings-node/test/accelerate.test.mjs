// Servers of the official SDKs on the engine: what is never bypassed, who shares one, and the command.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client } from 'mcpbolt';
import { accelerate } from 'mcpbolt/sdk';
import { make } from './theirs.mjs';
import { until } from './until.mjs';
import { folder } from './wire.mjs';

const { Fast } = createRequire(import.meta.url)('../dist/sdk/fast.js');
const METHODS = { 1: [ListToolsRequestSchema, CallToolRequestSchema], 2: ['tools/list', 'tools/call'] };
const textOf = result => result.content[0].text;

/** Serves on the network; gives clients, and all is over with the test. */
async function serve(t, server) {
    const accelerated = accelerate(server);
    const serving = await accelerated.serve('http://127.0.0.1:0/mcp', { signals: false });
    const clients = [];
    t.after(async () => {
        for (const client of clients) await client.close();
        await serving.close();
    });
    const connect = async options => {
        const client = await Client.connect(serving.address, { revision: '2025-11-25', ...options });
        clients.push(client);
        return client;
    };
    return { accelerated, connect };
}

for (const generation of [1, 2]) {
    test(`handlers in the place of the SDK's, and around them, are never bypassed (v${generation})`, async t => {
        const server = await make(generation);
        const seen = [];
        const protocol = server.server;
        const [list, call] = METHODS[generation];
        const wrap = (schema, method) => {
            const own = protocol._requestHandlers.get(method);
            protocol.setRequestHandler(schema, (request, extra) => {
                seen.push(request.params?.name ?? method);
                return own(request, extra);
            });
        };
        wrap(call, 'tools/call');
        const { accelerated, connect } = await serve(t, server);
        const client = await connect();
        for (let i = 0; i < 5; i++) assert.equal(textOf(await client.callTool('echo', { text: 'a' })), 'a');
        assert.deepEqual(seen, Array(5).fill('echo'));
        assert.ok(accelerated.report().sdk.some(({ what, why }) => what === 'tool echo' && /of the program's own/.test(why)));
        // The list is the SDK's own, until it is another's.
        await client.listTools({ fresh: true });
        await client.listTools({ fresh: true });
        wrap(list, 'tools/list');
        protocol.sendToolListChanged();
        for (let i = 0; i < 3; i++) await client.listTools({ fresh: true });
        assert.deepEqual(seen.slice(5), Array(3).fill('tools/list'));
    });

    test(`what is registered is served without the SDK's protocol (v${generation})`, async t => {
        const server = await make(generation);
        const { accelerated, connect } = await serve(t, server);
        const client = await connect();
        await client.callTool('echo', { text: 'first' });
        await client.listTools({ fresh: true });
        let handled = 0;
        const bridge = server.server.transport;
        const { onmessage } = bridge;
        bridge.onmessage = (...message) => (handled++, onmessage(...message));
        for (let i = 0; i < 10; i++) {
            assert.equal(textOf(await client.callTool('echo', { text: `${i}` })), `${i}`);
            assert.equal((await client.callTool('structured', { n: i })).structuredContent.n, i);
            await client.listTools({ fresh: true });
        }
        // v2 looks at structured content itself.
        assert.equal(handled, generation === 2 ? 10 : 0);
        assert.ok(accelerated.report().native.includes('tool echo'));
    });

    test(`clients that share a server are asked and told for themselves (v${generation})`, async t => {
        const { connect } = await serve(t, await make(generation));
        const heard = [];
        const clients = await Promise.all(
            ['a', 'b', 'c'].map(name =>
                connect({ name, roots: [`file:///${name}`], on: { toolsChanged: () => heard.push(name) } })
            )
        );
        const roots = await Promise.all(clients.map(client => client.callTool('roots')));
        assert.deepEqual(
            roots.map(result => JSON.parse(textOf(result)).roots[0].uri),
            ['file:///a', 'file:///b', 'file:///c']
        );
        const told = { a: [], b: [], c: [] };
        const onProgress = name => ({ onProgress: ({ progress }) => told[name].push(progress) });
        await Promise.all(['a', 'b', 'c'].map((name, i) => clients[i].callTool('progress', { n: 3 }, onProgress(name))));
        assert.deepEqual(told, { a: [1, 2, 3], b: [1, 2, 3], c: [1, 2, 3] });
        await Promise.all(clients.map(client => client.listTools()));
        await clients[0].callTool('change', { what: 'add' });
        await until(() => heard.length >= 3);
        for (const client of clients) assert.ok((await client.listTools()).some(({ name }) => name === 'added'));
    });

    test(`a call that is given up aborts its handler (v${generation})`, async t => {
        const { connect } = await serve(t, await make(generation));
        const client = await connect();
        await client.callTool('echo', { text: 'first' });
        for (const name of ['one', 'two']) {
            const call = client.callTool('wait', { name }, { signal: AbortSignal.timeout(500) });
            await assert.rejects(call, { code: 'ERR_MCP_CANCELLED' });
        }
        let ended = [];
        await until(async () => (ended = JSON.parse(textOf(await client.callTool('ended')))).length >= 2);
        assert.deepEqual(ended.map(([name]) => name), ['one', 'two']);
    });
}

test('a server with a store of tasks is accelerated but for its tasks (v1)', async t => {
    const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
    const { InMemoryTaskStore } = await import('@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js');
    const capabilities = { tasks: { requests: { tools: { call: {} } }, list: {}, cancel: {} } };
    const server = new McpServer({ name: 'tasks', version: '1' }, { capabilities, taskStore: new InMemoryTaskStore() });
    const content = [{ type: 'text', text: 'done' }];
    server.registerTool('plain', {}, async extra => ({ content: [{ type: 'text', text: Object.keys(extra.taskStore).sort().join() }] }));
    server.experimental.tasks.registerToolTask('long', { execution: { taskSupport: 'required' } }, {
        createTask: async ({ taskStore }) => {
            const task = await taskStore.createTask({ ttl: 60_000, pollInterval: 10 });
            setImmediate(() => taskStore.storeTaskResult(task.taskId, 'completed', { content }));
            return { task };
        },
        getTask: async ({ taskId, taskStore }) => taskStore.getTask(taskId),
        getTaskResult: async ({ taskId, taskStore }) => taskStore.getTaskResult(taskId)
    });
    const { accelerated, connect } = await serve(t, server);
    const client = await connect();
    const METHODS = 'createTask,getTask,getTaskResult,listTasks,storeTaskResult,updateTaskStatus';
    for (let i = 0; i < 3; i++) assert.equal(textOf(await client.callTool('plain')), METHODS);
    const { task } = await client.request('tools/call', { name: 'long', arguments: {}, task: { ttl: 60_000 } });
    let status = task.status;
    await until(async () => (({ status } = await client.request('tasks/get', { taskId: task.taskId })), status === 'completed'));
    assert.deepEqual((await client.request('tasks/result', { taskId: task.taskId })).content, content);
    const { native, sdk } = accelerated.report();
    assert.deepEqual(native, ['tool plain']);
    assert.deepEqual(sdk.find(({ what }) => what === 'tool long').why, 'its calls may go on as tasks');
});

test('a tool whose number is too large is called by name, and shifts no other', async t => {
    const { number } = Fast.prototype;
    t.mock.method(Fast.prototype, 'number', function () {
        const [names, [, ...numbers]] = number.call(this);
        return [names, [10_000, ...numbers]];
    });
    const client = await (await serve(t, await make(1))).connect();
    const told = [];
    // The first call of a method is the SDK's own.
    for (const name of ['echo', 'none', 'echo', 'none']) told.push(textOf(await client.callTool(name, { text: name })));
    assert.deepEqual(told, ['echo', 'nothing is asked', 'echo', 'nothing is asked']);
});

test('a server that shows nothing of itself before a client is there, as FastMCP is, opens itself, and its session is closed', async t => {
    const sessions = [];
    let closed = 0;
    const server = {
        connect: async transport => {
            const session = await make(1);
            sessions.push(session);
            session.server.onclose = () => closed++;
            await session.connect(transport);
            return session;
        }
    };
    const accelerated = accelerate(server);
    const serving = await accelerated.serve('http://127.0.0.1:0/mcp', { signals: false });
    t.after(() => serving.close());
    const client = await Client.connect(serving.address);
    assert.equal(client.server.title, 'Theirs');
    assert.equal(client.instructions, 'Try everything.');
    assert.equal(textOf(await client.callTool('echo', { text: 'a' })), 'a');
    assert.deepEqual(JSON.parse(textOf(await client.callTool('client')))[0].name, 'mcpbolt');
    await client.close();
    await serving.close();
    assert.deepEqual([sessions.length, closed], [1, 1]);
    assert.deepEqual(accelerated.report().native, []);
});

test('within an HTTP server of the program, beside others', async t => {
    const handler = accelerate(await make(1)).handler();
    const http = createServer(handler).listen(0, '127.0.0.1');
    await new Promise(resolve => http.once('listening', resolve));
    const client = await Client.connect(`http://127.0.0.1:${http.address().port}/mcp`);
    t.after(async () => {
        await client.close();
        http.close();
    });
    assert.equal(textOf(await client.callTool('echo', { text: 'a' })), 'a');
});

const place = mkdtempSync(join(tmpdir(), 'mcpbolt-run-'));
symlinkSync(new URL('node_modules', folder).pathname, join(place, 'node_modules'));
const MODULE = how => `
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    ${how} = () => {
        const server = new McpServer({ name: 'run', version: '1' });
        server.registerTool('hello', {}, async () => ({ content: [{ type: 'text', text: 'hello' }] }));
        return server;
    };
`;
const COMMAND = new URL('bin/mcpbolt.mjs', folder).pathname;

/** The code with which the command ends, and what it says on stderr. */
const ended = args =>
    new Promise(resolve => {
        const child = spawn(process.execPath, [COMMAND, ...args]);
        let text = '';
        child.stderr.setEncoding('utf8').on('data', more => (text += more));
        child.on('close', code => resolve([code, text]));
    });

test('the command serves what a module exports, on stdin and stdout', async () => {
    const modules = {
        'named.mjs': `${MODULE('const make')} export const server = make();`,
        'made.mjs': `${MODULE('const make')} export default make;`,
        'low.mjs': `${MODULE('const make')} export default make().server;`
    };
    for (const [name, source] of Object.entries(modules)) {
        const file = join(place, name);
        writeFileSync(file, source);
        const client = await Client.spawn(process.execPath, [COMMAND, 'run', file]);
        assert.equal(textOf(await client.callTool('hello')), 'hello');
        await client.close();
    }
});

test('the command serves the export that is named', async () => {
    const file = join(place, 'several.mjs');
    const server = name => `(() => { const s = new McpServer({ name: '${name}', version: '1' }); s.registerTool('hello', {}, async () => ({ content: [] })); return s; })`;
    writeFileSync(
        file,
        `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
        export const first = ${server('first')}();
        export const second = ${server('second')};
        export const servers = { third: ${server('third')}() };`
    );
    for (const [name, expected] of Object.entries({ first: 'first', second: 'second', 'servers.third': 'third' })) {
        const client = await Client.spawn(process.execPath, [COMMAND, 'run', `${file}:${name}`]);
        assert.equal(client.server.name, expected);
        await client.close();
    }
    const [code, text] = await ended(['run', `${file}:fourth`]);
    assert.equal(code, 2);
    assert.match(text, /by the name of fourth/);
});

test('the command serves on the network, and says where', async t => {
    const file = join(place, 'net.mjs');
    writeFileSync(file, `${MODULE('const make')} export default make();`);
    const child = spawn(process.execPath, [COMMAND, 'run', file, '--http', ':0']);
    t.after(() => child.kill());
    const said = await new Promise(resolve => child.stderr.setEncoding('utf8').once('data', resolve));
    const client = await Client.connect(/http:\S+/.exec(said)[0]);
    assert.equal(textOf(await client.callTool('hello')), 'hello');
    await client.close();
});

test('the command says what it cannot serve', async () => {
    writeFileSync(join(place, 'empty.mjs'), 'export const a = 1;');
    const [code, text] = await ended(['run', join(place, 'empty.mjs')]);
    assert.equal(code, 2);
    assert.match(text, /exports no server/);
    assert.equal((await ended(['run']))[0], 2);
    assert.equal((await ended(['run', join(place, 'empty.mjs'), '--http', 'x']))[0], 2);
});
