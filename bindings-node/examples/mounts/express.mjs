// An MCP server at /mcp of an Express application: PORT=3000 node express.mjs
import express from 'express';
import { Server } from 'mcpbolt';

const server = new Server('shop', '1.0.0').tool('order', { description: 'Orders books.' }, async ({ copies }, ctx) => {
    ctx.progress(1, 1);
    return `${copies} ordered`;
});

const app = express();
app.use(express.json()); // a body that is already read is no obstacle
app.get('/health', (_, response) => void response.send('ok'));
app.all('/mcp', server.handler());

const listening = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${listening.address().port}/mcp`);
});
