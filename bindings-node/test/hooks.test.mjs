// How long hooks of a chain's middleware may take.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'node:test';
import { Client, External, Front, Server } from 'mcpbolt';
import { until, within } from './until.mjs';

const never = () => new Promise(() => {});

function inner() {
    const server = new Server('inner', '1.0.0');
    server.tool('hello', {}, () => 'hello');
    server.tool('slow', {}, async () => (await pause(600), 'slow'));
    server.tool('log', {}, (_, ctx) => (ctx.log('info', 'one'), 'logged'));
    return server;
}

/** A client of a front with this middleware, and what the front reports. */
async function fronted(t, middleware, hookTimeout, options) {
    const reports = [];
    const onError = (error, what) => reports.push(`${what}: ${error.code} ${error.message}`);
    const client = await Client.connect(new Front(new External(inner()), { middleware, hookTimeout, onError }), options);
    t.after(() => client.close());
    return { client, reports };
}

const LATE = { code: 'ERR_MCP_PEER', rpcCode: -32603 };

for (const revision of ['2025-06-18', '2026-07-28']) {
    test(`R-CHN-14 a hook that never ends is an error that names its middleware, in ${revision}`, async t => {
        let signal;
        class Forgetful {
            request(message, next) {
                if (message.params.name !== 'hello') return next(message);
                signal = next.signal;
                return never();
            }
        }
        const { client, reports } = await fronted(t, [{}, new Forgetful()], 200, { revision });
        const message = /the middleware Forgetful did not finish within 0.2 s/;
        await within('the error', assert.rejects(client.callTool('hello'), { ...LATE, message }));
        assert.equal(signal.reason.code, 'ERR_MCP_TIMEOUT');
        assert.deepEqual(reports, ['the middleware: ERR_MCP_TIMEOUT the middleware Forgetful did not finish within 0.2 s']);
        // Others go on.
        assert.equal((await client.callTool('log')).content[0].text, 'logged');
    });
}

test('the time does not pass while a hook waits for the server', async t => {
    const { client } = await fronted(t, [{ request: (message, next) => next(message) }], 200);
    assert.equal((await client.callTool('slow')).content[0].text, 'slow');
});

test('the time passes behind the answer, in hooks for responses, and when a hook awaits nothing', async t => {
    const hooks = {
        'at index 0': { request: async (message, next) => (await next(message), never()) },
        'at index 1': { response: never },
        Careless: new (class Careless {
            request(message, next) {
                void next(message);
                return never();
            }
        })()
    };
    for (const [name, hook] of Object.entries(hooks)) {
        const middleware = name === 'at index 1' ? [{}, hook] : [hook];
        const { client } = await fronted(t, middleware, 200);
        const message = new RegExp(`the middleware ${name} did not finish within 0.2 s`);
        await within(name, assert.rejects(client.callTool('hello'), { ...LATE, message }));
    }
});

test('what a hook does when its time is over is ignored', async t => {
    let ended;
    const over = new Promise(resolve => (ended = resolve));
    const request = async (message, next) => {
        if (message.method !== 'tools/call') return next(message);
        await new Promise(resolve => next.signal.addEventListener('abort', resolve));
        const late = await next(message).catch(error => error.code);
        ended(late);
        return { result: { content: [] } };
    };
    const { client, reports } = await fronted(t, [{ request }], 200);
    await within('the error', assert.rejects(client.callTool('hello'), LATE));
    assert.equal(await within('the end of the hook', over), 'ERR_MCP_CANCELLED');
    await client.listTools();
    assert.equal(reports.length, 1);
});

test('a notification whose hook never ends is dropped, and answers go on', async t => {
    const logs = [];
    let signal;
    const notification = (message, next) => ((signal = next.signal), never());
    const { client, reports } = await fronted(t, [{ notification }], 200, { on: { log: ({ data }) => logs.push(data) } });
    await client.setLogLevel('debug');
    assert.equal((await within('the answer', client.callTool('log'))).content[0].text, 'logged');
    await until(() => reports.length > 0);
    assert.equal(signal.aborted, true);
    assert.deepEqual(logs, []);
});

test('without a limit a hook may take its time, and wrong limits are named', async t => {
    const { client } = await fronted(t, [{ request: async (message, next) => (await pause(50), next(message)) }], Infinity);
    assert.equal((await client.callTool('hello')).content[0].text, 'hello');
    for (const hookTimeout of [0, -1, NaN])
        assert.throws(() => new Front(new External(inner()), { hookTimeout }), { code: 'ERR_MCP_MISUSE', message: /hookTimeout: a time in ms/ });
});
