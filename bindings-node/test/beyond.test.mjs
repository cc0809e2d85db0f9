// Tasks and skills with the official SDKs, both ways: the tasks of 2025-11-25 with the first, skills with the second.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport as SecondTransport } from '@modelcontextprotocol/client/stdio';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { folder, program, spawned } from './wire.mjs';

const textOf = result => result.content.map(block => block.text).join();
const launched = source => ({
    command: process.execPath,
    args: program(source),
    cwd: folder.pathname,
    env: { MCPBOLT_TRACE: process.env.MCPBOLT_TRACE ?? '' }
});

const OUR_TASKS = `
    import { Server, ToolError } from 'mcpbolt';
    const form = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await new Server('ours', '1', { taskLimits: { pollInterval: 10 }, onError: () => {} })
        .tool('greet', { taskSupport: 'required' }, async (_, ctx) => {
            ctx.taskMessage('asking');
            return 'Hello ' + (await ctx.elicit('Who?', form)).content.name;
        })
        .tool('fail', { taskSupport: 'optional' }, async () => {
            throw new ToolError('out of paper');
        })
        .tool('wait', { taskSupport: 'optional' }, (_, ctx) => new Promise(done => ctx.signal.addEventListener('abort', done)))
        .run();
`;

test('the first SDK’s client follows our tasks (R-TSK-06, R-TSK-10, R-TSK-12, R-TSK-13, R-TSK-20)', async t => {
    const client = new FirstClient({ name: 'theirs', version: '1' }, { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
    t.after(() => client.close());
    await client.connect(new FirstTransport(launched(OUR_TASKS)));
    await client.listTools();
    const { tasks } = client.experimental;
    const said = async name => {
        const messages = [];
        for await (const message of tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, { task: { ttl: 60_000 } }))
            messages.push(message);
        return messages;
    };
    const greeted = await said('greet');
    assert.equal(greeted[0].type, 'taskCreated');
    assert.equal(greeted[0].task.ttl, 60_000);
    assert.equal(textOf(greeted.at(-1).result), 'Hello Ada');
    const failed = (await said('fail')).at(-1);
    // It does not ask for the result of one that failed.
    assert.match(failed.error.message, /failed/);
    const stream = tasks.callToolStream({ name: 'wait', arguments: {} }, CallToolResultSchema, { task: {} });
    const { task } = (await stream.next()).value;
    assert.equal((await tasks.cancelTask(task.taskId)).status, 'cancelled');
    assert.equal((await tasks.getTask(task.taskId)).status, 'cancelled');
    assert.deepEqual((await tasks.listTasks()).tasks.map(({ status }) => status), ['completed', 'failed', 'cancelled']);
});

const THEIR_TASKS = `
    import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
    import * as z from 'zod';
    const taskStore = new InMemoryTaskStore();
    const requests = { tools: { call: {} } };
    const server = new McpServer(
        { name: 'theirs', version: '1' },
        { capabilities: { tasks: { list: {}, cancel: {}, requests } }, taskStore, taskMessageQueue: new InMemoryTaskMessageQueue() }
    );
    const text = text => ({ content: [{ type: 'text', text }] });
    const waiting = [];
    const handler = greets => ({
        createTask: async ({ who, now }, { taskStore, taskRequestedTtl }) => {
            const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 10 });
            await taskStore.updateTaskStatus(task.taskId, 'working', 'greeting ' + who);
            const greet = () => taskStore.storeTaskResult(task.taskId, 'completed', text('Hello ' + who));
            if (greets) now ? await greet() : waiting.push(greet);
            return { task };
        },
        getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
        getTaskResult: (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId)
    });
    const { tasks } = server.experimental;
    const inputSchema = { who: z.string(), now: z.boolean().optional() };
    tasks.registerToolTask('greet', { inputSchema, execution: { taskSupport: 'required' } }, handler(true));
    tasks.registerToolTask('wait', { inputSchema, execution: { taskSupport: 'optional' } }, handler(false));
    server.registerTool('go on', {}, async () => (await Promise.all(waiting.map(greet => greet())), text('gone on')));
    await server.connect(new StdioServerTransport());
`;

test('our client follows the tasks of the first SDK’s server (R-TSK-03, R-TSK-16)', async () => {
    const client = await spawned(THEIR_TASKS, { revision: '2025-11-25' });
    const task = await client.startTool('greet', { who: 'Ada' }, { ttl: 60_000 });
    const states = [];
    for await (const { status, statusMessage } of task) {
        states.push([status, statusMessage]);
        if (status === 'working') assert.equal(textOf(await client.callTool('go on')), 'gone on');
    }
    assert.deepEqual(states, [['working', 'greeting Ada'], ['completed', 'greeting Ada']]);
    assert.equal(textOf(await task.result()), 'Hello Ada');
    assert.equal((await task.status()).ttl, 60_000);
    const waits = await client.startTool('wait', { who: 'Ada' });
    await waits.cancel();
    assert.equal((await waits.status()).status, 'cancelled');
    await assert.rejects(waits.result());
    assert.deepEqual((await client.listTasks()).map(({ taskId }) => taskId).sort(), [task.id, waits.id].sort());
    await client.listTools();
    assert.equal(textOf(await client.callTool('greet', { who: 'Bob', now: true })), 'Hello Bob', 'it must be a task, and is one');
    await client.close();
    assert.equal(client.strayCount, 0);
});

const skills = mkdtempSync(join(tmpdir(), 'mcpbolt-skills-'));
mkdirSync(join(skills, 'pdf/references'), { recursive: true });
const MANIFEST = '---\nname: pdf\ndescription: Fills in forms\n---\nRead on.\n';
writeFileSync(join(skills, 'pdf/SKILL.md'), MANIFEST);
writeFileSync(join(skills, 'pdf/references/FORMS.md'), 'Forms: ä.\n');
const REVISION = '2026-07-28';

test('the second SDK’s client reads our skills', async t => {
    const source = `import { Server } from 'mcpbolt'; await new Server('ours', '1').skills(${JSON.stringify(skills)}).run();`;
    const negotiation = { versionNegotiation: { mode: { pin: REVISION } } };
    const client = new SecondClient({ name: 'theirs', version: '1' }, { capabilities: {}, ...negotiation });
    t.after(() => client.close());
    await client.connect(new SecondTransport(launched(source)));
    const theirs = new SkillsClient(client);
    assert.deepEqual([theirs.supported, theirs.directoryRead], [true, true]);
    const { skills: [skill] } = await theirs.list();
    assert.deepEqual(skill.frontmatter, { name: 'pdf', description: 'Fills in forms' });
    assert.equal((await theirs.read(skill)).text, MANIFEST);
    const { bytes, verified } = await theirs.read(skill, 'references/FORMS.md');
    assert.deepEqual([String(Buffer.from(bytes)), verified], ['Forms: ä.\n', true]);
    const { resources } = await theirs.readDirectory('skill://pdf');
    assert.deepEqual(resources.map(({ name }) => name).sort(), ['SKILL.md', 'references']);
});

test('our client reads the skills of the second SDK’s server', async () => {
    const client = await spawned(
        `
            import { McpServer } from '@modelcontextprotocol/server';
            import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
            import { serveStdio } from '@modelcontextprotocol/server/stdio';
            const skills = await loadSkills(${JSON.stringify(skills)});
            serveStdio(() => {
                const server = new McpServer({ name: 'theirs', version: '1' });
                skills.attach(server);
                return server;
            });
        `,
        { revision: REVISION }
    );
    const [skill] = await client.skills.list();
    assert.equal(skill.frontmatter.name, 'pdf');
    assert.deepEqual(await client.skills.get(skill.uri), skill);
    assert.equal(await client.skills.load(skill), MANIFEST);
    const forms = skill.resources.find(({ uri }) => uri.endsWith('FORMS.md'));
    assert.equal(String(await client.skills.read(skill, forms.uri)), 'Forms: ä.\n');
    const listed = await client.skills.folder(skill.uri.replace('/SKILL.md', ''));
    assert.deepEqual(listed.map(({ name }) => name).sort(), ['SKILL.md', 'references']);
    await client.close();
    assert.equal(client.strayCount, 0);
});
