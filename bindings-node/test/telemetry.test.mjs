// Spans and metrics in the program's own OpenTelemetry, held against the conventions for MCP in `corpus/telemetry.json`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { context, diag, SpanKind, trace } from '@opentelemetry/api';
import { Client, External, Front, ProtocolError, Server, ToolError } from 'mcpbolt';
import { checkPoints, checkSpan, countOf, ended, forget, measured, points, setUp, span, spans } from './seen.mjs';
import { until } from './until.mjs';
import { folder, program } from './wire.mjs';

const REVISIONS = ['2025-11-25', '2026-07-28'];
const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const HEAD = '00-11111111111111111111111111111111-2222222222222222-01';
/** Name; tool, prompt or URI; error.type at the client and at the server; code. */
const ROWS = [
    ['tools/call order', 'order'],
    ['tools/call fail', 'fail', 'tool_error', 'tool_error'],
    ['tools/call unknown', 'unknown', '-32602', undefined, '-32602'],
    ['prompts/get ask', 'ask'],
    ['resources/read', 'shop://prices'],
    ['tools/list', undefined]
];

/** Called when a span begins. */
const started = { hook: () => {} };
/** Spans that have not ended. */
const open = new Set();
const tracer = setUp({
    onStart: span => (open.add(span), started.hook(span)),
    onEnd: span => open.delete(span),
    forceFlush: async () => {},
    shutdown: async () => {}
});
const at = ({ traceId, spanId }) => `${traceId}-${spanId}`;
/** The ids of trace and parent, as they stand in `traceparent`. */
const parentOf = span => span.parentSpanContext && at(span.parentSpanContext);

function shop(options) {
    return new Server('shop', '1.0.0', { telemetry: true, ...options })
        .tool('order', {}, async () => 'secret answer')
        .tool('fail', {}, () => {
            throw new ToolError('secret failure');
        })
        .prompt('ask', {}, () => 'secret question')
        .resource('shop://prices', {}, () => 'secret price');
}

async function serving(t, server) {
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    return serving.address;
}

let counted = { client: 0, server: 0 };
for (const revision of REVISIONS)
    test(`spans and histograms are those of the conventions, in ${revision}`, async t => {
        forget();
        const client = await Client.connect(await serving(t, shop()), { revision, telemetry: true });
        const phrase = { phrase: 'secret' };
        await client.callTool('order', phrase);
        // The span of a request has ended when the answer is there.
        assert.ok(ended('tools/call order').some(({ kind }) => kind === SpanKind.CLIENT));
        assert.ok((await client.callTool('fail', phrase)).isError);
        await assert.rejects(client.callTool('unknown', phrase), { code: 'ERR_MCP_PEER' });
        await client.getPrompt('ask');
        await client.readResource('shop://prices');
        await client.listTools();
        await client.close();
        const opening = revision === REVISIONS[0] ? 'initialize' : 'server/discover';
        await spans(opening, 2);
        for (const [name, about, nearError, farError, code] of ROWS) {
            const [near, far] = [await span(name, 'CLIENT'), await span(name, 'SERVER')];
            assert.equal(parentOf(far), at(near.spanContext()), name);
            const method = name.split(' ')[0];
            for (const one of [near, far]) {
                checkSpan(one, {
                    'mcp.method.name': method,
                    'mcp.protocol.version': revision,
                    'gen_ai.tool.name': method === 'tools/call' ? about : undefined,
                    'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
                    'gen_ai.prompt.name': method === 'prompts/get' ? about : undefined,
                    'mcp.resource.uri': method === 'resources/read' ? about : undefined,
                    'network.transport': 'tcp',
                    'network.protocol.name': 'http',
                    'server.address': one === near ? '127.0.0.1' : undefined,
                    'client.address': one === near ? undefined : '127.0.0.1',
                    'error.type': one === near ? nearError : farError,
                    'rpc.response.status_code': code
                });
                // Not from 2026-07-28 on.
                assert.equal('mcp.session.id' in one.attributes, one === far && revision === REVISIONS[0], name);
                assert.doesNotMatch(JSON.stringify([one.name, one.attributes, one.events, one.status]), /secret|phrase/);
            }
        }
        for (const role of ['client', 'server']) {
            counted[role] += ROWS.length + 1;
            const all = await points(`mcp.${role}.operation.duration`, counted[role]);
            checkPoints(all);
            const own = all.filter(({ attributes: has }) => has['mcp.protocol.version'] === revision && has['mcp.method.name'] === 'tools/call');
            const told = own.map(({ attributes: has, value }) => [has['gen_ai.tool.name'], has['error.type'], value.count]);
            // A name is told apart once a call of it has succeeded.
            const unknown = role === 'client' ? '-32602' : undefined;
            assert.deepEqual(new Set(told.map(String)), new Set([['order', undefined, 1], ['_OTHER', 'tool_error', 1], ['_OTHER', unknown, 1]].map(String)));
            if (role === 'client') checkPoints(await points('mcp.client.session.duration', REVISIONS.indexOf(revision) + 1));
            else if (revision === REVISIONS[0]) checkPoints(await points('mcp.server.session.duration', 1));
        }
    });

for (const revision of REVISIONS)
    test(`R-MET-09 a span is below the one that its caller says, in ${revision}`, async t => {
        forget();
        const server = shop()
            .tool('plain', {}, () => tracer.startActiveSpan('in plain', span => (span.end(), 'a')))
            .tool('task', {}, async () => {
                await turn();
                return tracer.startActiveSpan('in task', async span => {
                    await turn();
                    return span.end(), 'a';
                });
            });
        const address = await serving(t, server);
        const client = await Client.connect(address, { revision, telemetry: true, headers: { traceparent: HEAD } });
        const work = tracer.startSpan('work');
        await context.with(trace.setSpan(context.active(), work), async () => {
            await client.callTool('plain');
            await Promise.all(Array.from({ length: 20 }, () => client.callTool('task')));
        });
        await client.close();
        const plain = await Client.connect(address, { revision, headers: { traceparent: HEAD } });
        await plain.getPrompt('ask');
        await plain.callTool('order', {}, { meta: { traceparent: PARENT, tracestate: 'a=b' } });
        await plain.close();
        // One trace: the span that is current at the call, the client's, the server's, and one that the handler makes.
        const all = new Map();
        for (const [name, count] of [['plain', 2], ['task', 40]]) for (const one of await spans(`tools/call ${name}`, count)) all.set(at(one.spanContext()), one);
        const take = key => {
            const one = all.get(key);
            assert.ok(all.delete(key), key);
            return one;
        };
        for (const one of [...(await spans('in plain', 1)), ...(await spans('in task', 20))]) {
            const far = take(parentOf(one));
            const near = take(parentOf(far));
            assert.equal(parentOf(near), at(work.spanContext()));
            assert.deepEqual(far.links.map(({ context }) => at(context)), [HEAD.slice(3, -3)]);
        }
        assert.equal(all.size, 0);
        // The parent is that of the request's `_meta`; without one there, that of the HTTP header.
        const [order] = await spans('tools/call order', 1);
        assert.equal(parentOf(order), PARENT.slice(3, -3));
        assert.ok(order.parentSpanContext.isRemote);
        assert.equal(order.spanContext().traceState.serialize(), 'a=b');
        const [ask] = await spans('prompts/get ask', 1);
        assert.deepEqual([parentOf(ask), ask.links.length], [HEAD.slice(3, -3), 0]);
    });

for (const revision of REVISIONS)
    test(`what a handler asks its client is below its call, in ${revision}`, async () => {
        forget();
        const server = shop().tool('asks', {}, async (_, ctx) => {
            const { content } = await ctx.elicit('?', { type: 'object', properties: { a: { type: 'string' } } });
            return JSON.stringify(content);
        });
        const client = await Client.connect(server, { revision, telemetry: true, onElicitation: () => ({ action: 'accept', content: { a: 'b' } }) });
        const work = tracer.startSpan('work');
        const result = await context.with(trace.setSpan(context.active(), work), () => client.callTool('asks'));
        assert.equal(result.content[0].text, '{"a":"b"}');
        await client.close();
        if (revision === REVISIONS[0]) {
            const call = await span('tools/call asks', 'SERVER');
            const [sent, arrived] = [await span('elicitation/create', 'CLIENT'), await span('elicitation/create', 'SERVER')];
            assert.deepEqual([parentOf(sent), parentOf(arrived)], [call, sent].map(one => at(one.spanContext())));
            return;
        }
        // The call took two requests, both below the span of the caller.
        const all = await spans('tools/call asks', 4);
        const [near, far] = [2, 1].map(kind => all.filter(one => one.kind === kind));
        assert.deepEqual(new Set(near.map(parentOf)), new Set([at(work.spanContext())]));
        assert.deepEqual(far.map(parentOf).sort(), near.map(one => at(one.spanContext())).sort());
    });

for (const revision of REVISIONS)
    test(`a trace leads through a front to the servers behind it, in ${revision}`, async t => {
        forget();
        const server = shop().tool('plain', {}, () => tracer.startActiveSpan('in plain', span => (span.end(), 'a')));
        const middleware = [{ request: (message, next) => message.params.name === 'far_fail' ? Promise.reject(new ProtocolError('invalid params', 'no')) : next(message) }];
        const front = new Front(new External(await serving(t, server), { prefix: 'far' }), { telemetry: true, middleware });
        front.join(new External(shop(), { prefix: 'near' }));
        const client = await Client.connect(await serving(t, front), { revision, telemetry: true });
        const bare = await Client.connect(await serving(t, front), { revision });
        forget();
        await client.callTool('far_plain');
        assert.equal((await client.listTools()).length, 5);
        await assert.rejects(client.callTool('far_fail'));
        await bare.callTool('near_order');
        for (const one of [client, bare]) await one.close();
        const within = async (name, kind, count, parent) => {
            const one = await span(name, kind, count);
            assert.equal(parentOf(one), parent && at(parent.spanContext()), name);
            return one;
        };
        const asked = await within('tools/call far_plain', 'CLIENT', 2);
        const passed = await within('tools/call far_plain', 'SERVER', 2, asked);
        const passing = await within('tools/call plain', 'CLIENT', 2, passed);
        const called = await within('tools/call plain', 'SERVER', 2, passing);
        await within('in plain', 'INTERNAL', 1, called);
        assert.equal(passing.attributes['gen_ai.tool.name'], 'plain');
        for (const one of [asked, passed, passing, called])
            checkSpan(one, { 'network.transport': 'tcp', 'server.address': one.kind === SpanKind.CLIENT ? '127.0.0.1' : undefined });
        // The lists of both servers are asked for within that of the front. The second server is told of the front's own span.
        const lists = await spans('tools/list', 6);
        const list = lists.find(one => one.kind === SpanKind.SERVER && parentOf(one) === at(lists.find(({ parentSpanContext }) => !parentSpanContext).spanContext()));
        const below = lists.filter(one => parentOf(one) === at(list.spanContext()));
        assert.deepEqual(below.map(({ kind }) => kind).sort(), [SpanKind.SERVER, SpanKind.CLIENT, SpanKind.CLIENT]);
        const firsts = below.filter(one => lists.some(other => parentOf(other) === at(one.spanContext())));
        assert.deepEqual(firsts.map(({ kind }) => kind), [SpanKind.CLIENT]);
        assert.deepEqual(new Set(lists.map(one => one.spanContext().traceId)).size, 1);
        // A request that middleware refuses is not sent to a server. The span that was begun for sending it ends.
        const [root, ...refused] = (await spans('tools/call far_fail', 3)).sort((a, b) => (parentOf(a) === undefined ? -1 : a.kind - b.kind));
        assert.deepEqual([root, ...refused].map(({ kind }) => kind), [SpanKind.CLIENT, SpanKind.SERVER, SpanKind.CLIENT]);
        assert.deepEqual(refused.map(parentOf), [root, refused[0]].map(one => at(one.spanContext())));
        assert.equal(ended('tools/call fail').length, 0);
        // A trace of a client without telemetry begins at the front.
        const first = await within('tools/call near_order', 'SERVER', 1);
        await within('tools/call order', 'SERVER', 2, await within('tools/call order', 'CLIENT', 2, first));
    });

for (const revision of REVISIONS)
    test(`a server that mounts an external one has one span of each request and counts it once, in ${revision}`, async t => {
        forget();
        const inSpan = name => tracer.startActiveSpan(name, span => (span.end(), 'near'));
        const server = shop()
            .tool('beside', {}, () => inSpan('in beside'))
            .tool('asks', {}, async (_, ctx) => JSON.stringify(await ctx.elicit('?', { type: 'object', properties: { a: { type: 'string' } } })))
            .use((call, next) => (call.method === 'tools/list' && inSpan('in list'), next()))
            .mount('mounted', new External(new Server('far', '1').tool('order', {}, () => 'far')));
        const onElicitation = () => ({ action: 'accept', content: { a: 'b' } });
        const client = await Client.connect(await serving(t, server), { revision, onElicitation });
        const before = await measured('mcp.server.operation.duration');
        for (const name of ['beside', 'mounted_order', 'asks']) assert.ok(!(await client.callTool(name)).isError, name);
        assert.equal((await client.listTools()).length, 5);
        await client.close();
        const isOlder = revision === REVISIONS[0];
        const below = async (name, kind, count, parent) => assert.equal(parentOf(await span(name, kind, count)), at(parent.spanContext()), name);
        await below('in beside', 'INTERNAL', 1, await span('tools/call beside', 'SERVER', 1));
        await below('tools/call order', 'CLIENT', 1, await span('tools/call mounted_order', 'SERVER', 1));
        const list = await span('tools/list', 'SERVER', 2);
        await below('tools/list', 'CLIENT', 2, list);
        await below('in list', 'INTERNAL', 1, list);
        // From 2026-07-28 on, the call comes again with the answer to the question.
        const asking = await spans('tools/call asks', isOlder ? 1 : 2);
        assert.ok(asking.every(({ kind }) => kind === SpanKind.SERVER));
        if (isOlder) await below('elicitation/create', 'CLIENT', 1, asking[0]);
        await until(async () => countOf(await measured('mcp.server.operation.duration')) - countOf(before) >= 3 + asking.length);
        const after = await measured('mcp.server.operation.duration');
        for (const [name, count] of [['beside', 1], ['mounted_order', 1], ['asks', asking.length]]) {
            const ofTool = points => countOf(points.filter(({ attributes }) => attributes['gen_ai.tool.name'] === name && attributes['mcp.protocol.version'] === revision));
            assert.equal(ofTool(after) - ofTool(before), count, name);
        }
        assert.equal(countOf(after) - countOf(before), 3 + asking.length);
    });

test('a span processor that uses a client when the span of a request begins gets an error, and the request goes on', async t => {
    forget();
    const client = await Client.connect(shop(), { telemetry: true });
    let refused;
    started.hook = () => {
        started.hook = () => {};
        refused = client.callTool('order');
        refused.catch(() => {});
    };
    t.after(() => (started.hook = () => {}));
    assert.equal((await client.callTool('order')).content[0].text, 'secret answer');
    await assert.rejects(refused, { code: 'ERR_MCP_MISUSE' });
    started.hook = () => {
        throw new Error('of the processor');
    };
    assert.equal((await client.callTool('order')).content[0].text, 'secret answer');
    await client.close();
});

for (const revision of REVISIONS)
    test(`each span that begins at a front ends, in ${revision}`, async () => {
        const own = {
            order: () => ({ result: { content: [], resultType: 'complete' } }),
            fail: () => Promise.reject(new ProtocolError('invalid params', 'no'))
        };
        const middleware = [{ request: (message, next) => (own[message.params.name] ?? (() => next(message)))() }];
        const server = shop().tool('waits', {}, (_, { signal }) => new Promise(done => signal.addEventListener('abort', () => done('a'))));
        const client = await Client.connect(new Front(new External(server), { telemetry: true, middleware }), { revision });
        open.clear();
        await client.callTool('order');
        await assert.rejects(client.callTool('fail'));
        await assert.rejects(client.callTool('unknown'));
        for (const rest of [async () => {}, turn]) {
            const abort = new AbortController();
            const calls = Array.from({ length: 20 }, () => client.callTool('waits', {}, { signal: abort.signal }));
            await rest();
            abort.abort();
            await Promise.all(calls.map(call => assert.rejects(call)));
        }
        await client.close();
        await until(() => open.size === 0);
    });

for (const revision of REVISIONS)
    test(`no request fails by spans and a logger that throw, in ${revision}`, async t => {
        const fails = () => {
            throw new Error('of the program');
        };
        t.after(() => ((started.hook = () => {}), diag.disable()));
        const front = new Front(new External(shop()), { telemetry: true });
        const client = await Client.connect(front, { revision, telemetry: true });
        diag.setLogger({ error: fails, warn() {}, info() {}, debug() {}, verbose() {} }, { suppressOverrideMessage: true });
        let begun = 0;
        for (const broken of [{ spanContext: fails }, { end: fails }, { updateName: fails, setAttributes: fails }]) {
            started.hook = span => (begun++, Object.assign(span, broken));
            const results = await Promise.all(Array.from({ length: 5 }, () => client.callTool('order')));
            assert.deepEqual(new Set(results.map(({ content }) => content[0].text)), new Set(['secret answer']));
        }
        assert.ok(begun > 0);
        await client.close();
    });

const run = (...args) => promisify(execFile)(process.execPath, args, { cwd: folder });

test('without the API of OpenTelemetry, an error says what to install', async () => {
    const { stdout } = await run(...program(`
        import Module from 'node:module';
        import { Client, Server } from 'mcpbolt';
        const resolve = Module._resolveFilename;
        Module._resolveFilename = (name, ...more) => {
            if (name.startsWith('@opentelemetry/')) throw Object.assign(new Error('not found'), { code: 'MODULE_NOT_FOUND' });
            return resolve(name, ...more);
        };
        for (const make of [async () => new Server('a', '1', { telemetry: true }), () => Client.connect(new Server('a', '1'), { telemetry: true })])
            await make().catch(({ code, message }) => console.log(code, message));
    `));
    assert.match(stdout, /^(ERR_MCP_MISUSE .*npm install @opentelemetry\/api\n){2}$/);
});

test('nothing of OpenTelemetry is loaded unless it is switched on, and a worker thread has telemetry of its own', async () => {
    const call = `
        const { Client, Server } = require('mcpbolt');
        const call = async telemetry => {
            const client = await Client.connect(new Server('a', '1', { telemetry }).tool('a', {}, () => 'a'), { telemetry });
            await client.callTool('a');
            await client.close();
            return Object.keys(require.cache).some(file => file.includes('@opentelemetry'));
        };
    `;
    const worker = `${call}
        const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
        const seen = new InMemorySpanExporter();
        new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(seen)] }).register();
        call(true).then(async () => {
            const kinds = () => seen.getFinishedSpans().filter(({ name }) => name === 'tools/call a').map(({ kind }) => kind).sort();
            for (let i = 0; i < 1_000 && kinds().length < 2; i++) await new Promise(done => setTimeout(done, 10));
            require('node:worker_threads').parentPort.postMessage(kinds().join());
        });
    `;
    const { stdout } = await run('-e', `${call}
        const { Worker } = require('node:worker_threads');
        call(false).then(isLoaded => {
            console.log(isLoaded);
            new Worker(${JSON.stringify(worker)}, { eval: true }).on('message', console.log).on('exit', code => console.log('exit', code));
        });
    `);
    // The kinds of the two spans that the worker has made.
    assert.equal(stdout, `false\n${SpanKind.SERVER},${SpanKind.CLIENT}\nexit 0\n`);
});
