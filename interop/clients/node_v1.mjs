// A client on @modelcontextprotocol/sdk, the first TypeScript SDK.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod/v4';
import { answers, capabilities, info, notices, revision, run, transport } from './node_steps.mjs';

const schemas = {
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'elicitation/create': types.ElicitRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
    'notifications/message': types.LoggingMessageNotificationSchema,
    'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
    'notifications/resources/updated': types.ResourceUpdatedNotificationSchema
};

/** The SDK offers only its newest revision; this one offers the revision asked for. */
class PinnedClient extends Client {
    async request(request, schema, options) {
        if (request.method !== 'initialize') return super.request(request, schema, options);
        request.params.protocolVersion = revision;
        const result = await super.request(request, schema, options);
        this.negotiated = result.protocolVersion;
        return result;
    }
}

run(async () => {
    const client = new PinnedClient(info, { capabilities });
    for (const [method, handler] of Object.entries(answers)) client.setRequestHandler(schemas[method], handler);
    for (const [method, handler] of Object.entries(notices)) client.setNotificationHandler(schemas[method], handler);
    const carriers = { stdio: StdioClientTransport, http: StreamableHTTPClientTransport, sse: SSEClientTransport };
    await client.connect(transport(carriers));
    return {
        client,
        version: () => client.negotiated,
        request: (method, params) => client.request({ method, params }, z.looseObject({})),
        callTool: (params, options) => client.callTool(params, undefined, options),
        task: async params => {
            const { tasks } = client.experimental;
            let id;
            let text;
            for await (const { type, task, result, error } of tasks.callToolStream(params, undefined, { task: {} })) {
                if (type === 'taskCreated') id = task.taskId;
                if (type === 'result') text = result.content[0].text;
                if (type === 'error') throw error;
            }
            return { text, status: (await tasks.getTask(id)).status };
        }
    };
});
