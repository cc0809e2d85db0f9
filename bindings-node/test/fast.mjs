// A server of fastmcp with a bit of everything: `node fast.mjs own|accelerated`, on stdin and stdout; `make()` for others.
import { fileURLToPath } from 'node:url';
import { FastMCP, UserError } from 'fastmcp';
import * as z from 'zod';

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

export function make(options) {
    const server = new FastMCP({ name: 'fast', version: '1.2.3', instructions: 'Try it.', ping: { enabled: false }, ...options });
    const tool = (name, shape, execute, more) => server.addTool({ name, description: `Does ${name}.`, ...(shape && { parameters: z.object(shape) }), execute, ...more });
    tool('echo', { text: z.string().min(1) }, async ({ text }) => text);
    tool('slow', { ms: z.number() }, async ({ ms }) => (await sleep(ms), 'slept'));
    tool('none', undefined, async () => undefined);
    tool('block', undefined, async () => ({ type: 'image', data: 'AQID', mimeType: 'image/png' }));
    tool('many', undefined, async () => ({ content: [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }] }));
    tool('wrong', undefined, async () => ({ content: [{ type: 'no' }] }));
    tool('sum', { a: z.number(), b: z.number() }, async ({ a, b }) => ({ sum: a + b }), { outputSchema: z.object({ sum: z.number() }) });
    tool('throws', undefined, async () => { throw new Error('it broke'); });
    tool('refuses', undefined, async () => { throw new UserError('not today', { until: 'tomorrow' }); });
    tool('late', undefined, async () => sleep(5000), { timeoutMs: 20 });
    tool('progress', { n: z.number() }, async ({ n }, { reportProgress }) => {
        for (let progress = 1; progress <= n; progress++) await reportProgress({ progress, total: n });
        return 'done';
    });
    tool('streams', undefined, async (_, { streamContent }) => void (await streamContent({ type: 'text', text: 'a piece' })));
    tool('log', undefined, async (_, { log }) => (log.warn('careful', { a: 1 }), 'logged'));
    tool('elicit', undefined, async (_, { elicit }) => JSON.stringify(await elicit({ message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } })));
    tool('add', undefined, async () => (server.addTool({ name: 'added', execute: async () => 'added' }), 'added'));
    server.addResource({ uri: 'memo://a', name: 'a', mimeType: 'text/plain', load: async () => ({ text: 'a' }) });
    server.addResource({ uri: 'memo://blob', name: 'blob', load: async () => ({ blob: 'AQID' }) });
    server.addResourceTemplate({ uriTemplate: 'user://{id}', name: 'user', arguments: [{ name: 'id', complete: async value => ({ values: [`${value}1`] }) }], load: async ({ id }) => ({ text: id }) });
    server.addPrompt({ name: 'greet', description: 'Greets.', arguments: [{ name: 'who', required: true, enum: ['Ada', 'Alan'] }], load: async ({ who }) => `Hello, ${who}` });
    return server;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    if (process.argv[2] === 'own') await make().start({ transportType: 'stdio' });
    else await (await import('mcpbolt/sdk')).accelerate(make()).run();
}
