// Servers within servers.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Results, Server } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, failsWith } from './wire.mjs';

const quiet = { onError: () => {} };
const complete = value => ['oslo', 'ostende', 'rome'].filter(city => city.startsWith(value));
const offer = server =>
    server
        .tool('now', { inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }, ({ city }) => `rain in ${city}`)
        .resource('map://world', { mimeType: 'text/plain' }, uri => `a map at ${uri}`)
        .resource('urn:legend', {}, uri => uri)
        .resourceTemplate('map://{region}', { complete: { region: complete } }, (uri, { region }) => `${uri} of ${region}`)
        .prompt('visit', { arguments: [{ name: 'city', complete }] }, ({ city }) => `Visit ${city}.`);
const names = list => list.map(({ name, uri, uriTemplate }) => uriTemplate ?? uri ?? name);
const said = result => result.content[0].text;

test('what a mounted server offers gets the prefix, also what is added and removed later', async () => {
    const weather = offer(new Server('weather', '1', { listChanges: true, ...quiet }));
    const outer = new Server('all', '1', { listChanges: true, ...quiet }).mount('weather', weather).tool('now', {}, () => 'now');
    const client = await connect(outer);
    assert.deepEqual(names(await client.listTools()), ['weather_now', 'now']);
    assert.deepEqual(names(await client.listResources()), ['map://weather/world', 'urn:legend']);
    assert.deepEqual(names(await client.listResourceTemplates()), ['map://weather/{region}']);
    assert.deepEqual(names(await client.listPrompts()), ['weather_visit']);
    assert.equal(said(await client.callTool('weather_now', { city: 'Oslo' })), 'rain in Oslo');
    assert.equal((await client.callTool('weather_now', {})).isError, true);
    const [world] = await client.readResource('map://weather/world');
    assert.deepEqual(world, { uri: 'map://weather/world', mimeType: 'text/plain', text: 'a map at map://world' });
    assert.equal((await client.readResource('map://weather/alps'))[0].text, 'map://alps of alps');
    assert.equal((await client.readResource('urn:legend'))[0].text, 'urn:legend');
    assert.equal((await client.getPrompt('weather_visit', { city: 'Rome' })).messages[0].content.text, 'Visit Rome.');
    assert.deepEqual((await client.complete({ prompt: 'weather_visit' }, 'city', 'os')).values, ['oslo', 'ostende']);
    assert.deepEqual((await client.complete({ template: 'map://weather/{region}' }, 'region', 'r')).values, ['rome']);

    const changes = await client.listen({ tools: true, prompts: true });
    weather.tool('later', {}, () => 'dry');
    assert.equal((await changes.next()).value.type, 'toolsChanged');
    assert.equal(said(await client.callTool('weather_later')), 'dry');
    assert.equal(weather.removePrompt('visit'), true);
    assert.equal((await changes.next()).value.type, 'promptsChanged');
    await assert.rejects(client.getPrompt('weather_visit', { city: 'Rome' }), failsWith('ERR_MCP_PEER'));
    changes.close();
    assert.deepEqual(names(await (await connect(weather)).listTools()), ['now', 'later']);
});

test('mounts nest, at several places too, and their middleware sees its own names', async () => {
    const seen = [];
    const watch = who => async (call, next) => {
        const reply = await next(call);
        seen.push(`${who} ${call.method} ${call.name}`);
        return reply;
    };
    const inner = offer(new Server('inner', '1', quiet)).use(watch('inner'));
    inner.removeResource('urn:legend');
    const middle = new Server('middle', '1', quiet).mount('in', inner);
    const outer = new Server('outer', '1', quiet).mount('mid', middle).mount('', inner).use(watch('outer'));
    middle.use(watch('middle'));
    const client = await connect(outer);
    assert.deepEqual(names(await client.listTools()), ['mid_in_now', 'now']);
    assert.equal(said(await client.callTool('mid_in_now', { city: 'A' })), 'rain in A');
    assert.deepEqual(await client.readResource('map://mid/in/world'), [
        { uri: 'map://mid/in/world', mimeType: 'text/plain', text: 'a map at map://world' }
    ]);
    assert.deepEqual((await client.complete({ prompt: 'mid_in_visit' }, 'city', 'ro')).values, ['rome']);
    assert.equal(said(await client.callTool('now', { city: 'B' })), 'rain in B');
    assert.deepEqual(seen, [
        'outer tools/list undefined',
        ...['inner tools/call now', 'middle tools/call in_now', 'outer tools/call mid_in_now'],
        ...['inner resources/read map://world', 'middle resources/read map://in/world', 'outer resources/read map://mid/in/world'],
        ...['inner completion/complete visit', 'middle completion/complete in_visit', 'outer completion/complete mid_in_visit'],
        ...['inner tools/call now', 'outer tools/call now']
    ]);
});

test('hooks, caches, output schemas and undone steps of a mounted server count', async () => {
    const looks = [];
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const inner = new Server('inner', '1', { ...quiet, sanitise: { work: (_, { n }) => ({ n: n + 1 }) }, approval: { work: (_, { n }) => n < 5 } })
        .tool('work', { outputSchema }, ({ n }) => ({ n: n === 4 ? 'four' : n }))
        .tool('look', { kept: new Results(60_000, { scope: 'public' }) }, () => looks.push(1))
        .tool('book', { atomic: true }, (_, ctx, steps) => {
            steps.taken(() => looks.push('undone'));
            throw new Error('no');
        });
    const outer = new Server('outer', '1', { ...quiet, approval: { in_look: () => looks.length === 0 } }).mount('in', inner);
    const client = await connect(outer);
    assert.deepEqual((await client.callTool('in_work', { n: 1 })).structuredContent, { n: 2 });
    assert.equal(said(await client.callTool('in_work', { n: 7 })), 'the call was not approved');
    await assert.rejects(client.callTool('in_work', { n: 3 }), failsWith('ERR_MCP_PEER'));
    assert.equal(said(await client.callTool('in_look')), '1');
    assert.equal(said(await client.callTool('in_look')), 'the call was not approved');
    assert.equal((await client.callTool('in_book')).isError, true);
    assert.deepEqual(looks, [1, 'undone']);
});

test('lifespans of mounted servers begin after that of the outer one, once, and end before it', async () => {
    const order = [];
    const lifespan = name => ({ start: async () => (order.push(`${name} begins`), { name }), stop: ({ name }) => order.push(`${name} ends`) });
    const inner = new Server('inner', '1', { lifespan: lifespan('inner') })
        .tool('state', {}, (_, ctx) => ctx.state.name)
        .prompt('ask', { arguments: [{ name: 'a', complete: (value, _, ctx) => [ctx.state.name] }] }, () => 'a');
    const outer = new Server('outer', '1', { lifespan: lifespan('outer') }).mount('a', inner).mount('b', inner).tool('state', {}, (_, ctx) => ctx.state.name);
    const client = await connect(outer);
    const states = await Promise.all(['state', 'a_state', 'b_state'].map(name => client.callTool(name)));
    assert.deepEqual(states.map(said), ['outer', 'inner', 'inner']);
    assert.deepEqual((await client.complete({ prompt: 'b_ask' }, 'a', '')).values, ['inner']);
    const late = new Server('late', '1', { lifespan: lifespan('late') });
    assert.throws(() => outer.mount('late', late), failsWith('ERR_MCP_MISUSE'));
    await client.close();
    await until(() => order.length === 4);
    assert.deepEqual(order, ['outer begins', 'inner begins', 'inner ends', 'outer ends']);
});

test('a lifespan that does not begin ends those that have begun', async () => {
    const order = [];
    const inner = new Server('inner', '1', { lifespan: { start: () => Promise.reject(new Error('no database')) } });
    const outer = new Server('outer', '1', { lifespan: { start: () => 1, stop: state => order.push(state) } }).mount('in', inner);
    await assert.rejects(connect(outer), { message: 'no database' });
    assert.deepEqual(order, [1]);
});

test('failures reach the hooks of both servers, each once', async () => {
    const told = [];
    const tell = who => (error, what, call) => told.push([who, error.message, what, call?.name]);
    const inner = new Server('inner', '1', { onError: tell('inner') }).tool('bug', {}, () => {
        throw new Error('a bug');
    });
    const client = await connect(new Server('outer', '1', { onError: tell('outer') }).mount('in', inner));
    await client.callTool('in_bug');
    assert.deepEqual(told, [
        ['inner', 'a bug', 'tool in_bug', 'in_bug'],
        ['outer', 'a bug', 'tool in_bug', 'in_bug']
    ]);
});

test('updates of resources, and skills, pass to the outer server', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mounts-'));
    try {
        mkdirSync(join(folder, 'pdf'));
        writeFileSync(join(folder, 'pdf/SKILL.md'), '---\nname: pdf\ndescription: Fills in forms\n---\n');
        const inner = new Server('inner', '1', { subscriptions: true }).resource('memo://a', {}, () => 'a').skills(folder);
        const client = await connect(new Server('outer', '1', { subscriptions: true }).mount('in', inner));
        const changes = await client.listen({ uris: ['memo://in/a'] });
        inner.resourceUpdated('memo://a');
        assert.equal((await changes.next()).value.uri, 'memo://in/a');
        assert.deepEqual((await client.skills.list()).map(({ uri }) => uri), ['skill://in/pdf/SKILL.md']);
    } finally {
        rmSync(folder, { recursive: true });
    }
});

test('names that clash, circles, policies and wrong prefixes are refused, and nothing is added', async () => {
    const inner = offer(new Server('inner', '1', { listChanges: true, ...quiet }));
    const outer = new Server('outer', '1', { listChanges: true, ...quiet }).tool('in_now', {}, () => 'own');
    assert.throws(() => outer.mount('in', inner), error => failsWith('ERR_MCP_DUPLICATE')(error) && /its own and now of server inner/.test(error.message));
    outer.mount('b', inner);
    outer.tool('b_later', {}, () => 'own');
    assert.throws(() => inner.tool('later', {}, () => ''), failsWith('ERR_MCP_DUPLICATE'));
    assert.throws(() => inner.mount('c', outer), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => outer.mount('d', outer), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => outer.mount('d', new Server('p', '1', { policy: {} })), failsWith('ERR_MCP_MISUSE'));
    for (const prefix of ['a b', '1', 'a/b', 'é!']) assert.throws(() => outer.mount(prefix, new Server('x', '1')), failsWith('ERR_MCP_MISUSE'));
    assert.deepEqual(names(await (await connect(outer)).listTools()), ['in_now', 'b_now', 'b_later']);
    assert.deepEqual(names(await (await connect(inner)).listTools()), ['now']);

    // An outer server that runs and cannot change refuses the addition, which is then nowhere.
    const free = new Server('free', '1', { listChanges: true });
    const client = await connect(new Server('fixed', '1').mount('in', free).tool('own', {}, () => ''));
    assert.throws(() => free.tool('more', {}, () => ''), failsWith('ERR_MCP_MISUSE'));
    assert.deepEqual(names(await client.listTools()), ['own']);
    assert.deepEqual(names(await (await connect(free)).listTools()), []);
});

test('a hook of a mounted server for a tool that does not exist is refused', async () => {
    const inner = offer(new Server('inner', '1', { ...quiet, approval: { nwo: () => true } }));
    const outer = new Server('outer', '1', quiet).mount('in', inner);
    await assert.rejects(connect(outer), error => failsWith('ERR_MCP_MISUSE')(error) && /no tool is called "nwo"/.test(error.message));
});

test('a tool of the outer server outlives the removal of one of that name in a mounted server', async () => {
    const inner = new Server('inner', '1', quiet).tool('a', {}, () => 'inner');
    const outer = new Server('outer', '1', quiet).mount('in', inner);
    outer.removeTool('in_a');
    outer.tool('in_a', {}, () => 'outer');
    assert.equal(inner.removeTool('a'), true);
    assert.equal(said(await (await connect(outer)).callTool('in_a')), 'outer');
});

test('a removal that one outer server refuses leaves all as they were', async () => {
    const inner = new Server('inner', '1', { listChanges: true, ...quiet }).tool('a', {}, () => 'a').prompt('p', { arguments: [{ name: 'city', complete }] }, () => 'p');
    const outer = options => new Server('outer', '1', { ...quiet, ...options }).mount('in', inner);
    const farther = new Server('farther', '1', { listChanges: true, ...quiet });
    const all = [outer({ listChanges: true }), outer({}), outer({ listChanges: true })];
    farther.mount('all', all[0]);
    const clients = await Promise.all([...all, farther].map(server => connect(server)));
    for (const remove of [() => inner.removeTool('a'), () => inner.removePrompt('p')]) assert.throws(remove, failsWith('ERR_MCP_MISUSE'));
    for (const client of clients) {
        const prefix = client === clients[3] ? 'all_in_' : 'in_';
        assert.equal(said(await client.callTool(`${prefix}a`)), 'a');
        assert.deepEqual(names([...(await client.listTools()), ...(await client.listPrompts())]), [`${prefix}a`, `${prefix}p`]);
        assert.deepEqual((await client.complete({ prompt: `${prefix}p` }, 'city', 'os')).values, ['oslo', 'ostende']);
    }
    assert.deepEqual(names(await (await connect(inner)).listTools()), ['a']);
});

test('while a server starts, no server with a lifespan is mounted', async () => {
    let go;
    const outer = new Server('outer', '1', { ...quiet, lifespan: { start: () => new Promise(resolve => (go = resolve)) } });
    const started = connect(outer);
    await until(() => go);
    assert.throws(() => outer.mount('in', new Server('inner', '1', { lifespan: { start: () => 1 } })), failsWith('ERR_MCP_MISUSE'));
    go();
    await started;
});

test('a mounted server reports updates without subscriptions of its own', async () => {
    const inner = offer(new Server('inner', '1', quiet));
    new Server('outer', '1', { ...quiet, subscriptions: true }).mount('in', inner);
    inner.resourceUpdated('map://world');
});

test('a mount that fails for a skill adds nothing', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'mcpbolt-skill-'));
    t.after(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'brew'));
    writeFileSync(join(folder, 'brew/SKILL.md'), '---\nname: brew\ndescription: Brews.\n---\nBrew.');
    const inner = offer(new Server('inner', '1', quiet)).skills(folder);
    const outer = new Server('outer', '1', quiet).skills(folder).tool('own', {}, () => 'own');
    assert.throws(() => outer.mount('', inner), /there is a skill of that name/);
    assert.deepEqual(names(await (await connect(outer)).listTools()), ['own']);
});
