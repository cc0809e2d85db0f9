// A server on @modelcontextprotocol/sdk, the first TypeScript SDK.
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { capabilities, overheard, requests } from './node_features.mjs';

const schemas = {
    'tools/list': types.ListToolsRequestSchema,
    'tools/call': types.CallToolRequestSchema,
    'resources/list': types.ListResourcesRequestSchema,
    'resources/templates/list': types.ListResourceTemplatesRequestSchema,
    'resources/read': types.ReadResourceRequestSchema,
    'resources/subscribe': types.SubscribeRequestSchema,
    'resources/unsubscribe': types.UnsubscribeRequestSchema,
    'prompts/list': types.ListPromptsRequestSchema,
    'prompts/get': types.GetPromptRequestSchema,
    'completion/complete': types.CompleteRequestSchema
};

const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const options = { capabilities: { ...capabilities, tasks }, taskStore: new InMemoryTaskStore() };
const server = new Server({ name: 'node-v1', version: '1' }, options);
const ask = (_name, method, params) => {
    if (method === 'sampling/createMessage') return server.createMessage(params);
    return method === 'roots/list' ? server.listRoots() : server.elicitInput(params);
};

/** Without a time to live: the store would keep the process alive for as long. */
async function begun({ taskStore }, work) {
    const task = await taskStore.createTask({ pollInterval: 10 });
    work().then(result => taskStore.storeTaskResult(task.taskId, 'completed', result));
    return { task };
}

let revision;
const context = (extra, params) => ({
    revision: revision(),
    signal: extra.signal,
    meta: extra._meta,
    asTask: params?.task && (work => begun(extra, work)),
    ask,
    progress: (progress, total) => {
        const params = { progressToken: extra._meta?.progressToken, progress, total };
        return extra.sendNotification({ method: 'notifications/progress', params });
    },
    log: (level, data, logger) => server.sendLoggingMessage({ level, data, logger }),
    listChanged: () => server.sendToolListChanged(),
    updated: uri => server.sendResourceUpdated({ uri })
});
const refused = (code, message) => new types.McpError(code, message);
for (const [method, handler] of Object.entries(requests(refused, true)))
    server.setRequestHandler(schemas[method], ({ params }, extra) => handler(params, context(extra, params)));
const transport = new StdioServerTransport();
await server.connect(transport);
revision = overheard(transport);
process.stdin.on('end', () => server.close());
