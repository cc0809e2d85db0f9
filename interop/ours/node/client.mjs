// Our client in Node, driven by the steps of ../../scripts.py.
//
//     node client.mjs REVISION CARRIER SERVER...
import { text as all } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '../../../bindings-node/index.mjs';

const [revision, carrier, server, ...args] = process.argv.slice(2);
const ROOT = 'file:///interop';
/** In ms: after this, whatever a call made the server tell has been told. */
const SETTLED = 100;
const textOf = result => result.content[0]?.text ?? '';
let heard = [];

async function model({ messages, tools }, { client }) {
    if (tools) {
        const content = { type: 'tool_use', id: '1', name: tools[0].name, input: {} };
        return { role: 'assistant', model: 'm', stopReason: 'toolUse', content };
    }
    const { text } = [messages.at(-1).content].flat()[0];
    const depth = Number(/^nest (\d+)$/.exec(text)?.[1] ?? 0);
    if (depth === 0) return { model: 'm', content: `said ${text}` };
    const nested = await client.callTool('ask_model', { text: `nest ${depth - 1}` });
    return { model: 'm', content: `(${textOf(nested)})` };
}

function user({ message }) {
    if (message === 'Who?') return { action: 'accept', content: { name: 'Ada' } };
    return { action: message === 'No?' ? 'decline' : 'cancel' };
}

async function call(client, { tool, arguments: args, progress, cancel_ms, timeout_ms, meta }) {
    const seen = [];
    const options = {};
    if (progress) options.onProgress = ({ progress, total }) => seen.push([progress, total ?? null]);
    if (timeout_ms) options.timeout = timeout_ms;
    if (cancel_ms) options.signal = AbortSignal.timeout(cancel_ms);
    try {
        const result = meta
            ? await client.request('tools/call', { name: tool, arguments: args, _meta: meta }, options)
            : await client.callTool(tool, args, options);
        const { isError = false, structuredContent = null, _meta = null } = result;
        return { text: textOf(result), is_error: isError, structured: structuredContent, meta: _meta, seen };
    } catch (error) {
        if (error.code === 'ERR_MCP_TIMEOUT') return { ended: 'timed out' };
        if (error.code === 'ERR_MCP_CANCELLED') return { ended: 'cancelled' };
        throw error;
    }
}

async function listed(list, name) {
    const items = await list;
    return { names: items.map(item => item[name]), items };
}

/** What is told during a call. */
async function told(client, step) {
    heard = [];
    await call(client, step);
    await pause(SETTLED);
    return heard;
}

const steps = {
    info: async client => ({
        revision: client.revision,
        name: client.server?.name,
        extensions: client.capabilities.extensions
    }),
    tools: client => listed(client.listTools(), 'name'),
    pages: async client => {
        let pages = 0;
        for await (const _ of client.toolPages()) pages++;
        return { pages };
    },
    resources: client => listed(client.listResources(), 'uri'),
    templates: client => listed(client.listResourceTemplates(), 'uriTemplate'),
    prompts: client => listed(client.listPrompts(), 'name'),
    read: async (client, { uri }) => {
        const [{ text, blob, mimeType }] = await client.readResource(uri);
        return { text, blob, mime: mimeType };
    },
    prompt: async (client, step) => {
        const { messages } = await client.getPrompt(step.name, step.arguments);
        return { text: messages[0].content.text };
    },
    complete: async (client, { prompt, template, argument, value }) => {
        const { values } = await client.complete(prompt ? { prompt } : { template }, argument, value);
        return { values };
    },
    ping: async client => {
        await client.ping();
        return {};
    },
    request: (client, { method }) => client.request(method),
    many: async (client, { tool, argument, count }) => {
        const calls = Array.from({ length: count }, (_, i) => client.callTool(tool, { [argument]: `call ${i}` }));
        return { answers: (await Promise.all(calls)).map(textOf) };
    },
    call,
    task: async (client, { tool, arguments: args }) => {
        const task = await client.startTool(tool, args);
        return { text: textOf(await task.result()), status: (await task.status()).status };
    },
    logs: async (client, step) => {
        await client.setLogLevel(step.level);
        return { levels: await told(client, step) };
    },
    listen: async (client, step) => {
        const listening = await client.listen({ tools: true, uris: step.uris });
        const during = await told(client, step);
        await listening.close();
        const after = await told(client, step);
        return { heard: [...new Set(during)].sort(), after: [...new Set(after)].sort() };
    },
    close: async client => {
        const began = performance.now();
        await client.close();
        return { strays: client.strayCount, ms: performance.now() - began };
    }
};

const script = JSON.parse(await all(process.stdin));
const options = {
    name: 'interop-node',
    version: '1',
    revision,
    onSampling: model,
    samplingTools: true,
    onElicitation: user,
    onElicitationUrl: () => ({ action: 'accept' }),
    roots: [ROOT],
    extensions: { 'example.com/interop': { version: 2 } },
    tasks: true,
    on: {
        log: ({ level }) => heard.push(level),
        toolsChanged: () => heard.push('tools/list_changed'),
        resourceUpdated: uri => heard.push(`resources/updated ${uri}`)
    }
};
const client = await (carrier === 'stdio' ? Client.spawn(server, args, options) : Client.connect(server, options));
for (const step of script) {
    const outcome = await steps[step.do](client, step).catch(error => {
        if (error.code !== 'ERR_MCP_PEER') throw error;
        return { code: error.rpcCode };
    });
    process.stdout.write(JSON.stringify(outcome) + '\n');
}
