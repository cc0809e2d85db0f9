// Calls that go on as tasks, in both forms: between both sides' programs, and what goes over the wire.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { McpError, ProtocolError, Server, ToolError } from 'mcpbolt';
import { connect, failsWith } from './wire.mjs';

const CORE = '2025-11-25';
const NEWEST = '2026-07-28';
const form = { type: 'object', properties: { yes: { type: 'boolean' } } };
const textOf = ({ content }) => content.map(block => block.text).join();

/** Resolves when its signal aborts. */
const aborted = signal => new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));

/** Tools of every kind, and what `wait` heard. */
function tools(heard = {}) {
    const optional = { taskSupport: 'optional' };
    const yes = async (ctx, message) => (await ctx.elicit(message, form)).content?.yes;
    return new Server('films', '1', { taskLimits: { pollInterval: 5, ttl: 60_000 }, onError: () => {} })
        .tool('plain', {}, () => 'plain')
        .tool('quick', optional, (_, ctx) => [ctx.beginTask(), ctx.isTask].join())
        .tool('direct', optional, () => 'direct')
        .tool('typed', { ...optional, outputSchema: { type: 'object', required: ['n'] } }, ({ n }, ctx) => {
            ctx.beginTask();
            return n === undefined ? {} : { n };
        })
        .tool('stages', optional, async (_, ctx) => {
            ctx.beginTask();
            for (const stage of ['first', 'second']) {
                ctx.taskMessage(stage);
                await heard[stage];
            }
            return 'staged';
        })
        .tool('wait', optional, async (_, ctx) => {
            ctx.beginTask();
            heard.begun?.();
            await aborted(ctx.signal);
            heard.aborted?.(ctx.isTask);
        })
        .tool('fail', optional, (_, ctx) => {
            ctx.beginTask();
            throw new ToolError('out of paper');
        })
        .tool('break', optional, async (_, ctx) => {
            ctx.beginTask();
            throw new ProtocolError('invalid params', 'no such film', { film: 7 });
        })
        .tool('confirm', optional, async (_, ctx) => {
            const before = await yes(ctx, 'Before?');
            heard.runs = (heard.runs ?? 0) + 1;
            ctx.beginTask();
            const both = await Promise.all([yes(ctx, 'One?'), yes(ctx, 'Two?')]);
            return [before, ...both].join();
        })
        .tool('only', { taskSupport: 'required' }, (_, ctx) => String(ctx.beginTask()));
}

const answers = asked => ({
    tasks: true,
    onElicitation: ({ message }) => (asked?.push(message), { action: 'accept', content: { yes: message !== 'Two?' } })
});

for (const revision of [CORE, NEWEST]) {
    test(`a call goes on as a task, and its handle tells how far it is, ${revision} (R-TSK-06, R-TSK-16, R-TSX-06, R-TSX-16)`, async () => {
        const heard = {};
        const goOn = {};
        for (const stage of ['first', 'second']) heard[stage] = new Promise(resolve => (goOn[stage] = resolve));
        const client = await connect(tools(heard), { ...answers(), revision });
        const task = await client.startTool('stages', {}, { ttl: 30_000 });
        assert.match(task.id, /^\d+-[0-9a-f]{32}$/);
        const seen = [];
        for await (const { status, statusMessage } of task) {
            // Before the handler says anything.
            if (status === 'working' && statusMessage === undefined) continue;
            seen.push([status, statusMessage]);
            goOn[statusMessage]?.();
        }
        assert.deepEqual(seen, [['working', 'first'], ['working', 'second'], ['completed', undefined]]);
        assert.equal(textOf(await task.result()), 'staged');
        const info = await task.status();
        assert.deepEqual(
            [info.taskId, info.status, info.pollInterval, info.ttl],
            [task.id, 'completed', 5, revision === CORE ? 30_000 : 60_000]
        );
        assert.ok(Date.parse(info.createdAt) <= Date.parse(info.lastUpdatedAt));
        assert.equal(textOf(await client.task(task.id).result()), 'staged', 'it is kept');
        assert.equal(textOf(await client.callTool('quick')), revision === CORE ? 'false,false' : 'true,true');
        assert.equal(textOf(await (await client.startTool('quick')).result()), 'true,true');
        assert.equal(textOf(await client.callTool('direct')), 'direct');
    });

    test(`a task ends as its call would have, ${revision} (R-TSK-21, R-TSX-09)`, async () => {
        const client = await connect(tools(), { ...answers(), revision });
        const failed = await (await client.startTool('fail')).result();
        assert.deepEqual([failed.isError, textOf(failed)], [true, 'out of paper']);
        const broken = await client.startTool('break');
        const isError = error => error instanceof McpError && error.rpcCode === -32602 && error.message === 'no such film' && error.data?.film === 7;
        await assert.rejects(broken.result(), isError);
        assert.equal((await broken.status()).status, 'failed');
        const states = [];
        for await (const { status } of broken) states.push(status);
        assert.equal(states.at(-1), 'failed');
        await client.listTools();
        const typed = async args => (await (await client.startTool('typed', args)).result()).structuredContent;
        assert.deepEqual(await typed({ n: 1 }), { n: 1 });
        await assert.rejects(typed({}), failsWith('ERR_MCP_PEER'));
    });

    test(`a task is given up, and its handler hears of it, ${revision} (R-TSK-12, R-TSX-12)`, async () => {
        const heard = {};
        const begun = new Promise(resolve => (heard.begun = resolve));
        const aborted = new Promise(resolve => (heard.aborted = resolve));
        const client = await connect(tools(heard), { ...answers(), revision });
        const task = await client.startTool('wait');
        await begun;
        const result = assert.rejects(task.result(), error => ['ERR_MCP_CANCELLED', 'ERR_MCP_PEER'].includes(error.code));
        await task.cancel();
        assert.equal((await task.status()).status, 'cancelled');
        assert.equal(await aborted, false, 'and answers nothing any more');
        await result;
        // Stopping to follow stops nothing at the server.
        const stop = new AbortController();
        const other = await client.startTool('wait', {}, { signal: stop.signal });
        setTimeout(() => stop.abort(), 20);
        await assert.rejects(other.result(), failsWith('ERR_MCP_CANCELLED'));
        assert.equal((await other.status()).status, 'working');
        await other.cancel();
        await assert.rejects(client.task('1-00').status(), error => error.rpcCode === -32602);
    });

    test(`the last state of a task is told, and nobody asks for it again, ${revision}`, async () => {
        const looks = [];
        const trace = (direction, message) => {
            if (direction === 'out' && message.includes('"tasks/get"')) looks.push('asked');
            // As an answer to that, not by itself or as the answer to the call.
            if (direction === 'in' && /"status":"completed"/.test(message) && !/"(method|task)":/.test(message)) looks.push('told');
        };
        const client = await connect(tools(), { ...answers(), revision, trace });
        const statesOf = async task => {
            const states = [];
            for await (const { status } of task) states.push(status);
            return states;
        };
        assert.equal((await statesOf(await client.startTool('quick'))).at(-1), 'completed');
        assert.deepEqual(looks.slice(looks.indexOf('told')), ['told']);
        const waits = await client.startTool('wait');
        const states = statesOf(waits);
        const heard = [];
        // In the same moment, calls that want progress are under way.
        const calls = [];
        await waits.cancel();
        for (let i = 0; i < 20; i++) calls.push(client.callTool('direct', {}, { onProgress: state => heard.push(state) }));
        assert.equal((await states).at(-1), 'cancelled');
        await assert.rejects(waits.result(), failsWith('ERR_MCP_CANCELLED'));
        await Promise.all(calls);
        assert.deepEqual(heard, []);
    });

    test(`what a task asks, the client's handlers answer, ${revision} (R-TSK-13, R-TSX-10, R-TSX-11)`, async () => {
        const [heard, asked] = [{}, []];
        const client = await connect(tools(heard), { ...answers(asked), revision });
        const task = await client.startTool('confirm');
        const states = [];
        for await (const { status } of task) states.push(status);
        assert.equal(textOf(await task.result()), 'true,true,false');
        assert.deepEqual(asked.sort(), ['Before?', 'One?', 'Two?'], 'nobody is asked twice');
        assert.equal(heard.runs, 1, 'a task does not run again');
        assert.equal(states.at(-1), 'completed');
        // In 2025-11-25 it may ask and be answered between two looks.
        if (revision === NEWEST) assert.ok(states.includes('input_required'), states.join());
    });
}

test('before there are tasks, and where nobody wants them, calls are calls (R-TSK-03, R-TSX-03, R-TSX-04)', async () => {
    const server = tools();
    for (const revision of ['2024-11-05', '2025-06-18']) {
        const client = await connect(server, { revision });
        const task = await client.startTool('quick');
        assert.equal(task.id, undefined);
        assert.equal(textOf(await task.result()), 'false,false');
        for await (const state of task) assert.fail(state);
        await assert.rejects(task.status(), failsWith('ERR_MCP_MISUSE'));
        await assert.rejects(client.task('1-00').cancel(), failsWith('ERR_MCP_UNSUPPORTED'));
        await assert.rejects(client.listTasks(), failsWith('ERR_MCP_UNSUPPORTED'));
    }
    const newest = await connect(server, { revision: NEWEST });
    assert.equal(textOf(await newest.callTool('quick')), 'false,false');
    await assert.rejects(newest.callTool('only'), error => error.rpcCode === -32021);
    assert.deepEqual(newest.capabilities.extensions, { 'io.modelcontextprotocol/tasks': {} });
    const core = await connect(server, { revision: CORE });
    assert.equal(textOf(await core.callTool('quick')), 'false,false');
    await assert.rejects(core.callTool('only'), failsWith('ERR_MCP_PEER'));
    const { only, plain } = Object.fromEntries((await core.listTools()).map(tool => [tool.name, tool]));
    assert.deepEqual([only.execution, plain.execution], [{ taskSupport: 'required' }, undefined]);
    assert.equal(textOf(await core.callTool('only')), 'true', 'by way of a task, now that it is known');
    await assert.rejects(core.startTool('plain'), failsWith('ERR_MCP_UNSUPPORTED'));
    const none = await connect(new Server('none', '1').tool('plain', {}, () => 'plain'), { revision: CORE });
    await assert.rejects(none.startTool('plain'), failsWith('ERR_MCP_UNSUPPORTED'));
});

test('the tasks of a connection are listed, and end with it; those of the extension do not (R-TSK-17, R-TSK-20, R-TSX-23)', async () => {
    const heard = {};
    const aborted = new Promise(resolve => (heard.aborted = resolve));
    const server = tools(heard);
    const core = await connect(server, { revision: CORE });
    const [first, second] = [await core.startTool('quick'), await core.startTool('wait')];
    const listed = await core.listTasks();
    assert.deepEqual(listed.map(({ taskId }) => taskId), [first.id, second.id]);
    const other = await connect(server, { revision: CORE });
    await assert.rejects(other.task(first.id).status(), error => error.rpcCode === -32602);
    await core.close();
    await aborted;
    const before = await connect(server, { ...answers(), revision: NEWEST });
    const { id } = await before.startTool('direct').then(() => before.startTool('quick'));
    await before.close();
    const after = await connect(server, { ...answers(), revision: NEWEST });
    assert.equal(textOf(await after.task(id).result()), 'true,true');
});

test('tasks are bounded (R-TSK-07)', async () => {
    const optional = { taskSupport: 'optional' };
    const server = new Server('few', '1', { taskLimits: { tasks: 1, bytes: 100 } }).tool('long', optional, (_, ctx) => {
        const begun = ctx.beginTask();
        return `${begun} ${'x'.repeat(200)}`;
    });
    const client = await connect(server, { tasks: true, revision: NEWEST });
    const task = await client.startTool('long');
    await assert.rejects(task.result(), failsWith('ERR_MCP_PEER'), 'there is no room for the result');
    assert.match(textOf(await client.callTool('long')), /^false x/, 'nor for another task');
    const core = await connect(server, { revision: CORE });
    await assert.rejects(core.startTool('long'), failsWith('ERR_MCP_PEER'));
    assert.throws(() => server.tool('odd', { taskSupport: 'sometimes' }, () => ''), failsWith('ERR_MCP_MISUSE'));
});
