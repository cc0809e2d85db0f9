// Drives a stdio server with @modelcontextprotocol/client, the second TypeScript SDK.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as z from 'zod/v4';
import { run } from './checks.mjs';

await run(async (revision, command, args) => {
    const client = new Client(
        { name: 'interop-node-v2', version: '1' },
        revision >= '2026'
            ? { versionNegotiation: { mode: { pin: revision } } }
            : { supportedProtocolVersions: [revision] }
    );
    await client.connect(new StdioClientTransport({ command, args }));
    return {
        client,
        version: () => client.getNegotiatedProtocolVersion(),
        request: method => client.request({ method }, z.object({})),
        callTool: (params, options) => client.callTool(params, options)
    };
});
