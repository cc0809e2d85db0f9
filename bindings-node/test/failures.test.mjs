// Failures: the logger and the hook that they go to, of servers and of clients.
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { Client, External, Front, McpError, Server, ToolError } from 'mcpbolt';
import pino from 'pino';
import winston from 'winston';
import { until } from './until.mjs';
import { connect } from './wire.mjs';

const sink = lines => new Writable({ write: (chunk, _, done) => (lines.push(JSON.parse(chunk)), done()) });
const failing = options =>
    new Server('s', '1', options)
        .tool('bug', {}, () => {
            throw new Error('a bug', { cause: 'why' });
        })
        .tool('answer', {}, () => {
            throw new ToolError('an answer');
        });

const LOGGERS = {
    pino: lines => [pino(sink(lines)), line => [line.msg, line.err.message, line.err.stack]],
    winston: lines => {
        const format = winston.format.combine(winston.format.errors({ stack: true }), winston.format.json());
        const logger = winston.createLogger({ format, transports: [new winston.transports.Stream({ stream: sink(lines) })] });
        return [logger, line => [line.message.replace(/ a bug$/, ''), 'a bug', line.stack]];
    },
    'an object such as console': lines => [{ error: (...args) => lines.push(args) }, ([message, error]) => [message, error.message, error.stack]],
    'a function': lines => [record => lines.push(record), ({ level, message, error }) => (assert.equal(level, 'error'), [message, error.message, error.stack])]
};
for (const [name, make] of Object.entries(LOGGERS))
    test(`failures are logged with their stacks to ${name}, and answers are not`, async () => {
        const lines = [];
        const [logger, read] = make(lines);
        const told = [];
        const client = await connect(failing({ logger, onError: error => told.push(error.message) }));
        await client.callTool('answer');
        await client.callTool('bug');
        await until(() => lines.length === 1);
        const [message, text, stack] = read(lines[0]);
        assert.deepEqual([message, text], ['mcpbolt: tool bug failed', 'a bug']);
        assert.match(stack, /failures\.test\.mjs/);
        assert.deepEqual(told, ['an answer', 'a bug']);
    });

test('the hook gets the call, and exceptions of callbacks, the audit and the lifespan', async () => {
    const told = [];
    const fail = what => () => {
        throw new Error(what);
    };
    const server = failing({
        onError: (error, what, call) => told.push([what, error.message, call?.method, call?.name, call?.arguments.n]),
        onInitialized: fail('onInitialized'),
        onClosed: async () => fail('onClosed')(),
        policy: { audit: fail('audit') },
        lifespan: { start: () => 1, stop: fail('stop') }
    });
    const client = await connect(server, { revision: '2025-06-18' });
    await client.callTool('bug', { n: 1 });
    await client.close();
    await until(() => told.length === 5);
    assert.deepEqual(told.map(([what, ...more]) => [what, ...more.filter(Boolean)].join(' ')).sort(), [
        'lifespan.stop stop',
        'onClosed onClosed',
        'onInitialized onInitialized',
        'the audit audit',
        'tool bug a bug tools/call bug 1'
    ]);
});

test('a client logs the exceptions of its handlers, and a hook or logger that fails ends nothing', async t => {
    const server = new Server('s', '1', { onError: async () => Promise.reject(new Error('the hook')) }).tool('ask', {}, async (_, ctx) => {
        const { action } = await ctx.elicit('?', { type: 'object', properties: {} });
        return action;
    });
    const printed = [];
    t.mock.method(console, 'error', (...args) => printed.push(args));
    const [lines, told] = [[], []];
    const ask = async thrown => {
        const onElicitation = () => {
            throw thrown;
        };
        const client = await connect(server, { revision: '2025-11-25', onElicitation, logger: record => lines.push(record.message), onError: error => told.push(error.message) });
        await client.callTool('ask');
    };
    await ask(new Error('no form'));
    await ask(new McpError('ERR_MCP_MISUSE', 'not now'));
    assert.deepEqual([lines, told], [['mcpbolt: onElicitation failed'], ['no form', 'not now']]);
    await until(() => printed.length === 2);
    assert.ok(printed.every(([message, error]) => message === 'mcpbolt: onError failed:' && error.message === 'the hook'));
});

test('an exception of lifespan.stop reaches who closes the server or what it is the end of, and is reported once where nobody awaits it', async t => {
    const made = told => new Server('s', '1', { lifespan: { start() {}, stop: () => { throw new Error('stop'); } }, onError: ({ message }, what) => told.push(`${what}: ${message}`) });
    const address = 'http://127.0.0.1:0/mcp';
    for (const served of [server => server, server => server.mount('e', new External(made([]), { name: 'inner' })), server => new Front(new External(server))]) {
        const told = [];
        const serving = await served(made(told)).serve(address);
        await assert.rejects(serving.close(), { message: 'stop' });
        await assert.rejects(serving.ended, { message: 'stop' });
        assert.deepEqual(told, []);
    }
    await t.test('by close of the server', async () => {
        const told = [];
        const server = made(told);
        await server.serve(address);
        server.close();
        await until(() => told.length > 0);
        assert.deepEqual(told, ['the end of the server: stop']);
    });
    await t.test('by close of the server at the end of a front', async () => {
        const told = [];
        const server = made(told);
        const serving = await new Front(new External(server)).serve(address);
        server.close();
        await until(() => told.length > 0);
        await serving.close();
        assert.deepEqual(told, ['lifespan.stop: stop']);
    });
    await t.test('by close of a client, and all servers end', async () => {
        const [told, ends] = [[], []];
        const server = new Server('o', '1', { lifespan: { start() {}, stop: () => ends.push('o') } });
        const front = new Front(new External(server, { prefix: 'o' }), { onError: ({ message }, what) => told.push(`${what}: ${message}`) });
        const client = await Client.connect(front.join(new External(made([]), { prefix: 's' })));
        await client.close();
        await until(() => told.length > 0);
        assert.deepEqual([told, ends], [['lifespan.stop: stop'], ['o']]);
    });
});
