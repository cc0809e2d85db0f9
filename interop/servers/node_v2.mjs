// A server on @modelcontextprotocol/server, the second TypeScript SDK.
//
//     node node_v2.mjs [ADDRESS]
import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, ProtocolError, Server } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { capabilities, EXTENSION, listen, overheard, requests } from './node_features.mjs';

/** A question that the client has to answer before the call is made again. */
class Unanswered extends Error {
    constructor(name, request, answers) {
        super();
        this.result = inputRequired({ inputRequests: { [name]: request }, requestState: JSON.stringify(answers) });
    }
}

/** @param revision () => that of its client; @param tell where changes are told, if not on its own connection */
function serve({ era }, revision, tell) {
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
            listChanged: () => (tell ? tell.toolsChanged() : server.sendToolListChanged()),
            updated: uri => (tell ? tell.resourceUpdated(uri) : server.sendResourceUpdated({ uri }))
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

const [address] = process.argv.slice(2);
if (address) {
    const modern = createMcpHandler(about => serve(about, () => '2026-07-28', modern.notify), { legacy: 'reject' });
    const standing = toNodeHandler(modern);
    const sessions = new Map();
    listen(address, async (req, res, path) => {
        if (path !== '/mcp') return 404;
        if (req.headers['mcp-protocol-version'] >= '2026') return standing(req, res);
        let transport = sessions.get(req.headers['mcp-session-id']);
        if (!transport) {
            const onsessioninitialized = id => sessions.set(id, transport);
            transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
            let revision;
            await serve({ era: 'legacy' }, () => revision(), undefined).connect(transport);
            revision = overheard(transport);
        }
        await transport.handleRequest(req, res);
    });
} else {
    let revision;
    const transport = new StdioServerTransport();
    serveStdio(about => serve(about, () => revision()), { transport });
    revision = overheard(transport);
}
