// Calls that wait for approval, and arguments that are cleaned before a tool sees them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Server } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, failsWith, spawned } from './wire.mjs';

const server = isAsync => `
import { setTimeout as sleep } from 'node:timers/promises';
import { Server, ToolError } from 'mcpbolt';
const [ran, ended, audit] = [[], [], []];
const soon = hook => async (...args) => (await sleep(1), hook(...args));
const either = hook => (${isAsync} ? soon(hook) : hook);
const clean = either((tool, args) => {
    const path = args.path.trim();
    if (path === 'evil') throw new ToolError('no evil by ' + tool);
    if (path === 'gone') return {};
    if (path === 'list') return [1];
    if (path === 'none') return undefined;
    args.path = path;
    return args;
});
const approve = either((tool, args, context) => {
    const { path } = args;
    // Its changes affect no other call.
    delete args.path;
    if (path === 'fail') throw new Error('no disk');
    if (path === 'late') return sleep(300).then(() => (ended.push(tool), true));
    return path === 'odd' ? 'yes' : path === 'ok' && context.isTask === false;
});
const inputSchema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const say = name => (args, context) => {
    ran.push(name);
    return args.path + context.argumentsJson;
};
new Server('disk', '1', {
    actions: true,
    policy: { audit: event => audit.push(event), auditArguments: true, timeouts: { late: 100 } },
    approval: { erase: approve, late: approve },
    sanitise: { erase: clean, late: clean },
    onError: () => {}
})
    .tool('erase', { inputSchema }, say('erase'))
    .tool('late', { inputSchema }, say('late'))
    .tool('look', { inputSchema }, ({ path }) => path)
    .tool('told', {}, () => {
        const erased = audit.filter(({ name }) => name === 'erase');
        return { ran, ended, audit: erased.map(event => event.arguments) };
    })
    .run();
`;

const WHY = {
    no: 'the call was not approved',
    ' evil': 'no evil by erase',
    gone: 'path',
    list: 'failed unexpectedly',
    none: 'failed unexpectedly',
    fail: 'failed unexpectedly',
    odd: 'failed unexpectedly'
};

for (const isAsync of [false, true]) {
    test(`a sensitive call is cleaned and approved${isAsync ? ' later' : ''} (R-S14-05)`, async () => {
        const client = await spawned(server(isAsync));
        const call = async (tool, path) => {
            const { content, isError = false } = await client.callTool(tool, { path });
            return [content[0].text, isError];
        };
        const told = async () => (await client.callTool('told')).structuredContent;
        assert.deepEqual(await call('erase', ' ok\n'), ['ok{"path":"ok"}', false]);
        for (const [path, why] of Object.entries(WHY)) {
            const [text, isError] = await call('erase', path);
            assert.ok(isError && text.includes(why), `${path}: ${text}`);
        }
        assert.deepEqual(await call('look', ' evil '), [' evil ', false]);
        assert.deepEqual((await told()).ran, ['erase']);
        await until(async () => (await told()).audit.length === 1 + Object.keys(WHY).length);
        assert.equal((await told()).audit[0], '{"path":" ok\\n"}', 'the audit is told what came');
        const [text, isError] = await call('late', 'late');
        assert.ok(isError && text.includes('longer than'), text);
        await until(async () => (await told()).ended.length === 1);
        assert.deepEqual((await told()).ran, ['erase'], 'nobody waits for it any more');
    });

    test(`so is an action${isAsync ? ' later' : ''} (R-S14-05)`, async () => {
        const client = await spawned(server(isAsync), { opening: 'actions' });
        const { data } = await client.action('erase', { path: ' ok\n' });
        assert.equal(data.content[0].text, 'ok{"path":"ok"}');
        for (const [path, why] of Object.entries(WHY)) {
            const refused = await client.action('erase', { path }).catch(error => error);
            assert.ok(failsWith('ERR_MCP_ACTION')(refused) && refused.message.includes(why), `${path}: ${refused}`);
            assert.equal(refused.type === 'VALIDATION_ERROR', path === 'gone');
        }
        const late = await client.action('late', { path: 'late' }, { retry: { tries: 1 } }).catch(error => error);
        assert.equal(late.type, 'TIMEOUT_ERROR');
        assert.deepEqual((await client.action('told')).data.ran, ['erase']);
    });
}

test('hooks of tools that there are not are refused (R-S14-05)', async () => {
    for (const hooks of [{ approval: { earse: () => true } }, { sanitise: { '*': (_, args) => args, earse: (_, args) => args } }]) {
        const server = new Server('disk', '1', hooks).tool('erase', {}, () => 'erased');
        const misspelt = error => failsWith('ERR_MCP_MISUSE')(error) && /no tool is called "earse"/.test(error.message);
        await assert.rejects(Client.connect(server), misspelt);
        await assert.rejects(server.serve('http://127.0.0.1:0/mcp'), misspelt);
        const client = await Client.connect(new Server('disk', '1', { ...hooks, listChanges: true }));
        assert.deepEqual(await client.listTools(), []);
        await client.close();
    }
});

test('the user may be asked; `*` is every tool that is not named (R-S14-05)', async () => {
    const form = { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] };
    const ran = [];
    const offer = new Server('disk', '1', {
        integers: 'bigint',
        approval: {
            '*': async (tool, args, ctx) => (await ctx.elicit(`${tool} ${args.number}?`, form)).content?.yes === true,
            erase: () => false
        },
        sanitise: { constructor: (_, { number }) => ({ number: number + 1n }) }
    })
        .tool('erase', {}, () => 'erased')
        .tool('constructor', {}, ({ number }) => (ran.push(number), `${number}`));
    for (const revision of ['2025-11-25', '2026-07-28']) {
        const asked = [];
        const onElicitation = ({ message }) => (asked.push(message), { action: 'accept', content: { yes: message.includes('5?') } });
        const client = await connect(offer, { revision, onElicitation });
        const text = async (...call) => (await client.callTool(...call)).content[0].text;
        assert.equal(await text('constructor', { number: 12345678901234567894n }), '12345678901234567895');
        assert.equal(await text('constructor', { number: 12345678901234567895n }), 'the call was not approved');
        assert.equal(await text('erase'), 'the call was not approved');
        assert.deepEqual(asked, ['constructor 12345678901234567895?', 'constructor 12345678901234567896?']);
    }
    assert.deepEqual(ran, [12345678901234567895n, 12345678901234567895n]);
});
