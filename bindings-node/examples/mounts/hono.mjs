// An MCP server at /mcp of a Hono application, on Node: PORT=3000 node hono.mjs
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Server } from 'mcpbolt';

const server = new Server('shop', '1.0.0').tool('order', { description: 'Orders books.' }, async ({ copies }, ctx) => {
    ctx.progress(1, 1);
    return `${copies} ordered`;
});

const app = new Hono();
app.get('/health', c => c.text('ok'));
app.all('/mcp', c => server.fetch(c.req.raw));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 0), hostname: '127.0.0.1' }, ({ port }) => {
    console.log(`http://127.0.0.1:${port}/mcp`);
});
