// The diagnostic tools on @modelcontextprotocol/sdk: McpServer, or with PEER_API=low Server.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod/v4';
import { answer, reporter, result, TOOL_LIST, TOOLS, zodShape } from './tools.mjs';

const info = { name: 'peer', version: '1.0.0' };

async function call(name, args, extra) {
    const report = reporter(extra._meta?.progressToken, message => extra.sendNotification(message));
    return result(await answer(name, args, extra.signal, report));
}

function lowLevel() {
    const server = new Server(info, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOL_LIST }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => call(params.name, params.arguments ?? {}, extra));
    return server;
}

function convenient() {
    const server = new McpServer(info);
    for (const [name, args] of Object.entries(TOOLS)) {
        server.registerTool(name, { inputSchema: zodShape(z, args) }, (given, extra) => call(name, given, extra));
    }
    return server;
}

const server = process.env.PEER_API === 'low' ? lowLevel() : convenient();
await server.connect(new StdioServerTransport());
