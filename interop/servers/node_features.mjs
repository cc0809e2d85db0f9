// The tools, resources and prompts of both TypeScript servers: everything that ../features.py looks at. Each brings its own
// way to take requests, and to ask and tell its client things.
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const GREETING = 'test://greeting';
const PIXEL = 'test://pixel';
const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
export const EXTENSION = 'example.com/interop';
export const extensions = { [EXTENSION]: { version: 1 } };
export const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true },
    prompts: {},
    completions: {},
    logging: {},
    extensions
};
const PAGE = 5;
const INVALID_PARAMS = -32602;

const schema = (properties = {}) => ({ type: 'object', properties, required: Object.keys(properties) });
const [string, integer] = [{ type: 'string' }, { type: 'integer' }];
const name = schema({ name: string });
const takes = {
    echo: { text: string },
    sleep: { ms: integer },
    progress: { n: integer },
    ask_model: { text: string },
    ask_user: { message: string }
};
const plain = ['stats', 'log', 'touch', 'context', 'ask_tools', 'ask_page', 'ask_roots', 'interview'];
const add = {
    name: 'add',
    title: 'Addition',
    icons: [{ src: 'https://example.com/icon.png', mimeType: 'image/png' }],
    annotations: { readOnlyHint: true },
    inputSchema: schema({ a: integer, b: integer }),
    outputSchema: schema({ sum: integer })
};
/** Which only one of the SDKs can make a task of. */
const job = { name: 'job', execution: { taskSupport: 'optional' }, inputSchema: schema() };
const tools = [add, ...[...Object.keys(takes), ...plain].map(name => ({ name, inputSchema: schema(takes[name]) }))];
const sleeps = { active: 0, started: 0, finished: 0, cancelled: 0 };
const subscribed = new Set();

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

/** Whether the revision says of arguments that break the schema in a result, not in an error. */
const tells = revision => revision >= '2025-11-25';
const words = text => ({ role: 'user', content: { type: 'text', text } });
const model = async (text, { ask }) => {
    return (await ask('model', 'sampling/createMessage', { messages: [words(text)], maxTokens: 100 })).content.text;
};
const user = (message, { ask }) => ask('user', 'elicitation/create', { message, requestedSchema: name, mode: 'form' });

const handlers = {
    echo: ({ text }) => text,
    sleep,
    stats,
    progress: async ({ n }, { progress }) => {
        for (let i = 1; i <= n; i++) await progress(i, n);
        return 'done';
    },
    job: async (_, { asTask }) => {
        const work = async () => {
            await pause(30);
            return { content: [{ type: 'text', text: 'done' }] };
        };
        return asTask ? asTask(work) : work();
    },
    add: ({ a, b }) => ({ content: [{ type: 'text', text: `${a + b}` }], structuredContent: { sum: a + b } }),
    log: async (_, { log }) => {
        for (const level of ['debug', 'info', 'warning', 'error']) await log(level, { level }, 'interop');
        return 'logged';
    },
    touch: async (_, { listChanged, updated, modern }) => {
        await listChanged();
        if (modern || subscribed.has(GREETING)) await updated(GREETING);
        return 'touched';
    },
    context: (_, { meta = {}, extension }) => {
        const given = Object.entries(meta).filter(([key]) => key === 'traceparent' || key.startsWith('example.com/'));
        const text = JSON.stringify({ meta: Object.fromEntries(given), extension });
        return { content: [{ type: 'text', text }], _meta: { 'example.com/seen': true } };
    },
    ask_model: ({ text }, ctx) => model(text, ctx),
    ask_tools: async (_, { ask }) => {
        const tools = [{ name: 'weather', inputSchema: { type: 'object' } }];
        const params = { messages: [words('How warm is it?')], maxTokens: 100, tools };
        const { content } = await ask('model', 'sampling/createMessage', params);
        return `uses ${[content].flat()[0].name}`;
    },
    ask_user: async ({ message }, ctx) => {
        const { action, content } = await user(message, ctx);
        return action === 'accept' ? `accept ${content.name}` : action;
    },
    ask_page: async (_, { ask, modern }) => {
        const errand = modern ? {} : { elicitationId: 'errand-1' };
        const params = { mode: 'url', message: 'Sign in.', url: 'https://example.com/sign-in', ...errand };
        return (await ask('page', 'elicitation/create', params)).action;
    },
    ask_roots: async (_, { ask }) => (await ask('roots', 'roots/list')).roots.map(root => root.uri).join(' '),
    interview: async (_, ctx) => model((await user('Who?', ctx)).content.name, ctx)
};

/**
 * @param refused (code, message) => the error to throw
 * @param hasTasks whether the context of a call may have `asTask`, which makes a task of a function
 * @returns handlers of requests, by method: (params, context) => result
 */
export function requests(refused, hasTasks = false) {
    const offered = hasTasks ? [...tools, job] : tools;
    const missing = what => refused(INVALID_PARAMS, `no such ${what}`);
    return {
        'tools/list': ({ cursor = '0' } = {}) => {
            const end = Number(cursor) + PAGE;
            const more = end < offered.length ? { nextCursor: String(end) } : {};
            return { tools: offered.slice(Number(cursor), end), ...more };
        },
        'tools/call': async ({ name, arguments: args = {} }, ctx) => {
            const tool = offered.find(tool => tool.name === name);
            if (!tool) throw missing('tool');
            const isWrong = ([key, { type }]) => typeof args[key] !== (type === 'integer' ? 'number' : type);
            const text = 'the arguments break the schema';
            if (Object.entries(tool.inputSchema.properties).some(isWrong)) {
                if (!tells(ctx.revision)) throw refused(INVALID_PARAMS, text);
                return { content: [{ type: 'text', text }], isError: true };
            }
            const result = await handlers[name](args, ctx);
            return typeof result === 'string' ? { content: [{ type: 'text', text: result }] } : result;
        },
        'resources/list': () => ({
            resources: [
                { uri: GREETING, name: 'greeting', mimeType: 'text/plain' },
                { uri: PIXEL, name: 'pixel', mimeType: 'image/png' }
            ]
        }),
        'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item' }] }),
        'resources/read': ({ uri }) => {
            const item = /^test:\/\/item\/(.+)$/.exec(uri)?.[1];
            if (uri === PIXEL) return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] };
            if (uri !== GREETING && item === undefined) throw missing('resource');
            const text = item === undefined ? 'hello' : `item ${decodeURIComponent(item)}`;
            return { contents: [{ uri, mimeType: 'text/plain', text }] };
        },
        'resources/subscribe': ({ uri }) => (subscribed.add(uri), {}),
        'resources/unsubscribe': ({ uri }) => (subscribed.delete(uri), {}),
        'prompts/list': () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }] }),
        'prompts/get': ({ name, arguments: args = {} }) => {
            if (name !== 'greet' || args.who === undefined) throw missing('prompt, or no `who`');
            return { messages: [words(`Greet ${args.who}.`)] };
        },
        'completion/complete': ({ argument: { value } }) => {
            return { completion: { values: ['Ada', 'Adele', 'Grace'].filter(name => name.startsWith(value)) } };
        }
    };
}

/** Listens there; `serve` answers, or names a status. */
export function listen(address, serve) {
    const { hostname, port } = new URL(address);
    const answer = async (req, res) => {
        const status = await serve(req, res, new URL(req.url, address).pathname);
        if (status) res.writeHead(status).end();
    };
    const server = createServer((req, res) => void answer(req, res).catch(error => res.destroy(error)));
    // A request that arrives while the server ends an idle connection is lost. The usual five seconds are
    // too short: a busy machine may take as long between two requests.
    server.keepAliveTimeout = 60_000;
    server.listen(port, hostname);
}

/** The transport, telling by `revision()` which revision its client opened with. */
export function overheard(transport) {
    let revision = '2026-07-28';
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => {
        if (message.method === 'initialize') revision = message.params.protocolVersion;
        onmessage.call(transport, message, extra);
    };
    return () => revision;
}
