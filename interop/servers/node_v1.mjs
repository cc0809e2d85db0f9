// A server on @modelcontextprotocol/sdk, the first TypeScript SDK.
//
//     node node_v1.mjs [ADDRESS]
import { randomUUID } from 'node:crypto';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { capabilities, listen, overheard, requests } from './node_features.mjs';

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
const taskStore = new InMemoryTaskStore();

/** Without a time to live: the store would keep the process alive for as long. */
async function begun({ taskStore }, work) {
    const task = await taskStore.createTask({ pollInterval: 10 });
    work().then(result => taskStore.storeTaskResult(task.taskId, 'completed', result));
    return { task };
}

/** Serves one client. */
async function serve(transport) {
    const options = { capabilities: { ...capabilities, tasks }, taskStore };
    const server = new Server({ name: 'node-v1', version: '1' }, options);
    let revision;
    const context = (extra, params) => {
        const within = { relatedRequestId: extra.requestId };
        return {
            revision: revision(),
            signal: extra.signal,
            meta: extra._meta,
            asTask: params?.task && (work => begun(extra, work)),
            ask: (_name, method, params) => {
                if (method === 'sampling/createMessage') return server.createMessage(params, within);
                return method === 'roots/list' ? server.listRoots({}, within) : server.elicitInput(params, within);
            },
            progress: (progress, total) => {
                const params = { progressToken: extra._meta?.progressToken, progress, total };
                return extra.sendNotification({ method: 'notifications/progress', params });
            },
            log: (level, data, logger) => server.sendLoggingMessage({ level, data, logger }, extra.sessionId),
            listChanged: () => server.sendToolListChanged(),
            updated: uri => server.sendResourceUpdated({ uri })
        };
    };
    const refused = (code, message) => new types.McpError(code, message);
    for (const [method, handler] of Object.entries(requests(refused, true)))
        server.setRequestHandler(schemas[method], ({ params }, extra) => handler(params, context(extra, params)));
    await server.connect(transport);
    revision = overheard(transport);
    return server;
}

const [address] = process.argv.slice(2);
if (address) {
    const sessions = new Map();
    listen(address, async (req, res, path) => {
        if (path === '/sse') {
            if (req.method !== 'GET') return 405;
            const transport = new SSEServerTransport('/messages', res);
            sessions.set(transport.sessionId, transport);
            return void (await serve(transport));
        }
        if (path === '/messages') {
            const id = new URL(req.url, address).searchParams.get('sessionId');
            return sessions.has(id) ? sessions.get(id).handlePostMessage(req, res) : 404;
        }
        let transport = sessions.get(req.headers['mcp-session-id']);
        if (!transport) {
            const onsessioninitialized = id => sessions.set(id, transport);
            transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
            await serve(transport);
        }
        await transport.handleRequest(req, res);
    });
} else {
    const server = await serve(new StdioServerTransport());
    process.stdin.on('end', () => server.close());
}
