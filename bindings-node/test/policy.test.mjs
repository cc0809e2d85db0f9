// Permissions, limits, masks and the audit of a server, and profiles of the protocol.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server, ToolError } from 'mcpbolt';
import { connect, failsWith } from './wire.mjs';

const permissions = {
    tools: { allowed: ['*'], denied: ['erase'] },
    resources: { allowed: ['file:///srv/**'] }
};

const offer = options =>
    new Server('disk', '1', options)
        .tool('erase', {}, () => 'erased')
        .tool('look', {}, () => {
            throw new ToolError('password=hunter2 is wrong, so is open sesame');
        })
        .tool('slow', {}, () => sleep(60_000, 'late', { ref: false }))
        .resource('file:///srv/a.txt', {}, () => 'a')
        .resource('file:///etc/shadow', {}, () => 'b');

test('what is denied is not there (R-PER-01 to R-PER-05)', async () => {
    const client = await connect(offer({ policy: { permissions } }));
    assert.deepEqual((await client.listTools()).map(({ name }) => name), ['look', 'slow']);
    assert.deepEqual((await client.listResources()).map(({ uri }) => uri), ['file:///srv/a.txt']);
    assert.equal((await client.readResource('file:///srv/a.txt'))[0].text, 'a');
    await assert.rejects(client.callTool('erase'), failsWith('ERR_MCP_PEER'));
    await assert.rejects(client.readResource('file:///etc/shadow'), failsWith('ERR_MCP_PEER'));
    await client.close();
});

test('secrets are told to nobody, and the audit says what was done (R-ERR-29, R-S14-05)', async () => {
    const seen = [];
    const policy = { permissions, secrets: ['open sesame'], auditArguments: true, audit: event => seen.push(event) };
    const client = await connect(offer({ policy }));
    const look = await client.callTool('look', { token: 'hunter2' });
    assert.equal(look.content[0].text, 'password=*** is wrong, so is ***');
    await assert.rejects(client.callTool('erase'), failsWith('ERR_MCP_PEER'));
    for (let waits = 0; seen.length < 2 && waits < 3000; waits += 1) await sleep(10);
    assert.deepEqual(seen.map(({ name, outcome }) => [name, outcome]), [['look', 'tool_failed'], ['erase', 'denied']]);
    assert.ok(!JSON.stringify(seen).includes('hunter2'));
    assert.deepEqual(JSON.parse(seen[0].arguments), { token: '***' });
    await client.close();
});

test('an audit that is behind is waited for, or drops', { timeout: 60_000 }, async () => {
    const calls = async (auditQueue, last) => {
        const seen = [];
        const client = await connect(offer({ policy: { auditQueue, audit: event => seen.push(event) } }));
        await Promise.all(Array.from({ length: 50 }, () => client.callTool('erase')));
        await sleep(50);
        if (last) await client.callTool(last);
        for (let waits = 0; seen.at(-1)?.name !== (last ?? 'erase') && waits < 3000; waits += 1) await sleep(10);
        for (let waits = 0; !last && seen.length < 50 && waits < 3000; waits += 1) await sleep(10);
        await client.close();
        return seen;
    };
    const dropped = seen => seen.reduce((sum, event) => sum + event.dropped, 0);
    const waited = await calls({ events: 1 });
    assert.deepEqual([waited.length, dropped(waited)], [50, 0]);
    // However many were dropped, the events say.
    const lossy = await calls({ events: 1, whenFull: 'drop' }, 'look');
    assert.equal(lossy.length + dropped(lossy), 51);
});

test('calls are bounded in time and number (R-PER-06, R-S14-05)', async () => {
    const counted = await connect(offer({ policy: { quota: { calls: 1, period: 3_600_000 } } }));
    const called = async () => (await counted.callTool('erase')).content[0].text;
    assert.equal(await called(), 'erased');
    assert.equal(await called(), 'the quota of 1 calls in 3600s is used up: try again in 3600 s');
    await counted.close();
    const client = await connect(offer({ policy: { toolTimeout: 100, rate: { burst: 2, perSecond: 0 } } }));
    const slow = await client.callTool('slow');
    assert.ok(slow.isError && slow.content[0].text.includes('longer than'));
    const answers = [];
    for (let n = 0; n < 3; n += 1) answers.push(await client.callTool('erase'));
    assert.ok(answers.some(({ isError, content }) => isError && content[0].text.includes('too many requests')));
    await client.close();
});

test('a policy or profile that is misspelt is refused', () => {
    assert.throws(() => offer({ policy: { permission: {} } }), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => offer({ profile: 'seed-005' }), failsWith('ERR_MCP_MISUSE'));
});

test('a client speaks a profile (R-LIF-07, R-CHN-05)', async () => {
    const said = [];
    const trace = (_, message) => said.push(message);
    const server = offer({ profile: 'chain' });
    const client = await connect(server, { profile: 'chain', trace });
    assert.equal(client.revision, '2025-03-26');
    const refused = await client.callTool('unknown_tool').catch(error => error);
    assert.deepEqual([refused.rpcCode, refused.data], [-32001, "Tool 'unknown_tool' does not exist"]);
    assert.ok(said.some(message => message.includes('"method":"initialized"')));
    await client.close();
    await assert.rejects(connect(offer(), { profile: 'seed-005' }), failsWith('ERR_MCP_MISUSE'));
});
