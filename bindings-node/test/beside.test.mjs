// External servers that are mounted in a server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Approval, CallReports, Client, External, Front, Server } from 'mcpbolt';
import { connect } from 'mcpbolt/testing';
import { until } from './until.mjs';

const cwd = fileURLToPath(new URL('..', import.meta.url));
const THEIRS = `
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
    const server = new McpServer({ name: 'theirs', version: '1.0.0' });
    server.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hello' }] }));
    await server.connect(new StdioServerTransport());`;
const theirs = () => new External([process.execPath, '--input-type=module', '-e', THEIRS], { name: 'theirs', cwd });

const names = list => list.map(({ name }) => name);
const text = result => result.content[0].text;
const TOKEN = 'k'.repeat(40);

function far() {
    const server = new Server('far', '1.0.0');
    server.tool('find', {}, () => 'found');
    server.prompt('greet', {}, () => 'hello from afar');
    server.resource('book://list', {}, () => 'books');
    return server;
}

/** A server whose tools say what their handlers see. */
function own(seen, options = {}) {
    const server = new Server('own', '2.0.0', {
        instructions: 'Ask.',
        subscriptions: true,
        listChanges: true,
        lifespan: { start: () => (seen.push('start'), { database: 'open' }), stop: () => void seen.push('stop') },
        onInitialized: client => seen.push(`initialized ${client.name}`),
        ...options
    });
    server.use((call, next) => (seen.push(`middleware ${call.method}`), next()));
    server.tool('see', {}, (_, ctx) => JSON.stringify({
        state: ctx.state.database,
        client: ctx.client,
        revision: ctx.revision,
        principal: ctx.principal,
        scope: ctx.hasScope('write'),
        wantsProgress: ctx.wantsProgress,
        meta: ctx.meta?.['com.example/a']
    }));
    server.tool('work', {}, async (_, ctx) => {
        ctx.progress(1, 2, 'half');
        ctx.log('info', 'working');
        const form = { type: 'object', properties: { name: { type: 'string' } } };
        const { content } = await ctx.elicit('Your name?', form);
        const { content: sampled } = await ctx.sample({ messages: 'hi', maxTokens: 5 });
        return `${content.name} ${JSON.stringify(sampled)}`;
    });
    server.tool('wait', {}, (_, ctx) => new Promise((_, fail) => ctx.signal.addEventListener('abort', () => (seen.push('aborted'), fail(ctx.signal.reason)))));
    server.tool('fails', {}, () => { throw new Error('a secret'); });
    server.resource('memo://a', {}, () => 'memo');
    server.prompt('ask', {}, () => 'asked');
    return server;
}

/** What clients and handlers see of the server. */
async function watched(connect, server, seen) {
    const progress = [];
    const logs = [];
    const updates = [];
    const client = await connect({
        name: 'watcher',
        onElicitation: () => ({ action: 'accept', content: { name: 'Faust' } }),
        onSampling: () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }),
        on: { log: ({ data }) => logs.push(data), resourceUpdated: uri => updates.push(uri) }
    });
    const said = {};
    // Those of several servers stand together, each after a name.
    said.server = [client.server.name, client.server.version, client.instructions.replace('own: ', '')];
    await client.setLogLevel('debug').catch(() => {});
    said.see = JSON.parse(text(await client.callTool('see', {}, { meta: { 'com.example/a': 1 } })));
    said.work = text(await client.callTool('work', {}, { onProgress: ({ progress: done, message }) => progress.push([done, message]) }));
    const abort = new AbortController();
    const waiting = client.callTool('wait', {}, { signal: abort.signal }).catch(error => error.code);
    setTimeout(() => abort.abort(), 50);
    said.wait = await waiting;
    await until(() => seen.includes('aborted'));
    said.fails = (await client.callTool('fails')).content[0].text;
    said.memo = (await client.readResource('memo://a'))[0].text;
    said.prompt = (await client.getPrompt('ask')).messages[0].content.text;
    const missing = await client.callTool('missing').catch(error => [error.rpcCode, error.message]);
    said.missing = missing;
    await client.subscribe('memo://a');
    server.resourceUpdated('memo://a');
    await until(() => updates.length > 0);
    await client.close();
    return { ...said, progress, logs, updates };
}

const WAYS = {
    within: (server, t) => options => Client.connect(server, options),
    http: (server, t) => async options => {
        const serving = await server.serve('http://127.0.0.1:0/mcp');
        t.after(() => serving.close());
        return Client.connect(serving.address, options);
    },
    socket: (server, t) => async options => {
        const serving = await server.serve('tcp:127.0.0.1:0');
        t.after(() => serving.close());
        return Client.connect(serving.address, options);
    },
    endpoint: (server, t) => async options => {
        const endpoint = server.endpoint();
        const site = createServer(endpoint.handler).listen(0, '127.0.0.1');
        await once(site, 'listening');
        t.after(() => (endpoint.close(), site.closeAllConnections(), site.close()));
        return Client.connect(`http://127.0.0.1:${site.address().port}/mcp`, options);
    }
};

for (const revision of ['2025-06-18', '2026-07-28'])
    for (const [name, way] of Object.entries(WAYS))
        test(`clients and handlers see the same of a server with an external server, ${name}, in ${revision}`, async t => {
            const see = async isBeside => {
                const seen = [];
                const server = own(seen);
                if (isBeside) server.mount('far', new External(far()));
                const connect = way(server, t);
                const said = await watched(options => connect({ ...options, revision }), server, seen);
                const kinds = new Set(seen.filter(one => !/stop|initialized/.test(one)));
                const greeted = seen.some(one => one === 'initialized watcher');
                return { ...said, kinds: [...kinds].sort(), greeted };
            };
            assert.deepEqual(await see(true), await see(false));
        });

for (const revision of ['2025-06-18', '2026-07-28'])
    test(`R-CHN-11 a server offers what external servers offer, beside its own, in ${revision}`, async t => {
        const server = own([]).mount('far', new External(far())).mount('their', theirs());
        const client = await connect(server, { test: t, revision });
        assert.deepEqual(names(await client.listTools()), ['see', 'work', 'wait', 'fails', 'far_find', 'their_hello']);
        assert.deepEqual(names(await client.listPrompts()), ['ask', 'far_greet']);
        assert.deepEqual((await client.listResources()).map(({ uri }) => uri), ['memo://a', 'book://far/list']);
        assert.equal(text(await client.callTool('far_find')), 'found');
        assert.equal(text(await client.callTool('their_hello')), 'hello');
        assert.equal((await client.readResource('book://far/list'))[0].text, 'books');
        // What is added later is offered, too.
        server.tool('late', {}, () => 'late');
        await until(async () => names(await client.listTools()).includes('late'));
    });

test('a client of the official SDK uses a server with an external server on stdio and HTTP', async t => {
    const program = `
        import { External, Server } from 'mcpbolt';
        const theirs = new External([process.execPath, '--input-type=module', '-e', ${JSON.stringify(THEIRS)}], { name: 'theirs' });
        console.log('to stderr');
        const server = new Server('own', '1').tool('here', {}, () => 'here').mount('their', theirs);
        await server.run();`;
    const stdio = new StdioClientTransport({ command: process.execPath, args: ['--input-type=module', '-e', program], cwd, stderr: 'ignore' });
    const serving = await new Server('own', '1').tool('here', {}, () => 'here').mount('their', theirs()).serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    for (const transport of [stdio, new StreamableHTTPClientTransport(new URL(serving.address))]) {
        const client = new TheirClient({ name: 'theirs', version: '1' });
        await client.connect(transport);
        assert.equal(client.getServerVersion().name, 'own');
        assert.deepEqual(names((await client.listTools()).tools), ['here', 'their_hello']);
        assert.equal(text(await client.callTool({ name: 'their_hello', arguments: {} })), 'hello');
        assert.equal(text(await client.callTool({ name: 'here', arguments: {} })), 'here');
        await client.close();
    }
});

test('the policy of the server counts once, for its own tools and for those of the external server', async t => {
    const seen = [];
    const events = [];
    const verifier = ({ secret }) => ({ alice: { name: 'alice', scopes: ['write'] }, bob: 'bob' })[secret];
    const policy = { verifier, scopes: { far_find: ['write'] }, audit: event => events.push([event.method, event.name, event.principal, event.outcome]) };
    const server = own(seen, { policy }).mount('far', new External(far()));
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    const status = opening => opening.then(() => 'connected', error => error.cause?.status);
    assert.equal(await status(Client.connect(serving.address)), 401);
    for (const [token, scope] of [['alice', true], ['bob', false]]) {
        const client = await Client.connect(serving.address, { auth: { type: 'bearer', token } });
        t.after(() => client.close());
        const { principal, scope: has } = JSON.parse(text(await client.callTool('see')));
        assert.deepEqual([principal, has], [token, scope]);
        if (scope) assert.equal(text(await client.callTool('far_find')), 'found');
        else await assert.rejects(client.callTool('far_find'));
    }
    await until(() => events.filter(([method]) => method === 'tools/call').length === 4);
    const calls = events.filter(([method]) => method === 'tools/call').map(([, ...rest]) => rest.join(' '));
    assert.deepEqual(calls, ['see alice done', 'far_find alice done', 'see bob done', 'far_find bob denied']);
});

test('an external server has its rules, and its failures leave the server alone', async t => {
    const calls = [];
    const rules = [new CallReports(({ server, name }) => calls.push(`${server} ${name}`)), new Approval(['find'], { approve: () => 'not today' })];
    const server = own([]).mount('far', new External(far(), { rules })).mount('gone', new External('tcp:127.0.0.1:9', { name: 'gone', connectTimeout: 1000 }));
    const client = await Client.connect(server);
    t.after(() => client.close());
    await assert.rejects(client.callTool('far_find'), /not today/);
    await until(() => calls.includes('far find'));
    await assert.rejects(client.callTool('gone_any'), { code: 'ERR_MCP_PEER' });
    assert.ok(names(await client.listTools()).includes('see'));
    assert.equal(JSON.parse(text(await client.callTool('see'))).state, 'open');
});

test('lifespans and fronts of external servers run as long as the server is served, and close ends it', async t => {
    const seen = [];
    const inner = new Server('inner', '1', { lifespan: { start: () => void seen.push('inner start'), stop: () => void seen.push('inner stop') } });
    inner.tool('find', {}, () => 'found');
    const watching = { request: (message, next) => (seen.push(message.method), next(message)) };
    const server = own(seen).mount('far', new External(new Front(new External(inner), { middleware: [watching] })));
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    const client = await Client.connect(serving.address);
    assert.equal(text(await client.callTool('far_find')), 'found');
    assert.throws(() => server.mount('more', new External(far())), { code: 'ERR_MCP_MISUSE', message: /runs already/ });
    await client.close();
    server.close();
    assert.equal((await serving.ended).unanswered, 0);
    assert.ok(seen.includes('tools/call'));
    assert.deepEqual(seen.filter(one => /st(art|op)/.test(one)), ['start', 'inner start', 'inner stop', 'stop']);
});

test('calls that were not answered are counted', async () => {
    const server = own([]).mount('far', new External(far()));
    let isStuck = false;
    server.tool('stuck', {}, () => ((isStuck = true), new Promise(() => {})));
    const serving = await server.serve('http://127.0.0.1:0/mcp', { grace: 100 });
    const client = await Client.connect(serving.address);
    const call = client.callTool('stuck').catch(() => {});
    await until(() => isStuck);
    assert.equal((await serving.close()).unanswered, 1);
    await call;
    await client.close();
});

test('what could be confused is refused', () => {
    const refused = (make, code, message) => assert.throws(make, { code, message });
    const misuse = 'ERR_MCP_MISUSE';
    refused(() => own([]).mount('far', new External(far(), { prefix: 'x' })), misuse, /has a prefix of its own, x/);
    refused(() => own([]).mount('', new External(far())), misuse, /at least one/);
    refused(() => own([]).mount('a', new External(far())).mount('a', new External(far(), { name: 'other' })), misuse, /prefix/);
    refused(() => own([]).mount('a', new External(far(), { name: 'own' })), misuse, /same name/);
    refused(() => new Server('a', '1', { actions: true }).mount('far', new External(far())), misuse, /action dialect/);
    refused(() => new Server('a', '1', { profile: 'extended' }).mount('far', new External(far())), misuse, /profile extended/);
    const round = own([]);
    refused(() => round.mount('x', new External(new Front(new External(round)))), misuse, /leads to own itself/);
    const other = far().mount('x', new External(round));
    refused(() => round.mount('y', new External(other)), misuse, /leads to own itself/);
    const beside = own([]).mount('far', new External(far()));
    refused(() => new Server('outer', '1').mount('in', beside), misuse, /external servers/);
    const mounted = far();
    new Server('outer', '1').mount('in', mounted);
    refused(() => mounted.mount('x', new External(far(), { name: 'other' })), misuse, /is mounted in another one/);
    // Names of the server that begin with the prefix.
    refused(() => beside.tool('far_find', {}, () => ''), 'ERR_MCP_DUPLICATE', /tool far_find/);
    refused(() => beside.resource('book://far/b', {}, () => ''), 'ERR_MCP_DUPLICATE', /resource book:\/\/far\/b/);
    refused(() => new Server('a', '1').prompt('far_x', {}, () => '').mount('far', new External(far())), 'ERR_MCP_DUPLICATE', /prompt far_x/);
    refused(() => beside.mount('far', new Server('b', '1').tool('x', {}, () => '')), 'ERR_MCP_DUPLICATE', /far_x/);
});
