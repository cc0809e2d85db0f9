// A server for load generators: known answers, nothing else. With MCP_TOOLS=N in its environment, N more tools.
// An address may follow, as http://127.0.0.1:0/mcp; where it listens stands on stderr then.
//
// MCP_TARGETS=1 adds what attacks aim at: the tools touch and job, templates of resources, subscriptions. With
// MCP_ACTIONS=0 the action dialect is left as it is by default. MCP_KEYS=alice:key-a,bob:key-b adds a verifier that
// knows these clients by their API keys, MCP_JWT=SECRET adds tokens that this secret signs by HS256, MCP_QUOTA=N
// allows each client N calls a day, MCP_OPENING=N gives a connection N seconds to begin to speak,
// MCP_TLS=CERTIFICATE,KEY names the files of an https: address.
import { Server } from 'mcpbolt';

const schema = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const integer = { type: 'integer' };
const string = { type: 'string' };

const sleeps = { active: 0, started: 0, finished: 0, cancelled: 0, touched: 0 };

/** Sleeps; ends early, counted as cancelled, when the signal aborts. */
function sleep(ms, signal) {
    sleeps.active++;
    sleeps.started++;
    return new Promise((resolve, reject) => {
        const end = counter => {
            clearTimeout(timer);
            signal.removeEventListener('abort', stop);
            sleeps.active--;
            sleeps[counter]++;
        };
        const stop = () => {
            end('cancelled');
            reject(signal.reason);
        };
        const timer = setTimeout(() => {
            end('finished');
            resolve('slept');
        }, ms);
        signal.addEventListener('abort', stop);
    });
}

/** As many characters as fit into 16 bytes. */
function start(text) {
    let head = '';
    for (const character of text) {
        if (Buffer.byteLength(head + character) > 16) break;
        head += character;
    }
    return head;
}

const { MCP_TARGETS, MCP_ACTIONS, MCP_KEYS, MCP_JWT, MCP_QUOTA, MCP_OPENING, MCP_TLS } = process.env;
const targets = MCP_TARGETS === '1';
const granted = MCP_KEYS?.split(',').map(pair => pair.split(':').reverse());
const policy = {
    ...(granted && { keys: Object.fromEntries(granted.map(([key, client]) => [key, { client }])) }),
    ...(MCP_JWT && {
        jwt: {
            algorithm: 'HS256',
            key: MCP_JWT,
            issuer: 'https://issuer.example',
            audience: 'https://server.example/mcp'
        }
    }),
    ...(MCP_QUOTA && { quota: { calls: Number(MCP_QUOTA), period: 24 * 60 * 60 * 1000 } })
};

const server = new Server('mcpbolt diagnostic', '1.0.0', {
    subscriptions: targets,
    ...(MCP_ACTIONS !== '0' && { actions: true }),
    ...((MCP_KEYS || MCP_QUOTA) && { policy })
})
    .tool('echo', { description: 'Returns the text.', inputSchema: schema({ text: string }) }, async ({ text }) => text)
    .tool(
        'resize',
        { description: 'Returns n bytes.', inputSchema: schema({ text: string, n: integer }) },
        async ({ text, n }) => {
            const head = start(text);
            return head + 'x'.repeat(Math.max(0, n - Buffer.byteLength(head)));
        }
    )
    .tool('sleep', { description: 'Waits.', inputSchema: schema({ ms: integer }) }, ({ ms }, ctx) => sleep(ms, ctx.signal))
    .tool('progress', { description: 'Reports n times.', inputSchema: schema({ n: { ...integer, maximum: 1e9 } }) }, async ({ n }, ctx) => {
        for (let i = 1; i <= n; i++) ctx.progress(i, n);
        return 'done';
    })
    .tool('stats', { description: 'Counts sleepers.', inputSchema: schema({}) }, async () => JSON.stringify(sleeps));

if (targets) {
    const named = (_, { name }) => `name=${name}`;
    const ms = schema({ ms: integer });
    server
        .tool('touch', { description: 'Counts its calls.', inputSchema: schema({}) }, () => {
            sleeps.touched++;
            // On stdio, this line tells the attacker what ran even if the connection is broken.
            console.error('touched');
            return 'touched';
        })
        .tool('job', { description: 'A task.', inputSchema: ms, taskSupport: 'optional' }, async ({ ms }, ctx) => {
            ctx.beginTask();
            await new Promise(resolve => setTimeout(resolve, ms));
            return 'done';
        })
        .resource('memo:note', { description: 'A note.' }, () => 'a note')
        .resourceTemplate('file:///docs/{name}', { description: 'By name.' }, named)
        .resourceTemplate('notes://{name}/text', { description: 'By name.' }, named);
}

for (let i = 0; i < Number(process.env.MCP_TOOLS ?? 0); i++) {
    const inputSchema = schema(
        {
            path: { ...string, description: 'Where to look' },
            limit: { ...integer, description: 'How many at most' },
            verbose: { type: 'boolean', description: 'Say more' }
        },
        ['path']
    );
    const description = `Dummy tool number ${i}, here to make the list long.`;
    server.tool(`tool_${String(i).padStart(3, '0')}`, { description, inputSchema }, async ({ path }) => path);
}

const [address = 'stdio:'] = process.argv.slice(2);
if (address === 'stdio:') {
    await server.run();
} else {
    const [certificate, key] = MCP_TLS?.split(',') ?? [];
    const serving = await server.serve(address, {
        ...(key && { tls: { certificate, key } }),
        ...(MCP_OPENING && { headerTimeout: Number(MCP_OPENING) * 1000 })
    });
    console.error(`diagnostic listens on ${serving.address}`);
    await serving.ended;
}
