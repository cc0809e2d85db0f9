// What users write must compile, and what is wrong must not. Nothing here runs.
import { Client, McpError, Server, ToolError, image, prompt, resource, text } from 'mcpbolt';
import type { CallToolResult, Context, ErrorCode, Progress, RunReport, Tool } from 'mcpbolt';
import * as z from 'zod';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};

const server = new Server('typed', '1.0', {
    instructions: 'Ask for numbers.',
    lifespan: { start: async () => ({ rows: 3 }), stop: state => holds<Equal<typeof state, { rows: number }>>() }
});

server
    .tool('typed', { inputSchema: z.object({ a: z.number(), b: z.string().optional() }) }, async (args, ctx) => {
        holds<Equal<typeof args, { a: number; b?: string | undefined }>>();
        holds<Equal<typeof ctx, Context<{ rows: number }>>>();
        ctx.progress(1, 2, 'half');
        ctx.log('info', { rows: ctx.state.rows });
        return ctx.signal.aborted ? 'late' : args.a;
    })
    .tool('raw', { inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }, ({ a }) => a)
    .tool<{ path: string }>('said', { inputSchema: { type: 'object' } }, ({ path }) => path.length)
    .tool('blocks', {}, () => [text('a'), image(new Uint8Array(), 'image/png'), resource('x:y', 'z')])
    .tool('result', {}, (): CallToolResult => ({ content: [{ type: 'text', text: 'a' }], isError: true }))
    .tool('refuses', {}, () => {
        throw new ToolError('no');
    })
    .resource('memo://a', { mimeType: 'text/plain' }, async uri => uri)
    .resourceTemplate('user://{id}', {}, (uri, { id }) => ({ uri, text: id ?? '' }))
    .prompt('greet', { arguments: [{ name: 'who', required: true }] }, ({ who }) => [prompt.user(`Greet ${who}`)]);

// @ts-expect-error: a handler is missing
server.tool('none', {});
// @ts-expect-error: such an argument is not in the schema
server.tool('wrong', { inputSchema: z.object({ a: z.number() }) }, ({ b }) => b);
// @ts-expect-error: no such level
server.tool('level', {}, (_, ctx) => ctx.log('loud', 1));
// @ts-expect-error: a resource is text, bytes or contents
server.resource('memo://b', {}, () => 7);

holds<Equal<Awaited<ReturnType<typeof server.run>>, RunReport>>();

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
    await near.close();
    // @ts-expect-error: clients are spawned or connected
    new Client({});
    // @ts-expect-error: arguments are an object
    await client.callTool('typed', 7);
    try {
        await client.ping();
    } catch (error) {
        if (error instanceof McpError) holds<Equal<typeof error.code, ErrorCode>>();
    }
}
void use;
