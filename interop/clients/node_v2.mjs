// A client on @modelcontextprotocol/client, the second TypeScript SDK.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as z from 'zod/v4';
import { answers, capabilities, info, modern, notices, revision, run, transport } from './node_steps.mjs';

run(async () => {
    const held = modern
        ? { versionNegotiation: { mode: { pin: revision } } }
        : { supportedProtocolVersions: [revision] };
    const client = new Client(info, { capabilities, ...held });
    for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(method, handler);
    for (const [method, handler] of Object.entries(notices)) client.setNotificationHandler(method, handler);
    const carriers = { stdio: StdioClientTransport, http: StreamableHTTPClientTransport, sse: SSEClientTransport };
    await client.connect(transport(carriers));
    return {
        client,
        version: () => client.getNegotiatedProtocolVersion(),
        request: (method, params) => client.request({ method, params }, z.looseObject({})),
        callTool: (params, options) => client.callTool(params, options)
    };
});
