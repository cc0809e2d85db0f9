// A server on @modelcontextprotocol/server, the second TypeScript SDK.
import { inputRequired, ProtocolError, Server } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { capabilities, EXTENSION, overheard, requests } from './node_features.mjs';

/** A question that the client has to answer before the call is made again. */
class Unanswered extends Error {
    constructor(name, request, answers) {
        super();
        this.result = inputRequired({ inputRequests: { [name]: request }, requestState: JSON.stringify(answers) });
    }
}

let revision;

function serve({ era }) {
    const cacheHints = { 'tools/list': { ttlMs: 60_000, cacheScope: 'public' } };
    const server = new Server({ name: 'node-v2', version: '1' }, { capabilities, cacheHints });
    const context = ({ mcpReq }) => {
        const answers = { ...JSON.parse(mcpReq.requestState() ?? '{}'), ...mcpReq.inputResponses };
        const declared = mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'];
        return {
            modern: era === 'modern',
            revision: revision(),
            signal: mcpReq.signal,
            meta: mcpReq._meta,
            extension: declared?.extensions?.[EXTENSION],
            ask: async (name, method, params) => {
                if (!(name in answers)) throw new Unanswered(name, { method, params }, answers);
                return answers[name];
            },
            progress: (progress, total) => {
                const params = { progressToken: mcpReq._meta?.progressToken, progress, total };
                return mcpReq.notify({ method: 'notifications/progress', params });
            },
            log: mcpReq.log,
            listChanged: () => server.sendToolListChanged(),
            updated: uri => server.sendResourceUpdated({ uri })
        };
    };
    const refused = (code, message) => new ProtocolError(code, message);
    for (const [method, handler] of Object.entries(requests(refused))) {
        server.setRequestHandler(method, async ({ params }, ctx) => {
            try {
                return await handler(params, context(ctx));
            } catch (error) {
                if (error instanceof Unanswered) return error.result;
                throw error;
            }
        });
    }
    return server;
}

const transport = new StdioServerTransport();
serveStdio(serve, { transport });
revision = overheard(transport);
