// What users write must compile, and what is wrong must not. Nothing here runs.
import { createServer } from 'node:http';
import { createServer as createServer2 } from 'node:http2';
import { ActionError, Approval, Breaker, CallReports, Client, External, Front, Masking, McpError, Pins, Pool, Prefix, ProtocolError, Results, Retry, Server, ToolError, image, oauth, prompt, resource, text, toolPin } from 'mcpbolt';
import type {
    ActionAnswer,
    ApprovalCall,
    Call,
    CallToolResult,
    CarrierFault,
    ChainDirection,
    ChainMessage,
    ChainMiddleware,
    Change,
    ClientInfo,
    Completions,
    ConnectOptions,
    Context,
    Counts,
    Credentials,
    Endpoint,
    EndpointOptions,
    ErrorCode,
    FormResult,
    Handler,
    Logger,
    LogMessage,
    Middleware,
    PageResult,
    PinDrift,
    Progress,
    Resource,
    Root,
    Rule,
    RunReport,
    SamplingResult,
    ServeOptions,
    Serving,
    Skill,
    TaskInfo,
    Tool,
    ToolTask,
    UpstreamCall
} from 'mcpbolt';
import * as z from 'zod';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};

const server = new Server('typed', '1.0', {
    instructions: 'Ask for numbers.',
    listChanges: true,
    subscriptions: true,
    pageSize: 50,
    cacheLists: 1000, cacheScope: 'private',
    taskLimits: { tasks: 10, perOwner: 5, ttl: 60_000 },
    policy: {
        keys: { k: { client: 'alice', scopes: ['read'] }, l: { client: 'bob' } },
        jwt: { keys: { k: { algorithm: 'EdDSA', key: 'PEM' } }, issuer: ['me', 'you'], anyAudience: true },
        auditQueue: { events: 100, whenFull: 'refuse' },
        scopes: { typed: ['read'] }
    },
    approval: { typed: (tool, args, ctx) => ctx.state.rows > args.a && tool !== '' },
    sanitise: { '*': async (_tool, args, ctx) => (holds<Equal<typeof ctx, Context<{ rows: number }>>>(), { ...args }) },
    onInitialized: client => holds<Equal<typeof client, ClientInfo>>(),
    onClosed: reason => holds<Equal<typeof reason, McpError>>(),
    lifespan: { start: async () => ({ rows: 3 }), stop: state => holds<Equal<typeof state, { rows: number }>>() }
});

server.use(
    async (call, next) => {
        holds<Equal<typeof call, Call<{ rows: number }>>>();
        holds<Equal<typeof call.context, Context<{ rows: number }>>>();
        holds<Equal<typeof call.name, string | undefined>>();
        if (call.method === 'tools/call') {
            holds<Equal<typeof call.name, string>>();
            call.arguments = { ...call.arguments, a: 1 };
            const reply = await next(call);
            holds<Equal<typeof reply, CallToolResult>>();
            return reply;
        }
        if (call.method === 'resources/list') {
            holds<Equal<typeof call.name, undefined>>();
            const reply = await next(call);
            holds<Equal<typeof reply, Resource[]>>();
            return reply.slice(1);
        }
        // @ts-expect-error: arguments are replaced as a whole
        call.arguments.a = 1;
        // @ts-expect-error: the method is as it came
        call.method = 'tools/call';
        return next();
    },
    (call, next) => (call.principal === undefined ? 'who is there?' : next())
);
const watch: Middleware = (call, next) => next(call);
server.use(watch).mount('other', new Server('other', '1').use(watch));
// @ts-expect-error: a middleware is a function
server.use({});
// @ts-expect-error: a server has no other entries than those of a server
server.mount('other', {});

const logger: Logger = console;
new Server('guarded', '1', {
    logger,
    policy: {
        verifier: async (credentials, { signal }) => {
            holds<Equal<typeof credentials, Credentials>>();
            holds<Equal<typeof signal, AbortSignal>>();
            if (credentials.kind !== 'bearer') return undefined;
            return credentials.secret === 't' ? { name: 'alice', scopes: ['read'] } : 'bob';
        },
        verifierTimeout: 1000
    },
    onError: (error, what, call) => holds<Equal<typeof call, Call | undefined>>()
});
// @ts-expect-error: a verdict is a principal
new Server('guarded', '1', { policy: { verifier: () => 7 } });
new Server('logged', '1', { logger: ({ level, message, error }) => console.log(level, message, error) });
void (async () => (await Client.connect(server, { logger: console, onError: (error, what) => console.log(error, what.length) })).unref().ref());
// @ts-expect-error: a logger has `error`
new Server('logged', '1', { logger: { info: () => {} } });

server
    .tool('typed', { inputSchema: z.object({ a: z.number(), b: z.string().optional() }) }, async (args, ctx) => {
        holds<Equal<typeof args, { a: number; b?: string | undefined }>>();
        holds<Equal<typeof ctx, Context<{ rows: number }>>>();
        ctx.progress(1, 2, 'half');
        ctx.log('info', { rows: ctx.state.rows });
        holds<Equal<typeof ctx.principal, string | undefined>>();
        if (!ctx.hasScope('read')) return 0;
        return ctx.signal.aborted ? 'late' : args.a;
    })
    .tool('raw', { inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }, ({ a }) => a)
    .tool<{ path: string }>('said', { inputSchema: { type: 'object' } }, ({ path }) => path.length)
    .tool('sum', { outputSchema: z.object({ sum: z.number() }) }, () => ({ sum: 3 }))
    .tool('blocks', {}, () => [text('a'), image(new Uint8Array(), 'image/png'), resource('x:y', 'z')])
    .tool('result', {}, (): CallToolResult => ({ content: [{ type: 'text', text: 'a' }], isError: true }))
    .tool('books', { atomic: true, kept: new Results(1000, { scope: 'public' }) }, (_, _ctx, steps) => steps.taken(async () => {}))
    .tool('refuses', {}, () => {
        throw new ToolError('no');
    })
    .tool('gone', {}, () => {
        throw new ProtocolError('not found', 'no such row');
    })
    .resource('memo://a', { mimeType: 'text/plain' }, async uri => uri)
    .resourceTemplate('user://{id}', {}, (uri, { id }) => ({ uri, text: id ?? '' }))
    .prompt('greet', { arguments: [{ name: 'who', required: true }] }, ({ who }) => [prompt.user(`Greet ${who}`)]);

server
    .tool('asks', {}, async (_, ctx) => {
        const form = await ctx.elicit('You?', z.object({ age: z.number().default(7), name: z.string() }));
        holds<Equal<typeof form, FormResult<{ age: number; name: string }>>>();
        if (form.action === 'accept') holds<Equal<typeof form.content, { age: number; name: string }>>();
        const page = await ctx.elicitUrl('Log in', new URL('https://example.com'));
        holds<Equal<typeof page, PageResult>>();
        const said = await ctx.sample({ messages: 'How much?', maxTokens: 5, temperature: 0.5 });
        holds<Equal<typeof said, SamplingResult>>();
        holds<Equal<Awaited<ReturnType<typeof ctx.roots>>, Root[]>>();
        // @ts-expect-error: how much may it say?
        await ctx.sample({ messages: 'How much?' });
        return form.content?.name;
    })
    .resourceTemplate('file://{path}', { complete: { path: async value => [value] } }, uri => uri)
    .prompt('complete', { arguments: [{ name: 'a', complete: (value, args, ctx) => [value, args.b ?? '', String(ctx.state.rows)] }] }, () => '');
holds<Equal<ReturnType<typeof server.removeTool>, boolean>>();

server
    .tool('renders', { taskSupport: 'optional' }, async (_, ctx) => {
        holds<Equal<ReturnType<typeof ctx.beginTask>, boolean>>();
        holds<Equal<typeof ctx.isTask, boolean>>();
        ctx.taskMessage('half');
        ctx.require('elicitation', 'url');
        holds<Equal<typeof ctx.meta, Readonly<Record<string, unknown>>>>();
        throw new ProtocolError(-31000, 'no quota', { resetsIn: 60 });
    })
    .skills('skills')
    .skills(new URL('file:///skills'));
// @ts-expect-error: no such algorithm
new Server('unsigned', '1.0', { policy: { jwt: { algorithm: 'none', key: '' } } });
// @ts-expect-error: no such support of tasks
server.tool('sometimes', { taskSupport: 'sometimes' }, () => '');

// @ts-expect-error: a handler is missing
server.tool('none', {});
// @ts-expect-error: such an argument is not in the schema
server.tool('wrong', { inputSchema: z.object({ a: z.number() }) }, ({ b }) => b);
// @ts-expect-error: no such kind of error
new ProtocolError('lost', '');
// @ts-expect-error: no such level
server.tool('level', {}, (_, ctx) => ctx.log('loud', 1));
// @ts-expect-error: a resource is text, bytes or contents
server.resource('memo://b', {}, () => 7);

holds<Equal<Awaited<ReturnType<typeof server.run>>, RunReport>>();

async function serve() {
    const options: ServeOptions = {
        hosts: ['example.com'],
        origins: ['https://example.com'],
        cors: true,
        maxMessageBytes: 1 << 20,
        maxDepth: 64,
        maxIncoming: 100, keepaliveInterval: 10_000,
        idleTimeout: 60_000,
        tls: { certificate: 'certificate.pem', key: 'key.pem', clients: 'clients.pem' },
        threads: 2,
        grace: 1000,
        signal: AbortSignal.timeout(5),
        signals: false,
        trace: (direction, message) => holds<Equal<typeof direction | typeof message, string>>()
    };
    await using serving = await server.serve(new URL('https://example.com/mcp'), options);
    holds<Equal<typeof serving, Serving>>();
    holds<Equal<typeof serving.address, string>>();
    holds<Equal<typeof serving.counts, Counts>>();
    holds<Equal<Awaited<ReturnType<typeof serving.close>>, RunReport>>();
    const report = await server.run('http://127.0.0.1:8000/mcp', options);
    holds<Equal<typeof report, RunReport>>();
    // @ts-expect-error: TLS takes both files
    await server.serve('https://127.0.0.1/mcp', { tls: { key: 'key.pem' } });
    // @ts-expect-error: on stdin and stdout nobody has an origin
    await server.run({ origins: ['https://example.com'] });
}
void serve;

function mount() {
    const options: EndpointOptions = { hosts: ['*'], maxSessions: 10, maxSessionsPerPeer: 5, trustedProxies: ['10.0.0.0/8'], sessionTtl: 60_000, sse: false, commentInterval: 5000 };
    const handler: Handler = server.handler(options);
    createServer(handler).listen(0);
    createServer2(handler).listen(0);
    const endpoint = server.endpoint(options);
    holds<Equal<typeof endpoint, Endpoint>>();
    const web: (request: Request) => Promise<Response> = endpoint.fetch;
    holds<Equal<ReturnType<typeof server.fetch>, Promise<Response>>>();
    endpoint.close();
    // @ts-expect-error: threads are those of an address
    server.handler({ threads: 2 });
    return web;
}
void mount;

async function reach() {
    const options: ConnectOptions = {
        headers: { 'x-tenant': 'a' },
        auth: { type: 'bearer', token: 'secret' },
        protocols: ['mcp'],
        connectTimeout: 1000,
        ca: ['-----BEGIN CERTIFICATE-----'],
        timeout: 1000
    };
    const client = await Client.connect('https://example.com/mcp', options);
    await Client.connect(new URL('wss://example.com/mcp'), { auth: { type: 'basic', user: 'a', password: 'b' } });
    await Client.connect('http://localhost/mcp', { auth: { type: 'apiKey', key: 'k', header: 'x-key' } });
    await Client.connect('https://example.com/mcp', { auth: oauth({ store: 'user', onAuthorize: ({ url }) => console.log(url) }) });
    oauth({ grant: 'workload', clientId: 'pod', assertion: async ({ issuer }) => issuer, store: { load: () => null, save() {}, remove() {} } });
    // @ts-expect-error: a store without documents
    oauth({ store: { load: () => null } });
    // @ts-expect-error: no grant of a client
    oauth({ grant: 'password' });
    // @ts-expect-error: options are no login
    await Client.connect('https://example.com/mcp', { auth: { clientName: 'x' } });
    // @ts-expect-error: a password is missing
    await Client.connect('http://localhost/mcp', { auth: { type: 'basic', user: 'a' } });
    // @ts-expect-error: a server in this process is reached by no carrier
    await Client.connect(server, { headers: {} });
    await client.close().catch(error => {
        if (!(error instanceof McpError)) throw error;
        holds<Equal<typeof error.fault, CarrierFault | undefined>>();
        holds<Equal<typeof error.status, number | undefined>>();
        holds<Equal<typeof error.authenticate, string | undefined>>();
    });
}
void reach;

async function use() {
    await using client = await Client.spawn('node', ['server.mjs'], { stderr: line => holds<Equal<typeof line, string>>() });
    holds<Equal<Awaited<ReturnType<typeof client.listTools>>, Tool[]>>();
    const result = await client.callTool(
        'typed',
        { a: 1 },
        { signal: AbortSignal.timeout(5), timeout: 100, onProgress: p => holds<Equal<typeof p, Progress>>() }
    );
    holds<Equal<typeof result, CallToolResult>>();
    const near = await Client.connect(server, { opening: 'stateless' });
    near.on('toolsChanged', () => {})
        .once('resourceUpdated', uri => holds<Equal<typeof uri, string>>())
        .on('log', message => holds<Equal<typeof message, LogMessage>>());
    // @ts-expect-error: there is no such event
    near.on('toolsRenamed', () => {});
    for await (const change of await near.listen({ tools: true, uris: ['memo://a'] })) {
        holds<Equal<typeof change, Change>>();
        if (change.type === 'resourceUpdated') holds<Equal<typeof change.uri, string>>();
    }
    for await (const page of near.toolPages()) holds<Equal<typeof page, Tool[]>>();
    holds<Equal<Awaited<ReturnType<typeof near.complete>>, Completions>>();
    await near.complete({ prompt: 'complete' }, 'a', '');
    near.setRoots(['file:///a', { uri: 'file:///b', name: 'B' }]);
    await near.close();
    const answers = await Client.connect(server, {
        onSampling: ({ messages, maxTokens }, { signal }) => ({ model: 'm', content: `${messages.length} ${maxTokens} ${signal.aborted}` }),
        onElicitation: async ({ requestedSchema }) => ({ action: 'accept', content: { a: Object.keys(requestedSchema).length } }),
        onElicitationUrl: ({ url }) => ({ action: url ? 'accept' : 'decline' }),
        roots: ['file:///a'],
        on: { notification: (method, params) => holds<Equal<typeof params, unknown>>() }
    });
    await answers.close();
    const doer = await Client.connect(server, { tasks: true });
    const task = await doer.startTool('renders', {}, { ttl: 60_000, signal: AbortSignal.timeout(5) });
    holds<Equal<typeof task, ToolTask>>();
    holds<Equal<typeof task.id, string | undefined>>();
    for await (const state of task) holds<Equal<typeof state, TaskInfo>>();
    holds<Equal<Awaited<ReturnType<typeof task.result>>, CallToolResult>>();
    holds<Equal<Awaited<ReturnType<typeof task.status>>, TaskInfo>>();
    await doer.task('1').cancel();
    holds<Equal<Awaited<ReturnType<typeof doer.listTasks>>, TaskInfo[]>>();
    const [skill] = await doer.skills.list();
    holds<Equal<typeof skill, Skill>>();
    holds<Equal<Awaited<ReturnType<typeof doer.skills.load>>, string>>();
    // @ts-expect-error: which file?
    await doer.skills.read(skill);
    const retry = { tries: 2, base: 500 };
    const called = await client.action<{ sum: number }>('own', { a: 1 }, { retry, onPartial: () => {}, fallback: ['b', {}] });
    holds<Equal<typeof called, ActionAnswer<{ sum: number }>>>();
    holds<Equal<Awaited<ReturnType<typeof client.actionSchemas>>, Record<string, any>>>();
    await client.actionBatch([['own', { a: 1 }]], { continueOnError: true });
    // @ts-expect-error: an error has a type
    new ActionError();
    // @ts-expect-error: a task is started
    new ToolTask();
    // @ts-expect-error: which model?
    await Client.connect(server, { onSampling: () => ({ content: '42' }) });
    // @ts-expect-error: what is accepted has content
    await Client.connect(server, { onElicitation: () => ({ action: 'accept' }) });
    // @ts-expect-error: clients are spawned or connected
    new Client({});
    // @ts-expect-error: arguments are an object
    await client.callTool('typed', 7);
    const loud: ChainMiddleware = {
        async request(message, next) {
            holds<Equal<typeof next.direction, ChainDirection>>();
            const response = await next(message);
            holds<Equal<typeof response, ChainMessage>>();
            return response;
        },
        notification: (message, next) => next(message)
    };
    const front = new Front(new External(['npx', 'server'], { cwd: '/', timeout: 1000 }), { middleware: [loud, new Prefix('a')], policy: { keys: {} } });
    holds<Equal<Awaited<ReturnType<typeof front.serve>>, Serving>>();
    await (await Client.connect(new Front(new External(front, { name: 'b' })))).close();
    // @ts-expect-error: a response is a message
    new Front(new External(server), { middleware: [{ request: async () => 1 }] });
    // @ts-expect-error: a verifier gives a principal
    new Front(new External(server), { policy: { verifier: () => 1 } });
    const approve = ({ tool, principal, signal }: ApprovalCall) => (signal.aborted ? `${tool} is too late` : principal !== undefined);
    const breaker = new Breaker({ failures: 3, window: 1000, rest: 1000 });
    holds<Equal<typeof breaker.isOpen, boolean>>();
    const rules: Rule[] = [
        new CallReports(call => holds<Equal<typeof call, UpstreamCall>>()),
        new Approval(['delete*'], { approve, timeout: Infinity }),
        new Masking(['a+'], { texts: 'both', secrets: ['b'], credentials: true, maxBytes: 1000 }),
        breaker,
        new Retry(2, { trustAnnotations: true }),
        new Pins({ add: toolPin({ name: 'add' }) }, { onDrift: drift => holds<Equal<typeof drift, PinDrift>>() })
    ];
    const ruled = new Front(new External(server, { rules, isolation: 'principal', maxConnections: 3 }), { middleware: [loud, ...rules], hookTimeout: 1000 });
    holds<Equal<ReturnType<typeof ruled.endpoint>, Endpoint>>();
    holds<Equal<ReturnType<typeof ruled.handler>, Handler>>();
    holds<Equal<ReturnType<typeof ruled.fetch>, Promise<Response>>>();
    holds<Equal<ReturnType<typeof server.mount>, typeof server>>();
    server.mount('far', new External('https://example.com/mcp')).mount('own', new Server('own', '1'));
    // @ts-expect-error: a front is mounted as an External
    server.mount('far', ruled);
    // @ts-expect-error: rules of a server are the engine's
    new External(server, { rules: [loud] });
    // @ts-expect-error: a prefix is an option
    new External(server, { rules: [new Prefix('a')] });
    const pool = new Pool({ maxConnections: 2 });
    holds<Equal<Awaited<ReturnType<typeof pool.acquire>>, Client>>();
    const count = await pool.use('https://example.com/mcp', { revision: '2025-06-18' }, async client => (await client.listTools()).length);
    holds<Equal<typeof count, number>>();
    holds<Equal<typeof pool.counts.idle, number>>();
    try {
        await client.ping();
    } catch (error) {
        if (error instanceof McpError) holds<Equal<typeof error.code, ErrorCode>>();
    }
}
void use;
