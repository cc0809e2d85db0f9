// An MCP server as a route handler of Next.js and the like: app/mcp/route.js, on the runtime of Node.
import { Server } from 'mcpbolt';

const server = new Server('shop', '1.0.0').tool('order', { description: 'Orders books.' }, async ({ copies }, ctx) => {
    ctx.progress(1, 1);
    return `${copies} ordered`;
});

// Name the hosts that the site is reached by: hosts: ['shop.example.com'].
const { fetch } = server.endpoint({ hosts: ['localhost'] });

export const runtime = 'nodejs';
export { fetch as GET, fetch as POST, fetch as DELETE };
