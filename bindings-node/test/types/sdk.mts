// Servers of both generations of the official SDK are what `accelerate` takes. Nothing here runs.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { McpServer as First } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer as Second } from '@modelcontextprotocol/server';
import type { RunReport, Serving } from 'mcpbolt';
import {
    accelerate,
    createMcpHandler,
    StdioClientTransport,
    StdioServerTransport,
    StreamableHTTPClientTransport,
    StreamableHTTPServerTransport,
    WebStandardStreamableHTTPServerTransport,
    type Accelerated,
    type AccelerationReport,
    type McpHttpHandler
} from 'mcpbolt/sdk';

// The first SDK takes a browser's types for granted.
declare global {
    type HeadersInit = ConstructorParameters<typeof Headers>[0];
}

const info = { name: 'a', version: '1' };
const first: Accelerated = accelerate(new First(info));
const second: Accelerated = accelerate(new Second(info));
accelerate(new First(info).server);
const ran: RunReport = await first.run({ grace: 10 });
const serving: Serving = await second.serve('http://127.0.0.1:0/mcp', { hosts: ['localhost'] });
const report: AccelerationReport = second.report();
createServer(first.handler({ cors: true }));
const response: Response = await first.fetch(new Request('http://localhost/mcp'));
console.log(ran.reason, serving.address, report.sdk[0]?.why, response.status);

// Each carrier is one for both SDKs.
await new First(info).connect(new StdioServerTransport());
await new Second(info).connect(new StdioServerTransport());
const child = new StdioClientTransport({ command: 'node', args: ['server.mjs'], env: { A: 'b' }, stderr: 'pipe' });
await new FirstClient(info).connect(child);
await new SecondClient(info).connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { requestInit: { headers: { a: 'b' } } }));
await new FirstClient(info).connect(new StreamableHTTPClientTransport('http://localhost/mcp', { sessionId: 'a' }));
const session = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: id => console.log(id.length) });
await new First(info).connect(session);
createServer((request, response) => void session.handleRequest(request, response));
const web = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
await new Second(info).connect(web);
const answer: Response = await web.handleRequest(new Request('http://localhost/mcp'), { authInfo: {}, parsedBody: {} });
const handler: McpHttpHandler = createMcpHandler(({ era }) => (era === 'modern' ? new Second(info) : new Second(info)), { legacy: 'reject', responseMode: 'json' });
createServer((request, response) => void handler.node(request, response));
handler.notify.resourceUpdated('memo://a');
console.log(child.pid, answer.status, (await handler.fetch(new Request('http://localhost/mcp'))).ok);

// @ts-expect-error: OAuth is for the SDK's own class
new StreamableHTTPClientTransport('http://localhost/mcp', { authProvider: {} });
// @ts-expect-error: the engine keeps what a client missed
new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, eventStore: {} });
// @ts-expect-error: whether answers are streams is the engine's to decide
createMcpHandler(() => new Second(info), { responseMode: 'sse' });
// @ts-expect-error: it is no server
accelerate({});
// @ts-expect-error: it is made by accelerate
await accelerate(new First(info)).connect();
