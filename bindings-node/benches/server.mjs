// One server of those that `beside.mjs` compares: `node server.mjs KIND stdio|http`, where the kind is mcpbolt, v1 (the
// official SDK) or accelerated (the same server on the engine). On HTTP it says its address on stderr.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const [kind, carrier] = process.argv.slice(2);
const said = address => console.error(address);

async function mcpbolt() {
    const { Server } = await import('mcpbolt');
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    return new Server('beside', '1').tool('echo', { inputSchema }, ({ text }) => text);
}

async function official() {
    const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
    const z = await import('zod');
    const server = new McpServer({ name: 'beside', version: '1' });
    server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({ content: [{ type: 'text', text }] }));
    return server;
}

async function serveOfficial(server) {
    if (carrier === 'stdio') {
        const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
        return server.connect(new StdioServerTransport());
    }
    const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true });
    await server.connect(transport);
    createServer((request, response) => transport.handleRequest(request, response)).listen(0, '127.0.0.1', function () {
        said(`http://127.0.0.1:${this.address().port}/mcp`);
    });
}

const server = await (kind === 'mcpbolt' ? mcpbolt() : official());
if (kind === 'v1') await serveOfficial(server);
else {
    const ours = kind === 'mcpbolt' ? server : (await import('mcpbolt/sdk')).accelerate(server);
    if (carrier === 'stdio') await ours.run();
    else said((await ours.serve('http://127.0.0.1:0/mcp')).address);
}
