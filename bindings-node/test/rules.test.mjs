// The engine's middleware for chains.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Approval, Breaker, CallReports, Client, External, Front, Masking, Pins, Prefix, Retry, Server, toolPin } from 'mcpbolt';
import { place } from './place.mjs';
import { until, within } from './until.mjs';

const REVISIONS = ['2025-06-18', '2026-07-28'];
const cwd = fileURLToPath(new URL('..', import.meta.url));
const here = place('mcpbolt-rules-');
const text = result => result.content[0].text;
const names = tools => tools.map(({ name }) => name);
const REFUSED = { code: 'ERR_MCP_PEER', rpcCode: -32602 };

function inner() {
    const server = new Server('inner', '1.0.0');
    const inputSchema = { type: 'object', properties: { amount: { type: 'integer' }, card: { type: 'string' } } };
    server.tool('pay', { description: 'Pays.', inputSchema }, ({ amount, card = 'none' }) => `paid ${amount} by ${card}`);
    server.tool('find', {}, () => 'found 4111-1111 and hunter2 and Authorization: Bearer a1b2c3d4e5');
    return server;
}

/** A client of a front before a server that has these rules. */
async function ruled(t, rules, { server = inner(), front = {}, ...options } = {}) {
    const client = await Client.connect(new Front(new External(server, { rules }), front), options);
    t.after(() => client.close());
    return client;
}

for (const revision of REVISIONS) {
    test(`R-CHN-18 pinned tools pass, and others are hidden, refused and told, in ${revision}`, async t => {
        const direct = await Client.connect(inner(), { revision });
        const [pay, find] = await direct.listTools();
        await direct.close();
        const drifts = [];
        const pins = { find: toolPin(find), pay: toolPin({ ...pay, description: 'Pays you.' }) };
        const client = await ruled(t, [new Pins(pins, { onDrift: drift => drifts.push(drift) })], { revision });
        assert.match(await text(await client.callTool('find')), /found/);
        await assert.rejects(client.callTool('pay', { amount: 1 }), { ...REFUSED, message: /"pay" of the server "inner" is not what was pinned/ });
        assert.deepEqual(names(await client.listTools()), ['find']);
        await until(() => drifts.length > 0);
        assert.deepEqual(drifts, [{ server: 'inner', tool: 'pay', pinned: pins.pay, found: toolPin(pay) }]);
    });

    test(`a call passes when the program approves it, in ${revision}`, async t => {
        const seen = [];
        const approve = async ({ signal, ...call }) => {
            seen.push(call);
            await pause(1);
            const { amount } = call.arguments;
            if (amount === 3) throw new Error('a secret');
            if (amount === 4) throw undefined;
            return amount < 10 || (amount < 20 ? false : amount < 30 ? 'too much' : amount);
        };
        const errors = [];
        const front = { onError: (error, what) => errors.push(`${what}: ${error?.message}`) };
        const client = await ruled(t, [new Approval(['p*'], { approve })], { revision, front });
        assert.equal(text(await client.callTool('pay', { amount: 1 })), 'paid 1 by none');
        assert.match(text(await client.callTool('find')), /found/);
        assert.deepEqual(seen, [{ tool: 'pay', arguments: { amount: 1 }, revision }]);
        for (const [amount, why] of [[10, 'the program has refused it'], [20, 'too much'], [3, 'the approval failed unexpectedly'], [4, 'the approval failed unexpectedly'], [30, 'the approval failed unexpectedly']])
            await assert.rejects(client.callTool('pay', { amount }), { ...REFUSED, message: new RegExp(`the call of "pay" was not approved: ${why}$`) });
        assert.deepEqual(errors, ['the approval: a secret', 'the approval: undefined', 'the approval: approve: return true, false or a text that says why not, not number']);
    });

    test(`a call passes when the user of the client approves it, in ${revision}`, async t => {
        const asked = [];
        const onElicitation = ({ message }) => (asked.push(message), { action: asked.length === 1 ? 'accept' : 'decline', content: {} });
        const client = await ruled(t, [new Approval(['pay'])], { revision, onElicitation });
        assert.equal(text(await client.callTool('pay', { amount: 1 })), 'paid 1 by none');
        await assert.rejects(client.callTool('pay', { amount: 2 }), { ...REFUSED, message: /the user did not approve/ });
        assert.deepEqual(asked.map(message => message.includes('"pay"') && /amount":\s*(\d)/.exec(message)[1]), ['1', '2']);
    });
}

test('a call that asks the user as soon as its client has connected goes on', async () => {
    for (let n = 0; n < 100; n++) {
        let asked = 0;
        const onElicitation = () => (asked++, { action: 'accept', content: {} });
        const client = await Client.connect(new Front(new External(inner(), { rules: [new Approval(['pay'])] })), { revision: '2026-07-28', onElicitation });
        assert.equal(text(await client.callTool('pay', { amount: n })), `paid ${n} by none`);
        assert.equal(asked, 1);
        await client.close();
    }
});

test('a client of the official SDK is asked for approval', async t => {
    const serving = await new Front(new External(inner(), { rules: [new Approval(['pay'])] })).serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const client = new TheirClient({ name: 'theirs', version: '1' }, { capabilities: { elicitation: {} } });
    const asked = [];
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => (asked.push(params.message), { action: 'accept', content: {} }));
    await client.connect(new StreamableHTTPClientTransport(new URL(serving.address)));
    t.after(() => client.close());
    assert.equal(text(await client.callTool({ name: 'pay', arguments: { amount: 7 } })), 'paid 7 by none');
    assert.equal(asked.length, 1);
});

test('an approval that takes too long is a refusal, and one that nobody waits for is aborted', async t => {
    const signals = [];
    const approve = ({ signal }) => (signals.push(signal), new Promise(() => {}));
    const client = await ruled(t, [new Approval(['pay'], { approve, timeout: 200 })]);
    await within('the refusal', assert.rejects(client.callTool('pay', { amount: 1 }), { ...REFUSED, message: /no decision within 0.2 s/ }));
    assert.equal(signals[0].reason.code, 'ERR_MCP_TIMEOUT');
    const patient = await ruled(t, [new Approval(['pay'], { approve, timeout: Infinity })]);
    const abort = new AbortController();
    const call = assert.rejects(patient.callTool('pay', { amount: 1 }, { signal: abort.signal }));
    await until(() => signals.length === 2);
    abort.abort();
    await call;
    await until(() => signals[1].aborted);
    assert.equal(signals[1].reason.code, 'ERR_MCP_CANCELLED');
});

test('texts are masked in results and in arguments', async t => {
    const results = new Masking(['\\d{4}-\\d{4}'], { secrets: ['hunter2'], credentials: true });
    assert.equal(text(await (await ruled(t, [results])).callTool('find')), 'found *** and *** and Authorization: Bearer ***');
    const args = new Masking(['\\d{4}-\\d{4}'], { texts: 'arguments' });
    const client = await ruled(t, [args]);
    assert.equal(text(await client.callTool('pay', { amount: 1, card: '4111-1111' })), 'paid 1 by ***');
    assert.match(text(await client.callTool('find')), /4111-1111/);
    const small = await ruled(t, [new Masking(['x'], { maxBytes: 10 })]);
    await assert.rejects(small.callTool('find'), { rpcCode: -32603, message: /cannot be masked: at most 10/ });
});

/** A server whose process ends at a prompt, as often as its file says. */
const mortal = (file, times) => [process.execPath, '--input-type=module', '-e', `
    import { readFileSync, writeFileSync } from 'node:fs';
    import { Server } from 'mcpbolt';
    const file = ${JSON.stringify(file)};
    const server = new Server('mortal', '1');
    server.prompt('greet', {}, () => {
        const died = Number(readFileSync(file, 'utf8'));
        writeFileSync(file, String(died + 1));
        if (died < ${times}) process.exit(1);
        return 'hello';
    });
    await server.run();`];

/** The file of a server that has not ended yet. */
function alive(name) {
    const file = join(here, name);
    writeFileSync(file, '0');
    return file;
}

test('R-CHN-14 a request that changes nothing is sent again when the server is lost', async t => {
    const external = (name, times) => new External(mortal(alive(name), 1), { cwd, rules: [new Retry(times)] });
    const client = await Client.connect(new Front(external('again', 1)), { revision: '2025-06-18' });
    t.after(() => client.close());
    assert.equal((await client.getPrompt('greet')).messages[0].content.text, 'hello');
    const once = await Client.connect(new Front(external('once', 0)), { revision: '2025-06-18' });
    t.after(() => once.close());
    await assert.rejects(once.getPrompt('greet'));
});

test('R-CHN-18 a server that fails often is left alone for a time', async t => {
    const breaker = new Breaker({ failures: 2, window: 60_000, rest: 300 });
    const client = await Client.connect(new Front(new External(mortal(alive('broken'), 2), { cwd, rules: [breaker] })), { revision: '2025-06-18' });
    t.after(() => client.close());
    assert.equal(breaker.isOpen, false);
    for (let n = 0; n < 2; n++) await assert.rejects(client.getPrompt('greet'));
    assert.equal(breaker.isOpen, true);
    const refused = client.getPrompt('greet').catch(error => error);
    assert.match((await refused).message ?? 'answered after its rest', /failed too often|answered/);
    await until(async () => (await client.getPrompt('greet').catch(() => ({}))).messages?.[0].content.text === 'hello');
    assert.equal(breaker.isOpen, false);
});

test('requests are reported with their outcomes, those that other rules refuse, too', async t => {
    const calls = [];
    const reports = new CallReports(call => calls.push(call));
    const approve = ({ arguments: { amount } }) => amount < 10;
    const rules = [reports, new Approval(['pay'], { approve })];
    const policy = { keys: { ['k'.repeat(40)]: { client: 'alice', scopes: [] } } };
    const front = new Front(new External(inner(), { name: 'far', prefix: 'far', rules }), { policy });
    const serving = await front.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const client = await Client.connect(serving.address, { auth: { type: 'apiKey', key: 'k'.repeat(40) } });
    t.after(() => client.close());
    await client.callTool('far_pay', { amount: 1 });
    await client.callTool('far_pay', { amount: 10 }).catch(() => {});
    await until(() => calls.filter(({ method }) => method === 'tools/call').length === 2);
    const told = calls.filter(({ method }) => method === 'tools/call').map(({ seconds, ...call }) => (assert.ok(seconds >= 0), call));
    const call = { server: 'far', method: 'tools/call', name: 'pay', principal: 'key:alice', dropped: 0 };
    assert.deepEqual(told[0], { ...call, outcome: 'done', error: null });
    const { error, ...other } = told[1];
    assert.deepEqual(other, { ...call, outcome: 'failed' });
    assert.match(error, /not approved/);
});

test('rules stand among the middleware of a front, in its order', async t => {
    const seen = [];
    const watching = { request: async (message, next) => (seen.push(message.params.name), next(message)) };
    const errors = [];
    const reports = new CallReports(() => { throw new Error('no disk'); });
    const middleware = [reports, new Approval(['far_pay'], { approve: () => false }), new Prefix('far'), watching];
    const front = new Front(new External(inner()), { middleware, onError: (error, what) => errors.push(`${what}: ${error.message}`) });
    const client = await Client.connect(front);
    t.after(() => client.close());
    await assert.rejects(client.callTool('far_pay', { amount: 1 }), REFUSED);
    assert.match(text(await client.callTool('far_find')), /found/);
    assert.deepEqual(seen, ['find']);
    await until(() => errors.length >= 2);
    assert.ok(errors.every(error => error === 'the call report: no disk'));
});

test('wrong rules are named when they are made', () => {
    const wrong = (make, message) => assert.throws(make, error => error.code === 'ERR_MCP_MISUSE' && message.test(error.message));
    wrong(() => new Approval([]), /tools: .*their names/);
    wrong(() => new Approval(['a'], { timeout: 0 }), /timeout: a time in ms/);
    wrong(() => new Masking([]), /masking masks nothing/);
    wrong(() => new Masking(['(']), /patterns: "\("/);
    wrong(() => new Masking(['a'], { texts: 'all' }), /texts: "all"/);
    wrong(() => new Breaker({ failures: 0 }), /failures: a number from 1 to 1000, not 0/);
    wrong(() => new Breaker({ window: -1 }), /window/);
    wrong(() => new Retry(11), /times: a number from 0 to 10, not 11/);
    wrong(() => new CallReports(), /takes a function/);
    assert.throws(() => new Pins({ a: 1 }));
});
