// A server of the official SDK with a bit of everything, in either generation: `make(1)`, `make(2)`. Run as a program it
// serves: `node theirs.mjs GENERATION sdk|transport|accelerated [stdio|http|entry]`; where, over HTTP, it says on stderr.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text as text_ } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

const text = (text, more) => ({ content: [{ type: 'text', text }], ...more });
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

export async function make(generation) {
    const { McpServer, ResourceTemplate } = await import(
        generation === 1 ? '@modelcontextprotocol/sdk/server/mcp.js' : '@modelcontextprotocol/server'
    );
    const { McpError: SdkError } = generation === 1 ? await import('@modelcontextprotocol/sdk/types.js') : {};
    const { ProtocolError } = generation === 2 ? await import('@modelcontextprotocol/server') : {};
    const { completable } = await import(generation === 1 ? '@modelcontextprotocol/sdk/server/completable.js' : '@modelcontextprotocol/server');
    const server = new McpServer(
        { name: 'theirs', version: '3', title: 'Theirs' },
        { capabilities: { logging: {}, resources: { subscribe: true } }, instructions: 'Try everything.' }
    );
    const args = shape => (generation === 1 ? shape : z.object(shape));
    const error = (code, message, data) => (generation === 1 ? new SdkError(code, message, data) : new ProtocolError(code, message, data));
    /** What handlers are given, said in one way. */
    const of = ctx => (generation === 1 ? ctx : { ...ctx.mcpReq, requestId: ctx.mcpReq.id, sendNotification: ctx.mcpReq.notify });
    const ask = (ctx, method, params, schema) =>
        generation === 1 ? ctx.sendRequest({ method, params }, schema) : ctx.mcpReq.send({ method, params });
    const tool = (name, shape, handler, more) => server.registerTool(name, { description: `Does ${name}.`, ...(shape && { inputSchema: args(shape) }), ...more }, handler);

    tool('echo', { text: z.string() }, async a => text(a.text));
    tool('sync', { text: z.string() }, a => text(a.text));
    tool('slow', { ms: z.number() }, async a => (await sleep(a.ms), text('slept')));
    tool('none', undefined, async () => text('nothing is asked'));
    tool('defaults', { n: z.number().int().min(1).default(3), on: z.boolean().optional(), kind: z.enum(['a', 'b']).nullable().default(null) }, async a => text(JSON.stringify(a)));
    tool('coerced', { n: z.coerce.number() }, async a => text(JSON.stringify(a)));
    tool('trimmed', { text: z.string().trim().min(2) }, async a => text(a.text));
    tool('refined', { a: z.number().refine(n => n % 2 === 0, 'must be even') }, async a => text(String(a.a)));
    tool('later', { a: z.string().refine(async s => (await sleep(1), s.length > 2), 'too short') }, async a => text(a.a));
    tool('nested', { items: z.array(z.object({ id: z.string().uuid(), tags: z.record(z.string(), z.array(z.number())) })).max(3) }, async a => text(JSON.stringify(a)));
    tool('choice', { of: z.discriminatedUnion('kind', [z.object({ kind: z.literal('x'), x: z.number() }), z.object({ kind: z.literal('y'), y: z.string() })]) }, async a => text(JSON.stringify(a)));
    tool('many', undefined, async () => ({ content: [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }] }));
    tool('image', undefined, async () => ({ content: [{ type: 'image', data: 'AQID', mimeType: 'image/png' }] }));
    tool('badImage', undefined, async () => ({ content: [{ type: 'image', data: '!!', mimeType: 'image/png' }] }));
    tool('link', undefined, async () => ({ content: [{ type: 'resource_link', uri: 'memo://a', name: 'a' }] }));
    tool('annotated', undefined, async () => ({ content: [{ type: 'text', text: 'x', annotations: { priority: 1 } }] }));
    tool('meta', undefined, async () => text('x', { _meta: { seen: true } }));
    tool('extra', undefined, async () => text('x', { more: [1] }));
    tool('failed', undefined, async () => text('no', { isError: true }));
    tool('empty', undefined, async () => ({ content: [] }));
    tool('nothing', undefined, async () => undefined);
    tool('contentless', undefined, async () => ({}));
    tool('wrong', undefined, async () => ({ content: 'text' }));
    tool('surrogate', undefined, async () => text('\ud800'));
    tool('unicode', { text: z.string() }, async a => text(`${a.text} 🦀 "\\\n\u2028`));
    tool('structured', { n: z.number() }, async a => text('n', { structuredContent: { n: a.n } }), { outputSchema: args({ n: z.number() }) });
    tool('misfit', undefined, async () => text('n', { structuredContent: { n: 'x' } }), { outputSchema: args({ n: z.number() }) });
    tool('unstructured', undefined, async () => text('n'), { outputSchema: args({ n: z.number() }) });
    tool('excused', undefined, async () => text('n', { isError: true }), { outputSchema: args({ n: z.number() }) });
    tool('free', undefined, async () => text('n', { structuredContent: { any: [1, null, { a: 'b' }] } }));
    tool('throws', undefined, async () => { throw new Error('it broke'); });
    tool('throwsAtOnce', undefined, () => { throw new TypeError('at once'); });
    tool('throwsText', undefined, async () => { throw 'text'; });
    tool('throwsProtocol', undefined, async () => { throw error(-32602, 'not so', { a: 1 }); });
    tool('throwsUrl', undefined, async () => { throw error(-32042, 'visit', { elicitations: [] }); });
    tool('titled', { q: z.string().describe('What to look for') }, async a => text(a.q), { title: 'Titled', annotations: { readOnlyHint: true }, _meta: { a: 1 } });
    tool('context', undefined, async ctx => {
        const { requestId, _meta } = of(ctx);
        return text(JSON.stringify([requestId, _meta ?? null, ctx.sessionId ?? null, Object.keys(ctx).sort(), Object.keys({ ...ctx }).sort(), of(ctx).signal.aborted]));
    });
    tool('client', undefined, async () => text(JSON.stringify([server.server.getClientVersion() ?? null, server.server.getClientCapabilities() ?? null])));
    tool('progress', { n: z.number() }, async (a, ctx) => {
        const { _meta, sendNotification } = of(ctx);
        for (let i = 1; i <= a.n; i++) {
            const params = { progressToken: _meta?.progressToken ?? 'none', progress: i, total: a.n, ...(i === 2 && { message: 'half' }) };
            await sendNotification({ method: 'notifications/progress', params });
        }
        return text('done');
    });
    tool('custom', undefined, async ctx => {
        await of(ctx).sendNotification({ method: 'notifications/message', params: { level: 'info', data: { a: [1] }, logger: 'l' } });
        return text('told');
    });
    tool('log', { level: z.string() }, async a => {
        await server.sendLoggingMessage({ level: a.level, data: 'said' });
        return text('logged');
    });
    tool('roots', undefined, async ctx => {
        const { ListRootsResultSchema } = generation === 1 ? await import('@modelcontextprotocol/sdk/types.js') : {};
        return text(JSON.stringify(await ask(ctx, 'roots/list', undefined, ListRootsResultSchema)));
    });
    tool('elicit', undefined, async () => {
        const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
        return text(JSON.stringify(await server.server.elicitInput({ message: 'Who?', requestedSchema })));
    });
    tool('sample', undefined, async () => {
        const messages = [{ role: 'user', content: { type: 'text', text: 'hi' } }];
        return text(JSON.stringify(await server.server.createMessage({ messages, maxTokens: 5 })));
    });
    const ended = [];
    tool('wait', { name: z.string() }, async (a, ctx) => {
        await new Promise(resolve => of(ctx).signal.addEventListener('abort', resolve, { once: true }));
        ended.push([a.name, String(of(ctx).signal.reason)]);
        return text('too late');
    });
    tool('ended', undefined, async () => text(JSON.stringify(ended)));
    tool('change', { what: z.string() }, async a => {
        if (a.what === 'add') tool('added', { a: z.string() }, async a => text(`added ${a.a}`));
        if (a.what === 'disable') disabled.disable();
        if (a.what === 'enable') disabled.enable();
        if (a.what === 'rename') disabled.update({ name: 'renamed' });
        if (a.what === 'remove') disabled.remove();
        if (a.what === 'callback') sync.update({ callback: async () => text('another') });
        if (a.what === 'resource') server.registerResource('new', 'memo://new', {}, async uri => ({ contents: [{ uri: uri.href, text: 'new' }] }));
        if (a.what === 'prompt') server.registerPrompt('new', { description: 'New.' }, async () => ({ messages: [] }));
        return text('changed');
    });
    const disabled = tool('fickle', undefined, async () => text('fickle'));
    const sync = tool('replaced', undefined, async () => text('one'));

    server.registerResource('a', 'memo://a', { title: 'A', mimeType: 'text/plain' }, async uri => ({ contents: [{ uri: uri.href, text: 'a' }] }));
    server.registerResource('blob', 'memo://blob', {}, async uri => ({ contents: [{ uri: uri.href, blob: 'AQID' }] }));
    server.registerResource('broken', 'memo://broken', {}, async () => { throw new Error('cannot be read'); });
    const off = server.registerResource('off', 'memo://off', {}, async () => ({ contents: [] }));
    off.disable();
    server.registerResource(
        'user',
        new ResourceTemplate('user://{id}/{part}', { list: undefined, complete: { id: value => [`${value}1`, `${value}2`] } }),
        { description: 'A user.' },
        async (uri, { id, part }) => ({ contents: [{ uri: uri.href, text: `${id}:${part}` }] })
    );
    server.registerPrompt('plain', { description: 'Plain.' }, async () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'go' } }] }));
    server.registerPrompt(
        'greet',
        { title: 'Greet', argsSchema: args({ who: completable(z.string(), value => ['Ada', 'Alan'].filter(name => name.startsWith(value))), how: z.string().optional() }) },
        async a => ({ description: 'A greeting', messages: [{ role: 'user', content: { type: 'text', text: `${a.how ?? 'Hello'}, ${a.who}` } }] })
    );
    server.registerPrompt('broken', { description: 'Broken.' }, async () => { throw error(-32001, 'no prompt', { why: 'because' }); });

    const subscribed = [];
    if (generation === 1) {
        const { SubscribeRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
        server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => (subscribed.push(params.uri), {}));
        server.server.setRequestHandler(z.object({ method: z.literal('com.example/add'), params: z.object({ a: z.number(), b: z.number() }) }), async ({ params }) => ({ sum: params.a + params.b }));
    } else {
        server.server.setRequestHandler('resources/subscribe', async ({ params }) => (subscribed.push(params.uri), {}));
        server.server.setRequestHandler('com.example/add', { params: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) => ({ sum: a + b }));
    }
    tool('subscribed', undefined, async () => {
        await server.server.sendResourceUpdated({ uri: subscribed.at(-1) ?? 'memo://none' });
        return text(JSON.stringify(subscribed));
    });
    return server;
}

const SDK = {
    1: { stdio: '@modelcontextprotocol/sdk/server/stdio.js', http: '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js' },
    2: { stdio: '@modelcontextprotocol/server/stdio', http: '@modelcontextprotocol/server' }
};

/** An HTTP server of what takes requests of the web's standards. */
function listen(serve) {
    const http = createServer(async (request, response) => {
        const body = request.method === 'POST' ? await text_(request) : undefined;
        const url = `http://${request.headers.host}${request.url}`;
        const gone = new AbortController();
        response.on('close', () => gone.abort());
        const answer = await serve(new Request(url, { method: request.method, headers: request.headers, signal: gone.signal, ...(body && { body }) }));
        response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
        for await (const piece of answer.body ?? []) response.write(piece);
        response.end();
    });
    http.listen(0, '127.0.0.1', () => console.error(`http://127.0.0.1:${http.address().port}/mcp`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [generation, how, carrier = 'stdio'] = [Number(process.argv[2]), process.argv[3], process.argv[4]];
    const ours = how === 'sdk' ? {} : await import('mcpbolt/sdk');
    const classes = how === 'sdk' ? await import(SDK[generation][carrier === 'stdio' ? 'stdio' : 'http']) : ours;
    const made = carrier === 'entry' ? undefined : await make(generation);
    // The same handlers, on a low-level server.
    const server = process.env.LOW ? made.server : made;
    if (carrier === 'entry') listen(classes.createMcpHandler(() => make(generation)).fetch);
    else if (how === 'accelerated') {
        const accelerated = ours.accelerate(server);
        if (carrier === 'http') createServer(accelerated.handler()).listen(0, '127.0.0.1', function () {
            console.error(`http://127.0.0.1:${this.address().port}/mcp`);
        });
        else await accelerated.run();
        if (process.env.REPORT) console.error(JSON.stringify(accelerated.report()));
    } else if (carrier === 'stdio') await server.connect(new classes.StdioServerTransport());
    else {
        const transport = new classes.WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
        await server.connect(transport);
        listen(request => transport.handleRequest(request));
    }
}
