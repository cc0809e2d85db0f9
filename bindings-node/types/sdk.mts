// Servers of both generations of the official SDK are what `accelerate` takes. Nothing here runs.
import { createServer } from 'node:http';
import { McpServer as First } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpServer as Second } from '@modelcontextprotocol/server';
import type { RunReport, Serving } from 'mcpbolt';
import { accelerate, type Accelerated, type AccelerationReport } from 'mcpbolt/sdk';

// The first SDK takes a browser's types for granted.
declare global {
    type HeadersInit = ConstructorParameters<typeof Headers>[0];
}

const info = { name: 'a', version: '1' };
const first: Accelerated = accelerate(new First(info));
const second: Accelerated = accelerate(new Second(info));
accelerate(new First(info).server);
const ran: RunReport = await first.run({ graceMs: 10 });
const serving: Serving = await second.serve('http://127.0.0.1:0/mcp', { hosts: ['localhost'] });
const report: AccelerationReport = second.report();
createServer(first.handler({ cors: true }));
const response: Response = await first.fetch(new Request('http://localhost/mcp'));
console.log(ran.reason, serving.address, report.sdk[0]?.why, response.status);

// @ts-expect-error: it is no server
accelerate({});
// @ts-expect-error: it is made by accelerate
await accelerate(new First(info)).connect();
