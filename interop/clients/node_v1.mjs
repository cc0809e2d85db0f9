// Drives a stdio server with @modelcontextprotocol/sdk, the first TypeScript SDK.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { EmptyResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { run } from './checks.mjs';

/** The SDK offers only its newest revision; this one offers the revision asked for. */
class PinnedClient extends Client {
    constructor(revision) {
        super({ name: 'interop-node-v1', version: '1' });
        this.revision = revision;
    }

    async request(request, schema, options) {
        if (request.method !== 'initialize') return super.request(request, schema, options);
        request.params.protocolVersion = this.revision;
        const result = await super.request(request, schema, options);
        this.negotiated = result.protocolVersion;
        return result;
    }
}

await run(async (revision, command, args) => {
    const client = new PinnedClient(revision);
    await client.connect(new StdioClientTransport({ command, args }));
    return {
        client,
        version: () => client.negotiated,
        request: method => client.request({ method }, EmptyResultSchema),
        callTool: (params, options) => client.callTool(params, undefined, options)
    };
});
