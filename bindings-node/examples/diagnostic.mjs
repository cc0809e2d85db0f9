// A server for load generators: known answers, nothing else. With MCP_TOOLS=N in its environment, N more tools.
import { Server } from 'mcpbolt';

const schema = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const integer = { type: 'integer' };
const string = { type: 'string' };

const sleeps = { active: 0, started: 0, finished: 0, cancelled: 0 };

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

const server = new Server('mcpbolt diagnostic', '1.0.0')
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
    .tool('progress', { description: 'Reports n times.', inputSchema: schema({ n: integer }) }, async ({ n }, ctx) => {
        for (let i = 1; i <= n; i++) ctx.progress(i, n);
        return 'done';
    })
    .tool('stats', { description: 'Counts sleepers.', inputSchema: schema({}) }, async () => JSON.stringify(sleeps));

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

await server.run(process.argv[2] ?? 'stdio:');
