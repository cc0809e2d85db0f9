// The diagnostic tools on @modelcontextprotocol/server: McpServer, or with PEER_API=low Server.
import { McpServer, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';
import { answer, reporter, result, TOOL_LIST, TOOLS, zodShape } from './tools.mjs';

const info = { name: 'peer', version: '1.0.0' };

async function call(name, args, { mcpReq }) {
    const report = reporter(mcpReq._meta?.progressToken, message => mcpReq.notify(message));
    return result(await answer(name, args, mcpReq.signal, report));
}

function lowLevel() {
    const server = new Server(info, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: TOOL_LIST }));
    server.setRequestHandler('tools/call', ({ params }, context) => call(params.name, params.arguments ?? {}, context));
    return server;
}

function convenient() {
    const server = new McpServer(info);
    for (const [name, args] of Object.entries(TOOLS)) {
        const inputSchema = z.object(zodShape(z, args));
        server.registerTool(name, { inputSchema }, (given, context) => call(name, given, context));
    }
    return server;
}

serveStdio(process.env.PEER_API === 'low' ? lowLevel : convenient);
