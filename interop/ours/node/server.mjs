// Our server in Node, with everything that ../../features.py looks at.
import { setTimeout as pause } from 'node:timers/promises';
import { Server, text } from '../../../bindings-node/index.mjs';

const GREETING = 'test://greeting';
const PIXEL =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const EXTENSION = 'example.com/interop';

const schema = properties => ({ type: 'object', properties, required: Object.keys(properties) });
const [string, integer] = [{ type: 'string' }, { type: 'integer' }];
const name = schema({ name: string });
const sleeps = { active: 0, started: 0, finished: 0, cancelled: 0 };
const complete = value => ['Ada', 'Adele', 'Grace'].filter(name => name.startsWith(value));

async function sleep({ ms }, { signal }) {
    sleeps.active++;
    sleeps.started++;
    try {
        await pause(ms, undefined, { signal });
        sleeps.finished++;
    } catch (error) {
        sleeps.cancelled++;
        throw error;
    } finally {
        sleeps.active--;
    }
    return 'slept';
}

function stats() {
    const counts = JSON.stringify(sleeps);
    Object.assign(sleeps, { started: sleeps.active, finished: 0, cancelled: 0 });
    return counts;
}

const server = new Server('node', '1', {
    listChanges: true,
    subscriptions: true,
    pageSize: 5,
    cacheLists: 60_000,
    cacheScope: 'public',
    extensions: { [EXTENSION]: { version: 1 } },
    taskLimits: { pollInterval: 10 }
});

server
    .tool('echo', { inputSchema: schema({ text: string }) }, ({ text }) => text)
    .tool('sleep', { inputSchema: schema({ ms: integer }) }, sleep)
    .tool('stats', {}, () => stats())
    .tool('progress', { inputSchema: schema({ n: integer }) }, ({ n }, ctx) => {
        for (let i = 1; i <= n; i++) ctx.progress(i, n);
        return 'done';
    })
    .tool('job', { taskSupport: 'optional' }, async (_, ctx) => {
        ctx.beginTask();
        ctx.taskMessage('at work');
        await pause(30);
        return 'done';
    })
    .tool(
        'add',
        {
            title: 'Addition',
            icons: [{ src: 'https://example.com/icon.png', mimeType: 'image/png' }],
            annotations: { readOnlyHint: true },
            inputSchema: schema({ a: integer, b: integer }),
            outputSchema: schema({ sum: integer })
        },
        ({ a, b }) => ({ sum: a + b })
    )
    .tool('log', {}, (_, ctx) => {
        for (const level of ['debug', 'info', 'warning', 'error']) ctx.log(level, { level }, 'interop');
        return 'logged';
    })
    .tool('touch', {}, () => {
        server.tool('extra', {}, () => '');
        server.removeTool('extra');
        server.resourceUpdated(GREETING);
        return 'touched';
    })
    .tool('context', {}, (_, ctx) => {
        const given = Object.entries(ctx.meta).filter(([key]) => key === 'traceparent' || key.startsWith('example.com/'));
        const seen = { meta: Object.fromEntries(given), extension: ctx.extension(EXTENSION) };
        return { content: [text(JSON.stringify(seen))], _meta: { 'example.com/seen': true } };
    });

server
    .tool('ask_model', { inputSchema: schema({ text: string }) }, async ({ text }, ctx) => {
        return (await ctx.sample({ messages: text, maxTokens: 100 })).content.text;
    })
    .tool('ask_tools', {}, async (_, ctx) => {
        const tools = [{ name: 'weather', inputSchema: { type: 'object' } }];
        const { content } = await ctx.sample({ messages: 'How warm is it?', maxTokens: 100, tools });
        return `uses ${[content].flat()[0].name}`;
    })
    .tool('ask_user', { inputSchema: schema({ message: string }) }, async ({ message }, ctx) => {
        const { action, content } = await ctx.elicit(message, name);
        return action === 'accept' ? `accept ${content.name}` : action;
    })
    .tool('ask_page', {}, async (_, ctx) => {
        return (await ctx.elicitUrl('Sign in.', 'https://example.com/sign-in', 'errand-1')).action;
    })
    .tool('ask_roots', {}, async (_, ctx) => (await ctx.roots()).map(root => root.uri).join(' '))
    .tool('interview', {}, async (_, ctx) => {
        const { content } = await ctx.elicit('Who?', name);
        return (await ctx.sample({ messages: content.name, maxTokens: 100 })).content.text;
    });

server
    .resource(GREETING, { name: 'greeting', mimeType: 'text/plain' }, () => 'hello')
    .resource('test://pixel', { name: 'pixel', mimeType: 'image/png' }, () => Buffer.from(PIXEL, 'base64'))
    .resourceTemplate('test://item/{id}', { name: 'item', complete: { id: complete } }, (_, { id }) => `item ${id}`)
    .prompt('greet', { arguments: [{ name: 'who', required: true, complete }] }, ({ who }) => `Greet ${who}.`);

const [address] = process.argv.slice(2);
await (address ? server.run(address, { cors: true }) : server.run());
