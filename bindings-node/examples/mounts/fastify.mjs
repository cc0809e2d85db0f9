// An MCP server at /mcp of a Fastify application: PORT=3000 node fastify.mjs
import fastify from 'fastify';
import { Server } from 'mcpbolt';

const server = new Server('shop', '1.0.0').tool('order', { description: 'Orders books.' }, async ({ copies }, ctx) => {
    ctx.progress(1, 1);
    return `${copies} ordered`;
});
const handler = server.handler();

const app = fastify();
app.get('/health', async () => 'ok');
app.register(async scope => {
    // The engine reads the body itself.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _body, done) => done(null));
    scope.all('/mcp', (request, reply) => {
        reply.hijack();
        handler(request.raw, reply.raw);
    });
});

await app.listen({ port: Number(process.env.PORT ?? 0), host: '127.0.0.1' });
console.log(`http://127.0.0.1:${app.server.address().port}/mcp`);
