// Changes of a server while clients are connected, and the notifications of them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { on, once } from 'node:events';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Server } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, failsWith, folder, program, spawned } from './wire.mjs';

/** Each test in both eras; what a server offers is asked in the later one. */
const eras = (name, run) => {
    test(`${name}, handshake`, () => run('handshake'));
    test(`${name}, stateless`, () => run('probe'));
};
const names = async client => (await client.listTools()).map(tool => tool.name);
const within = ms => ({ signal: AbortSignal.timeout(ms) });

/** Both eras hear of lists; in the later one who listens does. */
const tuned = (client, interests) => client.listen(interests, within(10_000));

eras('tools come and go while clients are connected (R-TOL-07)', async opening => {
    const server = new Server('live', '1', { listChanges: true }).tool('first', {}, () => '1');
    const client = await connect(server, { opening });
    assert.equal(client.capabilities.tools.listChanged, true);
    const listening = await tuned(client, { tools: true });
    assert.deepEqual(await names(client), ['first']);
    server.tool('second', { inputSchema: { type: 'object', required: ['a'] } }, ({ a }) => a);
    assert.deepEqual(await listening.next(), { done: false, value: { type: 'toolsChanged' } });
    assert.deepEqual(await names(client), ['first', 'second']);
    assert.equal((await client.callTool('second', { a: 7 })).content[0].text, '7');
    assert.equal((await client.callTool('second', {})).isError, true);
    assert.equal(server.removeTool('first'), true);
    assert.equal(server.removeTool('first'), false);
    assert.deepEqual(await listening.next(), { done: false, value: { type: 'toolsChanged' } });
    assert.deepEqual(await names(client), ['second']);
    await assert.rejects(client.callTool('first'), error => failsWith('ERR_MCP_PEER')(error) && error.rpcCode === -32602);
    assert.throws(() => server.tool('second', {}, () => 0), failsWith('ERR_MCP_DUPLICATE'));
    // The name is free again, its number is not: the handler is the new one.
    server.tool('first', {}, () => 'another');
    assert.equal((await client.callTool('first')).content[0].text, 'another');
    listening.close();
    await client.close();
});

eras('resources and prompts come and go (R-RES-09, R-PRM-07)', async opening => {
    const server = new Server('live', '1', { listChanges: true });
    const heard = [];
    const told = name => () => heard.push(name);
    const client = await connect(server, {
        opening,
        on: { resourcesChanged: told('resources'), promptsChanged: told('prompts'), toolsChanged: told('tools') }
    });
    const listening = await tuned(client, { resources: true, prompts: true });
    server.resource('memo://a', {}, () => 'a').resourceTemplate('user://{id}', {}, (_, { id }) => id);
    server.prompt('greet', {}, () => 'Hello');
    assert.equal((await client.readResource('memo://a'))[0].text, 'a');
    assert.equal((await client.readResource('user://7'))[0].text, '7');
    assert.equal((await client.getPrompt('greet')).messages[0].content.text, 'Hello');
    assert.ok(server.removeResource('memo://a') && server.removePrompt('greet'));
    await assert.rejects(client.readResource('memo://a'), failsWith('ERR_MCP_PEER'));
    assert.deepEqual(await client.listPrompts(), []);
    // Changes of one list that come together may be told once.
    const count = name => heard.filter(own => own === name).length;
    assert.ok(count('prompts') === 2 && [2, 3].includes(count('resources')) && count('tools') === 0, heard.join());
    listening.close();
    await client.close();
});

eras('what is removed is forgotten, its completions too', async opening => {
    const server = new Server('live', '1', { listChanges: true, onError: () => {} });
    const complete = () => ['Rome'];
    const where = more => ({ arguments: [{ name: 'where', ...more }] });
    server.prompt('visit', where({ complete }), () => 'Go').prompt('stay', where({ complete }), () => 'Stay');
    const handlers = new FinalizationRegistry(name => forgotten.push(name));
    const forgotten = [];
    const handler = name => {
        const made = () => name;
        handlers.register(made, name);
        return made;
    };
    server.tool('tool', {}, handler('tool')).resource('memo://a', {}, handler('resource'));
    server.resourceTemplate('user://{id}', {}, handler('template')).prompt('prompt', {}, handler('prompt'));
    const client = await connect(server, { opening });
    assert.equal((await client.callTool('tool')).content[0].text, 'tool');
    assert.ok(server.removePrompt('visit'));
    server.prompt('visit', where({}), () => 'Go');
    assert.deepEqual((await client.complete({ prompt: 'visit' }, 'where', '')).values, []);
    assert.deepEqual((await client.complete({ prompt: 'stay' }, 'where', '')).values, ['Rome']);
    server.removeTool('tool');
    server.removeResource('memo://a');
    server.removeResourceTemplate('user://{id}');
    server.removePrompt('prompt');
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc');
    for (let i = 0; i < 100 && forgotten.length < 4; i++) {
        gc();
        await new Promise(resolve => setTimeout(resolve, 10));
    }
    assert.deepEqual(forgotten.sort(), ['prompt', 'resource', 'template', 'tool']);
    await client.close();
});

eras('a call of what was removed while it waited is answered', async opening => {
    const server = new Server('live', '1', { listChanges: true })
        .tool('remove', {}, () => {
            // The other call waits by then.
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
            server.removeTool('other');
        })
        .tool('other', {}, () => 'other');
    const client = await connect(server, { opening });
    const [removed, other] = await Promise.allSettled([client.callTool('remove'), client.callTool('other')]);
    assert.equal(removed.status, 'fulfilled');
    assert.equal(other.reason?.rpcCode, -32602);
    await client.close();
});

test('a server that did not say so does not change', async () => {
    const server = new Server('fixed', '1').tool('only', {}, () => '1');
    const client = await connect(server);
    assert.throws(() => server.tool('more', {}, () => 2), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => server.removeTool('only'), failsWith('ERR_MCP_MISUSE'));
    assert.deepEqual(await names(client), ['only']);
    await client.close();
});

eras('a handler may change what is offered, itself included', async opening => {
    const server = new Server('live', '1', { listChanges: true }).tool('once', {}, () => String(server.removeTool('once')));
    const client = await connect(server, { opening });
    assert.equal((await client.callTool('once')).content[0].text, 'true');
    await assert.rejects(client.callTool('once'), failsWith('ERR_MCP_PEER'));
    await client.close();
});

eras('a resource that is subscribed to is told of, others are not (R-RES-06, R-RES-07)', async opening => {
    const server = new Server('live', '1', { subscriptions: true })
        .resource('memo://a', {}, () => 'a')
        .resource('memo://b', {}, () => 'b');
    const client = await connect(server, { opening });
    assert.equal(client.capabilities.resources.subscribe, true);
    const heard = on(client, 'resourceUpdated', within(20_000));
    const next = async () => (await heard.next()).value[0];
    await client.subscribe('memo://a');
    await client.subscribe('memo://a');
    // In the later era the second stream replaces the first, whose end is read before the ping.
    await client.ping();
    server.resourceUpdated('memo://b');
    server.resourceUpdated('memo://a');
    assert.equal(await next(), 'memo://a');
    await client.unsubscribe('memo://a');
    await client.subscribe('memo://b');
    server.resourceUpdated('memo://a');
    server.resourceUpdated('memo://b');
    assert.equal(await next(), 'memo://b');
    await client.close();
});

eras('who cannot be subscribed to says so (R-CAP-03)', async opening => {
    const server = new Server('fixed', '1').resource('memo://a', {}, () => 'a');
    const client = await connect(server, { opening });
    await assert.rejects(client.subscribe('memo://a'), failsWith('ERR_MCP_UNSUPPORTED'));
    assert.throws(() => server.resourceUpdated('memo://a'), failsWith('ERR_MCP_MISUSE'));
    await client.close();
});

eras('changes are listened to one by one, each stream its own (R-SUB-05, R-SUB-06)', async opening => {
    const server = new Server('live', '1', { listChanges: true, subscriptions: true }).resource('memo://a', {}, () => 'a');
    const client = await connect(server, { opening });
    const controller = new AbortController();
    const both = await client.listen({ tools: true, uris: ['memo://a'] });
    const tools = await client.listen({ tools: true }, { signal: controller.signal });
    server.resourceUpdated('memo://a');
    server.tool('one', {}, () => 1).tool('two', {}, () => 2);
    await client.ping();
    const seen = [];
    // A change that is repeated before it is taken is told once.
    for await (const change of both) {
        seen.push(change);
        if (seen.length === 2) break;
    }
    assert.deepEqual(seen, [{ type: 'resourceUpdated', uri: 'memo://a' }, { type: 'toolsChanged' }]);
    assert.ok(both.isClosed);
    assert.deepEqual(await tools.next(), { done: false, value: { type: 'toolsChanged' } });
    const next = tools.next();
    controller.abort();
    assert.deepEqual(await next, { done: true, value: undefined });
    await assert.rejects(client.listen({}, { signal: controller.signal }), failsWith('ERR_MCP_CANCELLED'));
    await client.close();
});

test('a stream ends well when the client closes, and fails when the server dies (R-SUB-10)', async () => {
    const source = `
        import { Server } from 'mcpbolt';
        await new Server('live', '1', { listChanges: true }).tool('die', {}, () => process.kill(process.pid, 'SIGKILL')).run();
    `;
    const kept = await spawned(source, {});
    const ends = (await kept.listen({ tools: true })).next();
    await kept.close();
    assert.equal((await ends).done, true);
    const lost = await spawned(source, {});
    const fails = (await lost.listen({ tools: true })).next();
    lost.callTool('die').catch(() => {});
    await assert.rejects(fails, failsWith('ERR_MCP_CLOSED'));
    await lost.close();
});

test('a server that ends its streams ends them in good order (R-SUB-09)', async () => {
    const client = await spawned(
        `
        import { Server } from 'mcpbolt';
        const server = new Server('live', '1', { listChanges: true }).tool('end', {}, () => { setImmediate(() => server.close()); });
        await server.run();
        `,
        {}
    );
    assert.equal(client.revision, '2026-07-28');
    const listening = await client.listen({ tools: true });
    await client.callTool('end');
    assert.equal((await listening.next()).done, true);
    await client.close();
});

eras('log messages of the level that is asked for (R-LOG-02, R-LOG-03)', async opening => {
    const server = new Server('loud', '1').tool('speak', {}, (_, ctx) => {
        ctx.log('info', 'quiet');
        ctx.log('error', { loud: true }, 'news');
    });
    const client = await connect(server, { opening });
    const heard = [];
    client.on('log', message => heard.push(message));
    await client.setLogLevel('error');
    await client.callTool('speak');
    assert.deepEqual(heard, [{ level: 'error', logger: 'news', data: { loud: true } }]);
    await client.setLogLevel('debug');
    await client.callTool('speak');
    assert.deepEqual(heard.slice(1).map(({ level }) => level), ['info', 'error']);
    await assert.rejects(client.setLogLevel('loud'), failsWith('ERR_MCP_MISUSE'));
    await client.close();
});

test('events are Node’s own: once, on, signals', async () => {
    const server = new Server('live', '1', { listChanges: true });
    const client = await connect(server, { opening: 'handshake' });
    // Before the server knows that the client is ready, it tells nothing (R-LIF-03).
    await client.ping();
    const first = once(client, 'toolsChanged');
    const controller = new AbortController();
    const changes = on(client, 'toolsChanged', { signal: controller.signal });
    server.tool('one', {}, () => 1);
    await first;
    assert.deepEqual((await changes.next()).value, []);
    controller.abort();
    await assert.rejects(changes.next(), { name: 'AbortError' });
    await client.close();
});

test('a listener that throws takes nothing else along', async () => {
    const source = `
        import { Client, Server } from 'mcpbolt';
        const thrown = [];
        process.on('uncaughtException', error => thrown.push(error.message));
        const server = new Server('live', '1', { listChanges: true });
        const client = await Client.connect(server, { opening: 'handshake' });
        for (const event of ['toolsChanged', 'promptsChanged'])
            client.on(event, () => { throw new Error('of a listener'); });
        await client.ping();
        server.prompt('one', {}, () => '1').tool('two', {}, () => 2);
        const { content } = await client.callTool('two', {}, { onProgress: () => {} });
        await client.close();
        console.log(JSON.stringify([...thrown, content[0].text]));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, program(source), { cwd: folder, timeout: 30_000 });
    assert.deepEqual(JSON.parse(stdout), ['of a listener', 'of a listener', '2']);
});

eras('lists in pages, as arrays and one by one (R-PAG-04, R-PAG-05)', async opening => {
    const server = new Server('pages', '1', { pageSize: 3, cacheLists: 1500, cacheScope: 'public' });
    const all = Array.from({ length: 8 }, (_, i) => `tool_${i}`);
    for (const name of all) server.tool(name, {}, () => name).resource(`memo://${name}`, {}, () => name).prompt(name, {}, () => name);
    server.resourceTemplate('user://{id}', {}, () => '');
    const client = await connect(server, { opening });
    assert.deepEqual(await names(client), all);
    const sizes = [];
    for await (const page of client.toolPages()) sizes.push(page.length);
    assert.deepEqual(sizes, [3, 3, 2]);
    for await (const [resource] of client.resourcePages()) {
        assert.equal(resource.uri, 'memo://tool_0');
        break;
    }
    assert.equal((await client.listPrompts()).length, 8);
    assert.equal((await client.listResourceTemplates()).length, 1);
    const { ttlMs, cacheScope } = await client.request('tools/list');
    assert.deepEqual([ttlMs, cacheScope], opening === 'probe' ? [1500, 'public'] : [undefined, undefined]);
    assert.throws(() => new Server('pages', '1', { pageSize: 0 }), failsWith('ERR_MCP_MISUSE'));
    await client.close();
});

eras('arguments of prompts and variables of templates are completed (R-CMP-01, R-CMP-02)', async opening => {
    const seen = [];
    const server = new Server('words', '1')
        .prompt(
            'greet',
            {
                arguments: [
                    { name: 'lang', complete: value => ['english', 'esperanto', 'greek'].filter(lang => lang.startsWith(value)) },
                    { name: 'who', complete: async (value, args) => (seen.push([value, args]), { values: ['Ada'], total: 7 }) },
                    { name: 'plain' }
                ]
            },
            () => 'Hello'
        )
        .resourceTemplate('user://{id}', { complete: { id: () => Array.from({ length: 150 }, (_, i) => String(i)) } }, uri => uri)
        .tool('none', {}, () => '');
    const client = await connect(server, { opening });
    assert.ok(client.capabilities.completions);
    assert.equal(client.capabilities.prompts.complete, undefined);
    const prompt = { prompt: 'greet' };
    assert.deepEqual(await client.complete(prompt, 'lang', 'e'), { values: ['english', 'esperanto'], total: 2, hasMore: false });
    assert.deepEqual(await client.complete(prompt, 'who', 'A', { lang: 'greek' }), { values: ['Ada'], total: 7, hasMore: true });
    assert.deepEqual(seen, [['A', { lang: 'greek' }]]);
    assert.deepEqual((await client.complete(prompt, 'plain', '')).values, []);
    const ids = await client.complete({ template: 'user://{id}' }, 'id', '');
    assert.deepEqual([ids.values.length, ids.total, ids.hasMore], [100, 150, true]);
    await assert.rejects(client.complete({ prompt: 'nobody' }, 'x', ''), error => error.rpcCode === -32602);
    await client.close();
    const silent = await connect(new Server('silent', '1').prompt('greet', {}, () => ''), { opening });
    await assert.rejects(silent.complete(prompt, 'lang', ''), failsWith('ERR_MCP_UNSUPPORTED'));
    await silent.close();
});

test('a server hears of its clients: when they are there, and when they are gone (R-LIF-03)', async () => {
    const heard = [];
    const server = new Server('hears', '1', {
        onInitialized: client => heard.push(client),
        onClosed: (reason, { info, connection }) => heard.push(reason.code, info.name, connection)
    });
    const client = await connect(server, { name: 'ada', version: '2', opening: 'handshake', roots: [] });
    await until(() => heard.length > 0);
    const [{ revision, info, capabilities, connection }] = heard;
    assert.deepEqual([revision, info.name, Object.keys(capabilities)], ['2025-11-25', 'ada', ['roots']]);
    const closed = [];
    client.on('closed', reason => closed.push(reason.code));
    await client.close();
    await until(() => heard.length >= 2);
    assert.deepEqual([heard.slice(1), closed], [['ERR_MCP_CLOSED_BY_PEER', 'ada', connection], ['ERR_MCP_CLOSED_LOCALLY']]);
});
