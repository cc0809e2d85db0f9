// An MCP server as a function from Request to Response, for every framework and host that has those on Node.
import { Server } from 'mcpbolt';

const server = new Server('shop', '1.0.0').tool('order', { description: 'Orders books.' }, async ({ copies }, ctx) => {
    ctx.progress(1, 1);
    return `${copies} ordered`;
});

export default {
    async fetch(request) {
        const { pathname } = new URL(request.url);
        return pathname === '/mcp' ? server.fetch(request) : new Response('not found', { status: 404 });
    }
};
