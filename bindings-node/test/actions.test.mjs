// The action dialect: servers of it and clients, in one process and between processes.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ActionError, Client, Server } from 'mcpbolt';
import { failsWith } from './wire.mjs';

const example = fileURLToPath(new URL('../examples/actions.mjs', import.meta.url));
const corpus = new URL('../../corpus/actions_called.jsonl', import.meta.url);
const called = readFileSync(corpus, 'utf8').trim().split('\n').map(line => JSON.parse(line));
const run = promisify(execFile);
const atOnce = { base: 1 };

const number = { type: 'number' };
const offer = () =>
    new Server('calc', '1.2.3', { actions: true })
        .tool(
            'calculator.add',
            {
                description: 'Adds two numbers.',
                inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
                outputSchema: { type: 'object', required: ['result'] },
                action: { examples: [{ request: {} }], errors: ['VALIDATION_ERROR'], help_url: 'https://h', deprecated: 'soon' }
            },
            ({ a, b }) => ({ result: a + b })
        )
        .tool('file_system.read', {}, ({ path }) => {
            const details = { details: { path }, actionCode: 418, helpUrl: 'https://help' };
            throw new ActionError('PERMISSION_DENIED', `No access to ${path}`, details);
        })
        .tool('where', {}, (_, ctx) => {
            ctx.partial([1, null]);
            ctx.progress(1, 2);
            return { context: ctx.actionContext ?? null };
        });

const acting = to => Client.connect(to, { opening: 'actions' });

test('an action is answered with data and metadata (R-ACT-02, R-ACT-04, R-ACT-12, R-ACT-13, R-ACT-14, R-ACT-41)', async () => {
    const client = await acting(offer());
    const options = { tool: 'calculator', metadata: { client_id: 'me' } };
    const answer = await client.action('calculator.add', { a: 1.5, b: 2 }, options);
    assert.deepEqual(answer.data, { result: 3.5 });
    assert.deepEqual(answer.partials, []);
    assert.equal(answer.metadata.server_id, 'calc');
    assert.deepEqual((await client.action('where', {}, { context: 'session-1' })).data, { context: 'session-1' });
    assert.equal((await client.actionVersion()).server_version, '1.2.3');
    await client.actionHealth();
    const add = (await client.actionSchemas())['calculator.add'];
    assert.deepEqual(add.params_schema.required, ['a', 'b']);
    assert.deepEqual(add.data_schema, { type: 'object', required: ['result'] });
    const { description, examples, errors, help_url, deprecated } = add;
    const notes = { examples: [{ request: {} }], errors: ['VALIDATION_ERROR'], help_url: 'https://h', deprecated: 'soon' };
    assert.deepEqual({ description, examples, errors, help_url, deprecated }, { description: 'Adds two numbers.', ...notes });
    await client.close();
});

test('errors have a type, details, a code and a page (R-ACT-05, R-ACT-07, R-ACT-31)', async () => {
    const client = await acting(offer());
    const denied = await client.action('file_system.read', { path: '/a' }).catch(error => error);
    assert.ok(denied instanceof ActionError);
    const { code, type, kind, message, details, actionCode, helpUrl, forPeople, isTransient } = denied;
    assert.deepEqual([code, type, kind], ['ERR_MCP_ACTION', 'PERMISSION_DENIED', 'AUTHORIZATION_FAILED']);
    assert.deepEqual([message, details, actionCode, helpUrl], ['No access to /a', { path: '/a' }, 418, 'https://help']);
    assert.deepEqual([forPeople, isTransient], ['You are not allowed to do this.', false]);
    const missing = await client.action('calculator.add', { a: 1 }).catch(error => error);
    assert.deepEqual([missing.type, missing.details], ['PARAMETER_MISSING', { parameter: 'b' }]);
    const unknown = await client.action('calculator.divide').catch(error => error);
    assert.deepEqual([unknown.type, unknown.actionCode], ['ACTION_NOT_FOUND', 404]);
    await client.close();
});

test('clients of MCP read a typed error as a failure of the tool (R-ACT-41)', async () => {
    const client = await Client.connect(offer());
    const failed = await client.callTool('file_system.read', { path: '/a' });
    assert.equal(failed.isError, true);
    assert.equal(failed.content[0].text, 'No access to /a');
    const error = { type: 'PERMISSION_DENIED', message: 'No access to /a', details: { path: '/a' } };
    assert.deepEqual(failed.structuredContent, { error: { ...error, code: 418, help_url: 'https://help' } });
    await assert.rejects(client.action('where'), failsWith('ERR_MCP_MISUSE'));
    await client.close();
});

test('parts come before the answer, to who asks for them (R-ACT-24, R-ACT-26)', async () => {
    const client = await Client.spawn(process.execPath, [example], { opening: 'actions' });
    const seen = [];
    const story = await client.action('llm.generate', { prompt: 'Write a story' }, { onPartial: part => seen.push(part) });
    assert.deepEqual(seen, ['Once', ' upon', ' a', ' time'].map(token => ({ token })));
    assert.deepEqual(story.partials, seen);
    assert.equal(story.joined('token'), 'Once upon a time');
    assert.deepEqual((await client.action('llm.generate', { prompt: '' })).partials, []);
    await client.close();
    const near = await acting(offer());
    assert.deepEqual((await near.action('where', {}, { streamed: true })).partials, [[1, null], { progress: 1, total: 2 }]);
    await near.close();
});

test('a batch says of each operation what became of it (R-ACT-16, R-ACT-17)', async () => {
    const calls = [
        ['file_system.read', { path: '/a' }],
        ['calculator.add', { a: 1, b: 2 }]
    ];
    const client = await acting(offer());
    const answer = await client.actionBatch(calls, { continueOnError: true });
    const [denied, summed] = answer.results();
    assert.deepEqual([denied.type, denied.actionCode], ['PERMISSION_DENIED', 418]);
    assert.equal(denied.forPeople, 'You are not allowed to do this.');
    assert.deepEqual(summed, { result: 3 });
    assert.deepEqual([answer.data.success_count, answer.data.error_count], [1, 1]);
    assert.equal((await client.actionBatch(calls)).results().length, 1);
    await client.close();
});

/** Refers to its data, and says so on a connection of its own that is read as it is. */
async function archive(ttl) {
    const rows = { rows: Array.from({ length: 10_000 }, (_, row) => row) };
    const server = new Server('archive', '1', { actions: true, references: { overBytes: 8192, ttl } }).tool('rows.read', {}, () => rows);
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    const act = async (action, params) => {
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(serving.address, { method: 'POST', headers, body: JSON.stringify({ action, params }) });
        return answer.json();
    };
    return { rows, server, serving, act };
}

test('long data are referred to, and had in parts (R-ACT-29)', async () => {
    const { rows, server, serving, act } = await archive(60_000);
    const said = await act('rows.read', {});
    const { id, bytes } = said.data['mcp.reference'];
    let [whole, offset] = ['', 0];
    while (offset !== undefined) {
        const { data } = await act('mcp.get_data', { reference: id, offset });
        assert.ok(data.part.length <= 8192);
        [whole, offset] = [whole + data.part, data.next_offset];
    }
    assert.equal(whole.length, bytes);
    assert.deepEqual(JSON.parse(whole), rows);
    const client = await acting(server);
    assert.deepEqual((await client.action('rows.read')).data, rows);
    assert.ok('mcp.get_data' in (await client.actionSchemas()));
    await client.close();
    await serving.close();
});

test('data that were referred to are gone after their time (R-ACT-29)', async () => {
    const { serving, act } = await archive(50);
    const said = await act('rows.read', {});
    await sleep(100);
    const gone = await act('mcp.get_data', { reference: said.data['mcp.reference'].id, offset: 0 });
    assert.equal(gone.error.type, 'RESOURCE_NOT_FOUND');
    await serving.close();
    assert.throws(() => new Server('archive', '1', { references: { overBytes: 1, ttl: -1 } }), failsWith('ERR_MCP_MISUSE'));
});

test('what may pass is tried again, and what keeps failing left alone (R-ACT-35, R-ACT-36)', async () => {
    const calls = {};
    const server = new Server('flaky', '1', { actions: true }).tool('flaky', {}, ({ type, until }) => {
        calls[type] = (calls[type] ?? 0) + 1;
        if (calls[type] < until) throw new ActionError(type, 'not now', { details: { retry_after_seconds: 0.002 } });
        return { calls: calls[type] };
    });
    server.tool('tell', {}, (_, ctx) => {
        ctx.partial('once');
        return {};
    });
    const client = await acting(server);
    const flaky = (type, until, options) => client.action('flaky', { type, until }, { retry: atOnce, ...options });
    assert.deepEqual((await flaky('DEPENDENCY_ERROR', 3)).data, { calls: 3 });
    await assert.rejects(
        flaky('CONFLICT', 3),
        ({ isTransient, metadata }) => !isTransient && calls.CONFLICT === 1 && metadata.server_id === 'flaky'
    );
    const { isTransient, retryAfterMs } = await flaky('TIMEOUT_ERROR', 9).catch(error => error);
    assert.deepEqual([calls.TIMEOUT_ERROR, isTransient, retryAfterMs], [3, true, 2]);
    const once = { retry: { tries: 1 } };
    const fallback = ['flaky', { type: 'CONFLICT', until: 1 }];
    assert.deepEqual((await flaky('RATE_LIMIT_EXCEEDED', 9, { ...once, fallback })).data, { calls: 2 });
    const parts = [];
    const watched = { ...once, fallback: ['tell', {}], onPartial: part => parts.push(part) };
    assert.deepEqual((await flaky('RATE_LIMIT_EXCEEDED', 9, watched)).data, {});
    assert.deepEqual(parts, ['once']);
    const breaker = { failures: 2, pause: 60_000 };
    for (const _ of [1, 2]) await assert.rejects(flaky('RATE_LIMIT_EXCEEDED', 9, { ...once, breaker }), ActionError);
    await assert.rejects(flaky('RATE_LIMIT_EXCEEDED', 9, once), failsWith('ERR_MCP_BREAKER_OPEN'));
    assert.equal(calls.RATE_LIMIT_EXCEEDED, 4);
    await client.close();
});

test('params that cannot be right are not sent once the schemas are known (R-ACT-07)', async () => {
    const client = await acting(offer());
    await client.actionSchemas();
    await assert.rejects(client.action('calculator.add', { a: 1, b: '2' }), failsWith('ERR_MCP_INVALID_PARAMS'));
    await client.close();
});

test('a call that is given up has no answer, and the next one its own', async () => {
    const server = new Server('slow', '1', { actions: true })
        .tool('slow', {}, () => sleep(60_000, 'late', { ref: false }))
        .tool('mcp.health_check', {}, () => {
            throw new ActionError('DEPENDENCY_ERROR', 'the disk is full');
        });
    const client = await acting(server);
    await assert.rejects(client.action('slow', {}, { signal: AbortSignal.timeout(50) }), failsWith('ERR_MCP_CANCELLED'));
    const late = await client.action('slow', {}, { timeout: 50, retry: { tries: 1 } }).catch(error => error);
    assert.deepEqual([late.code, late.forPeople], ['ERR_MCP_TIMEOUT', 'It took too long: please try again.']);
    await assert.rejects(client.actionHealth(), /the disk is full/);
    await client.close();
});

for (const address of ['http://127.0.0.1:0/mcp', 'ws://127.0.0.1:0/mcp', 'tcp:127.0.0.1:0?framing=length'])
    test(`clients of both languages are served at ${address} (R-ACT-21, R-ACT-28, R-ACT-41)`, async () => {
        const serving = await offer().serve(address);
        const [actions, mcp] = [await acting(serving.address), await Client.connect(serving.address)];
        for (let n = 0; n < 20; n++) {
            const [sum, result] = await Promise.all([
                actions.action('calculator.add', { a: n, b: 1 }),
                mcp.callTool('calculator.add', { a: n, b: 2 })
            ]);
            assert.deepEqual([sum.data, result.structuredContent], [{ result: n + 1 }, { result: n + 2 }]);
        }
        await assert.rejects(actions.action('file_system.read', { path: '/a' }), /No access/);
        assert.deepEqual((await actions.action('where', {}, { streamed: true })).partials[0], [1, null]);
        await Promise.all([actions.close(), mcp.close()]);
        await serving.close();
    });

test('the example prints what the document does (R-ACT-07, R-ACT-16, R-ACT-24)', async () => {
    const server = spawn(process.execPath, [example, 'http://127.0.0.1:0/mcp'], { stdio: ['ignore', 'inherit', 'pipe'] });
    try {
        const [line] = await once(createInterface({ input: server.stderr }), 'line');
        for (const at of [line.split(' ').at(-1), `stdio:${process.execPath} ${example}`]) {
            const { stdout } = await run(process.execPath, [example, 'call', at]);
            assert.deepEqual(stdout.trim().split('\n').map(text => JSON.parse(text)), called);
        }
    } finally {
        server.kill();
        await once(server, 'exit');
    }
});
