// The steps of ../scripts.py for both TypeScript SDKs; each brings its own way to connect, and the
// few calls that differ.
//
//     node CLIENT.mjs    with a session on each line of stdin: {"revision", "carrier", "server": [], "steps": []}
import { setTimeout as pause } from 'node:timers/promises';

export let revision;
export let modern;
let carrier;
let server;
export const info = { name: 'interop', version: '1' };
export const capabilities = {
    roots: { listChanged: true },
    sampling: { tools: {} },
    elicitation: { form: {}, url: {} },
    extensions: { 'example.com/interop': { version: 2 } }
};
/** @param made what makes the transport of each carrier */
export function transport(made) {
    const [first, ...args] = server;
    return carrier === 'stdio' ? new made.stdio({ command: first, args }) : new made[carrier](new URL(first));
}

/** In ms: after this, whatever a call made the server tell has been told. */
const SETTLED = 100;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const textOf = result => result.content[0]?.text;
const once = list => [...new Set(list)].sort();
let peer;
let heard = [];

/** What the server asks, and what it is told: see ../scripts.py. */
export const answers = {
    'sampling/createMessage': async ({ params: { messages, tools } }) => {
        if (tools) {
            const content = { type: 'tool_use', id: '1', name: tools[0].name, input: {} };
            return { role: 'assistant', model: 'm', stopReason: 'toolUse', content };
        }
        const { text } = [messages.at(-1).content].flat()[0];
        const depth = Number(/^nest (\d+)$/.exec(text)?.[1] ?? 0);
        const nested = { name: 'ask_model', arguments: { text: `nest ${depth - 1}` } };
        const said = depth ? `(${textOf(await peer.callTool(nested))})` : `said ${text}`;
        return { role: 'assistant', model: 'm', content: { type: 'text', text: said } };
    },
    'elicitation/create': ({ params: { message, url } }) => {
        if (url) return { action: 'accept' };
        if (message === 'Who?') return { action: 'accept', content: { name: 'Ada' } };
        return { action: message === 'No?' ? 'decline' : 'cancel' };
    },
    'roots/list': () => ({ roots: [{ uri: 'file:///interop' }] })
};

export const notices = {
    'notifications/message': ({ params }) => void heard.push(params.level),
    'notifications/tools/list_changed': () => void heard.push('tools/list_changed'),
    'notifications/resources/updated': ({ params }) => void heard.push(`resources/updated ${params.uri}`)
};

async function call({ tool, arguments: args = {}, meta, progress, cancel_ms, timeout_ms }) {
    const seen = [];
    const options = {};
    if (progress) options.onprogress = p => seen.push([p.progress, p.total]);
    if (timeout_ms) options.timeout = timeout_ms;
    if (cancel_ms) options.signal = AbortSignal.timeout(cancel_ms);
    try {
        const result = await peer.callTool({ name: tool, arguments: args, ...(meta && { _meta: meta }) }, options);
        const { isError = false, structuredContent = null, _meta = null } = result;
        return { text: textOf(result), is_error: isError, structured: structuredContent, meta: _meta, seen };
    } catch (error) {
        if (options.signal?.aborted) return { ended: 'cancelled' };
        if (timeout_ms && /timed out/i.test(error.message)) return { ended: 'timed out' };
        throw error;
    }
}

async function list(method, of, name) {
    const items = [];
    let pages = 0;
    let cursor;
    do {
        const page = await peer.request(method, cursor === undefined ? {} : { cursor });
        items.push(...page[of]);
        cursor = page.nextCursor;
        pages++;
    } while (cursor !== undefined);
    return { names: items.map(item => item[name]), pages, items };
}

/** What is told during a call. */
async function during(step) {
    heard = [];
    await call(step);
    await pause(SETTLED);
    return heard;
}

async function listen({ uris, ...step }) {
    const { client } = peer;
    const subscription = modern && (await client.listen({ toolsListChanged: true, resourceSubscriptions: uris }));
    if (!modern) for (const uri of uris) await client.subscribeResource({ uri });
    const first = await during(step);
    await subscription?.close?.();
    if (!modern) for (const uri of uris) await client.unsubscribeResource({ uri });
    return { heard: once(first), after: once(await during(step)) };
}

const steps = {
    info: () => {
        const { name } = peer.client.getServerVersion() ?? {};
        return { revision: peer.version(), name, extensions: peer.client.getServerCapabilities().extensions };
    },
    tools: async () => {
        const { tools, nextCursor } = await peer.client.listTools();
        if (nextCursor !== undefined) return list('tools/list', 'tools', 'name');
        return { names: tools.map(tool => tool.name), items: tools };
    },
    pages: () => list('tools/list', 'tools', 'name'),
    resources: () => list('resources/list', 'resources', 'uri'),
    templates: () => list('resources/templates/list', 'resourceTemplates', 'uriTemplate'),
    prompts: () => list('prompts/list', 'prompts', 'name'),
    read: async ({ uri }) => {
        const [{ text, blob, mimeType }] = (await peer.client.readResource({ uri })).contents;
        return { text, blob, mime: mimeType };
    },
    prompt: async ({ name, arguments: args }) => {
        const { messages } = await peer.client.getPrompt({ name, arguments: args });
        return { text: messages[0].content.text };
    },
    complete: async ({ prompt, template, argument, value }) => {
        const ref = prompt ? { type: 'ref/prompt', name: prompt } : { type: 'ref/resource', uri: template };
        const { completion } = await peer.client.complete({ ref, argument: { name: argument, value } });
        return { values: completion.values };
    },
    ping: () => peer.client.ping(),
    request: ({ method }) => peer.request(method, {}),
    call,
    task: ({ tool, arguments: args }) => peer.task({ name: tool, arguments: args }),
    many: async ({ tool, argument, count }) => {
        const call = i => peer.callTool({ name: tool, arguments: { [argument]: `call ${i}` } });
        return { answers: (await Promise.all(Array.from({ length: count }, (_, i) => call(i)))).map(textOf) };
    },
    logs: async ({ level, ...step }) => {
        if (modern) return { levels: await during({ ...step, meta: { [LOG_LEVEL]: level } }) };
        await peer.client.setLoggingLevel(level);
        return { levels: await during(step) };
    },
    listen,
    close: async () => {
        const began = performance.now();
        await peer.client.transport.terminateSession?.();
        await peer.client.close();
        return { ms: performance.now() - began };
    }
};

async function play(connect, session) {
    ({ revision, carrier, server } = session);
    modern = revision >= '2026';
    heard = [];
    peer = await connect();
    for (const step of session.steps) {
        let outcome;
        try {
            outcome = await steps[step.do](step);
        } catch (error) {
            outcome = { code: error.code ?? null, message: String(error.message) };
        }
        process.stdout.write(JSON.stringify(outcome) + '\n');
    }
}

/**
 * Plays sessions one after another. When the last session no longer keeps the process alive,
 * it prints `null` and waits for the next.
 * @param connect () => {client, version(), request(method, params), callTool(params, options), task?(params)}
 */
export function run(connect) {
    const { stdin } = process;
    let received = '';
    stdin.setEncoding('utf8').on('data', text => {
        received += text;
        if (!received.endsWith('\n')) return;
        const session = JSON.parse(received);
        received = '';
        stdin.unref();
        void play(connect, session);
    });
    process.on('beforeExit', code => {
        if (code) return;
        process.stdout.write('null\n');
        stdin.ref();
    });
}
