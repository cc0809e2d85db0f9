// Middleware: functions around calls, reads, prompts, completions and lists.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { ProtocolError, Results, Server, ToolError, image, json, prompt, text } from 'mcpbolt';
import * as z from 'zod';
import { connect, failsWith } from './wire.mjs';

const REVISIONS = ['2024-11-05', '2025-11-25', '2026-07-28'];
const quiet = { onError: () => {} };

/** What a server with these tools and middleware answers. */
const talk = async (build, ...middleware) => {
    const server = new Server('s', '1', quiet);
    build(server);
    server.use(...middleware);
    return connect(server);
};

const complete = value => ['a', 'ab'].filter(one => one.startsWith(value));
const everything = server =>
    server
        .tool('echo', {}, ({ text }) => text)
        .tool('add', {}, async ({ a, b }) => ({ sum: a + b }))
        .resource('memo://a', { mimeType: 'text/plain' }, () => 'A')
        .resourceTemplate('memo://all/{id}', { complete: { id: complete } }, (uri, { id }) => `all ${id}`)
        .prompt('greet', { arguments: [{ name: 'who', complete }] }, ({ who }) => `Greet ${who}.`);

for (const revision of REVISIONS)
    test(`middleware is around everything that handlers and lists answer, ${revision}`, async () => {
        const seen = [];
        const server = everything(new Server('s', '1', quiet));
        server.use(async (call, next) => {
            const reply = await next(call);
            seen.push([call.method, call.name, { ...call.arguments }, reply]);
            return reply;
        });
        server.tool('later', {}, () => 'late');
        const plain = everything(new Server('s', '1', quiet)).tool('later', {}, () => 'late');
        const [client, other] = [await connect(server, { revision }), await connect(plain, { revision })];
        const asks = [
            ['tools/call', 'echo', { text: 'hi' }, it => it.callTool('echo', { text: 'hi' })],
            ['tools/call', 'add', { a: 1, b: 2 }, it => it.callTool('add', { a: 1, b: 2 })],
            ['tools/call', 'later', {}, it => it.callTool('later')],
            ['resources/read', 'memo://a', {}, it => it.readResource('memo://a')],
            ['resources/read', 'memo://all/7', { id: '7' }, it => it.readResource('memo://all/7')],
            ['prompts/get', 'greet', { who: 'Ada' }, it => it.getPrompt('greet', { who: 'Ada' })],
            ['completion/complete', 'greet', { who: 'a' }, it => it.complete({ prompt: 'greet' }, 'who', 'a')],
            ['completion/complete', 'memo://all/{id}', { id: 'ab' }, it => it.complete({ template: 'memo://all/{id}' }, 'id', 'ab')],
            ['tools/list', undefined, {}, it => it.listTools()],
            ['resources/list', undefined, {}, it => it.listResources()],
            ['resources/templates/list', undefined, {}, it => it.listResourceTemplates()],
            ['prompts/list', undefined, {}, it => it.listPrompts()]
        ];
        for (const [method, name, args, ask] of asks) {
            const answer = await ask(client);
            assert.deepEqual(answer, await ask(other));
            const [saw, ...more] = seen.splice(0);
            assert.deepEqual(saw.slice(0, 3), [method, name, args]);
            assert.deepEqual(more, []);
            const { structuredContent, ...old } = saw[3];
            const reply = method === 'tools/call' && revision === '2024-11-05' ? old : saw[3];
            assert.deepEqual(JSON.parse(JSON.stringify(reply)), JSON.parse(JSON.stringify(strip(answer))));
        }
    });

/** Without what the engine adds to every result. */
const strip = answer => {
    if (Array.isArray(answer)) return answer;
    const { resultType, _meta, ...rest } = answer;
    return rest;
};

test('the first middleware is the outermost, and each may change the arguments and the reply', async () => {
    const order = [];
    const client = await talk(
        everything,
        async (call, next) => {
            order.push('out');
            const reply = await next();
            order.push(reply.content[0].text);
            reply._meta = { 'example.com/seen': true };
            return reply;
        },
        async (call, next) => {
            order.push('in');
            call.arguments = { text: call.arguments.text.trim() };
            return `${(await next(call)).content[0].text}!`;
        }
    );
    const { content, _meta } = await client.callTool('echo', { text: ' a ' });
    assert.deepEqual([content, _meta['example.com/seen']], [[{ type: 'text', text: 'a!' }], true]);
    assert.deepEqual(order, ['out', 'in', 'a!']);
});

test('a reply that was looked at or changed is sent so; one that was not, as without middleware', async () => {
    const kept = new Results(60_000, { scope: 'public' });
    const outputSchema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] };
    const tools = server =>
        server
            .tool('nothing', {}, () => undefined)
            .tool('number', {}, () => 7)
            .tool('bytes', {}, () => new Uint8Array([1]))
            .tool('blocks', {}, () => [text('a'), image(new Uint8Array([2]), 'image/png')])
            .tool('whole', {}, () => ({ content: [text('b'), { type: 'text', text: 'c' }], isError: true, _meta: { x: 1 } }))
            .tool('object', {}, () => ({ a: [1, { b: null }] }))
            .tool('json', {}, () => json('{"long":0.12345678901234567890}'))
            .tool('schema', { outputSchema }, () => ({ a: 1 }))
            .tool('kept', { kept }, () => ({ a: 1 }))
            .tool('atomic', { atomic: true }, () => 'done');
    const names = ['nothing', 'number', 'bytes', 'blocks', 'whole', 'object', 'json', 'schema', 'kept', 'atomic'];
    const plain = await talk(tools);
    const untouched = await talk(tools, (call, next) => next());
    const touched = await talk(tools, async (call, next) => {
        const reply = await next();
        void (Array.isArray(reply) || [reply.content.length, reply.structuredContent]);
        return reply;
    });
    const spread = await talk(tools, async (call, next) => {
        const reply = await next();
        return Array.isArray(reply) ? reply : { ...reply };
    });
    for (const name of names) {
        const expected = await plain.callTool(name);
        for (const client of [untouched, touched, spread]) assert.deepEqual(await client.callTool(name), expected, name);
    }
    const raw = client => client.requestJson('tools/call', { name: 'json' });
    assert.ok((await raw(untouched)).includes('"long":0.12345678901234567890'));

    const changes = {
        object: reply => void (reply.structuredContent.a = 2),
        schema: reply => void (reply.structuredContent = { a: 'no' }),
        number: reply => void (reply.content[0].text = 'eight'),
        blocks: reply => void reply.content.pop()
    };
    const changing = await talk(tools, async (call, next) => {
        const reply = await next();
        changes[call.name]?.(reply);
        return reply;
    });
    const { content, structuredContent } = await changing.callTool('object');
    assert.deepEqual([content[0].text, structuredContent], ['{"a":2}', { a: 2 }]);
    await assert.rejects(changing.callTool('schema'), failsWith('ERR_MCP_PEER'));
    assert.equal((await changing.callTool('number')).content[0].text, 'eight');
    assert.equal((await changing.callTool('blocks')).content.length, 1);
});

test('middleware answers without the handler, calls it again, and throws as a handler may', async () => {
    let ran = 0;
    const build = server =>
        server.tool('work', {}, () => {
            if (ran++ === 0) throw new Error('the first time');
            return 'done';
        });
    const client = await talk(build, (call, next) => {
        const { how } = call.arguments;
        if (how === 'short') return { content: [text('short')] };
        if (how === 'told') throw new ToolError('told');
        if (how === 'refused') throw new ProtocolError(-31000, 'refused');
        if (how === 'secret') throw new Error('secret');
        return how === 'again' ? next().catch(() => next(call)) : next();
    });
    const call = async how => {
        const { content, isError } = await client.callTool('work', { how });
        return [content[0].text, isError === true];
    };
    assert.deepEqual(await call('short'), ['short', false]);
    assert.deepEqual(await call('told'), ['told', true]);
    assert.deepEqual(await call('secret'), ['the handler failed unexpectedly', true]);
    const refused = await client.callTool('work', { how: 'refused' }).catch(error => error);
    assert.equal(refused.rpcCode, -31000);
    assert.equal(ran, 0);
    assert.deepEqual(await call('again'), ['done', false]);
    assert.equal(ran, 2);
});

test('replaced arguments are checked, and shown ones are frozen', async () => {
    const errors = [];
    const server = everything(new Server('s', '1', { onError: (error, what, call) => errors.push([error.code ?? error.name, what, call?.name]) }));
    server.tool('strict', { inputSchema: z.object({ n: z.number().transform(n => n + 1) }) }, ({ n }) => n);
    let change;
    server.use((call, next) => (change(call), next()));
    const client = await connect(server);
    change = call => void (call.arguments = { n: 4 });
    assert.equal((await client.callTool('strict', { n: 1 })).content[0].text, '5');
    change = call => void (call.arguments = { n: 'four' });
    assert.equal((await client.callTool('strict', { n: 1 })).isError, true);
    change = call => void (call.arguments.n = 4);
    assert.equal((await client.callTool('strict', { n: 1 })).isError, true);
    change = call => void (call.arguments = { who: 'Bob' });
    assert.equal((await client.getPrompt('greet', { who: 'Ada' })).messages[0].content.text, 'Greet Bob.');
    change = call => void (call.arguments = { whom: 'Bob' });
    await assert.rejects(client.getPrompt('greet', { who: 'Ada' }), failsWith('ERR_MCP_PEER'));
    change = call => void (call.arguments = { id: '8' });
    assert.equal((await client.readResource('memo://all/7'))[0].text, 'all 8');
    change = call => void (call.arguments = {});
    await assert.rejects(client.listTools(), failsWith('ERR_MCP_PEER'));
    assert.deepEqual(errors, [
        ['ERR_MCP_ACTION', 'tool strict', 'strict'],
        ['TypeError', 'tool strict', 'strict'],
        ['ERR_MCP_MISUSE', 'prompt greet', 'greet'],
        ['ERR_MCP_MISUSE', 'list', undefined]
    ]);
});

test('hooks, middleware and approval come in this order', async () => {
    const order = [];
    const server = new Server('s', '1', {
        sanitise: { work: (tool, args) => (order.push('sanitise'), { n: args.n + 1 }) },
        approval: { work: (tool, args) => (order.push(`approval ${args.n}`), true) }
    }).tool('work', {}, ({ n }, ctx) => (order.push(`handler ${n}`), ctx.argumentsJson));
    server.use((call, next) => {
        order.push(`middleware ${call.arguments.n}`);
        call.arguments = { n: call.arguments.n * 10 };
        return next();
    });
    const client = await connect(server);
    assert.equal((await client.callTool('work', { n: 1 })).content[0].text, '{"n":20}');
    assert.deepEqual(order, ['sanitise', 'middleware 2', 'approval 20', 'handler 20']);
});

test('pages of lists keep their cursors, and unknown ones are refused', async () => {
    const server = new Server('s', '1', { pageSize: 2, cacheLists: 1000, listChanges: true });
    for (const name of ['a', 'b', 'hidden', 'c']) server.tool(name, {}, () => name);
    const client = await connect(server, { revision: '2026-07-28' });
    server.use(async (call, next) => {
        const reply = await next(call);
        return call.method === 'tools/list' ? reply.filter(({ name }) => name !== 'hidden') : reply;
    });
    const pages = [];
    for await (const page of client.toolPages()) pages.push(page.map(({ name }) => name));
    assert.deepEqual(pages, [['a', 'b'], ['c']]);
    const page = await client.request('tools/list', {});
    assert.deepEqual([page.nextCursor, page.ttlMs], ['page-1', 1000]);
    const wrong = await client.request('tools/list', { cursor: 'page-9' }).catch(error => error);
    assert.equal(wrong.rpcCode, -32602);
});

test('what als.run of a middleware stores reaches the handler, and no other call', async () => {
    const als = new AsyncLocalStorage();
    const server = new Server('s', '1').tool('who', {}, async () => {
        const before = als.getStore();
        await new Promise(setImmediate);
        return [before, als.getStore()];
    });
    server.use((call, next) => als.run(call.arguments.user, next));
    const client = await connect(server);
    const users = Array.from({ length: 50 }, (_, at) => `user ${at}`);
    const answers = await Promise.all(users.map(user => client.callTool('who', { user })));
    assert.deepEqual(answers.map(answer => JSON.parse(answer.content[0].text)), users.map(user => [user, user]));
});

test('a middleware that is no function is refused', () => {
    assert.throws(() => new Server('s', '1').use({}), failsWith('ERR_MCP_MISUSE'));
});

test('what middleware sees is frozen throughout', async () => {
    const client = await talk(
        server => server.tool('sum', {}, ({ list }) => (list.push(3), `${list}`)),
        (call, next) => {
            assert.throws(() => call.arguments.list.push(9), TypeError);
            return next();
        }
    );
    assert.equal((await client.callTool('sum', { list: [1, 2] })).content[0].text, '1,2,3');
});

test('what is approved is what runs, also where arguments were changed in place', async () => {
    const approved = [];
    const server = new Server('s', '1', { ...quiet, approval: { '*': (_, { list }) => approved.push(`${list}`) > 0 } });
    server.tool('sum', {}, ({ list }) => (list.push(3), `${list}`));
    server.use(async (_, next) => (await next(), next()));
    assert.equal((await (await connect(server)).callTool('sum', { list: [1, 2] })).content[0].text, '1,2,3');
    assert.deepEqual(approved, ['1,2', '1,2']);
});

test('a rejection of next that is not awaited, and a thenable that is no promise', async () => {
    const client = await talk(
        server => server.tool('fails', {}, () => { throw new ToolError('no'); }),
        (_, next) => {
            void next();
            return { then: resolve => resolve('instead') };
        }
    );
    assert.equal((await client.callTool('fails')).content[0].text, 'instead');
});
