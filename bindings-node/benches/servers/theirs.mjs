// `echo` as others have it, by itself or on this package: `node theirs.mjs KIND HOW ADDRESS`.
//
// The kinds are `v1` and `v2` of the official SDK, and `fastmcp`; how is `own`, `accelerated`, or for v2 `mounted`, which
// is our handler on `node:http`. By itself each is as fast as it comes: over HTTP with answers in JSON, of v1 and fastmcp
// in sessions, of v2 by its handler for 2026-07-28.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { accelerate, createMcpHandler } from 'mcpbolt/sdk';
import * as z from 'zod';

const [kind, how, address] = process.argv.slice(2);
const description = 'Returns the text.';
const text = z.string();
const echo = async ({ text }) => ({ content: [{ type: 'text', text }] });

const MAKE = {
    async v1() {
        const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
        return () => {
            const server = new McpServer({ name: 'theirs', version: '1' });
            server.registerTool('echo', { description, inputSchema: { text } }, echo);
            return server;
        };
    },
    async v2() {
        const { McpServer } = await import('@modelcontextprotocol/server');
        return () => {
            const server = new McpServer({ name: 'theirs', version: '1' });
            server.registerTool('echo', { description, inputSchema: z.object({ text }) }, echo);
            return server;
        };
    },
    async fastmcp() {
        const { FastMCP } = await import('fastmcp');
        return () => {
            const server = new FastMCP({ name: 'theirs', version: '1.0.0' });
            server.addTool({ name: 'echo', description, parameters: z.object({ text }), execute: async ({ text }) => text });
            return server;
        };
    }
};

const ON_STDIO = {
    async v1(make) {
        const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
        await make().connect(new StdioServerTransport());
    },
    async v2(make) {
        const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
        serveStdio(make);
    },
    fastmcp: make => make().start({ transportType: 'stdio' })
};

const ON_HTTP = {
    async v1(make, port) {
        const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true });
        await make().connect(transport);
        createServer((request, response) => transport.handleRequest(request, response)).listen(port, '127.0.0.1');
    },
    async v2(make, port) {
        const { createMcpHandler } = await import('@modelcontextprotocol/server');
        const { toNodeHandler } = await import('@modelcontextprotocol/node');
        createServer(toNodeHandler(createMcpHandler(make, { responseMode: 'json' }))).listen(port, '127.0.0.1');
    },
    fastmcp: (make, port) =>
        make().start({ transportType: 'httpStream', httpStream: { port, host: '127.0.0.1', endpoint: '/mcp', enableJsonResponse: true } })
};

const make = await MAKE[kind]();
const port = address.startsWith('http:') ? Number(new URL(address).port) : undefined;
if (how === 'own') await (port === undefined ? ON_STDIO[kind](make) : ON_HTTP[kind](make, port));
else if (how === 'mounted') createServer(createMcpHandler(make).node).listen(port, '127.0.0.1');
else if (kind === 'v2' && port !== undefined) await createMcpHandler(make).serve(address);
else await accelerate(make()).run(address);
