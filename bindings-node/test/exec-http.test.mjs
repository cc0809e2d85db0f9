// Programs that serve HTTP, unchanged on the engine: node:http, Express and Hono, in sessions.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { Client } from 'mcpbolt';
import { COMMAND, write } from './programs.mjs';
import { until } from './until.mjs';

/** Earlier releases of v2 do not ask for scopes. */
const asksForScopes = 'setScopeChallengeResolver' in NodeStreamableHTTPServerTransport.prototype;

const HEAD = `
    import { randomUUID } from 'node:crypto';
    import { createServer } from 'node:http';
    import * as z from 'zod';
    const sessions = {};
    const shape = { a: z.number(), b: z.number() };
    const sum = async ({ a, b }, context) => ({ content: [{ type: 'text', text: JSON.stringify([a + b, seen(context)]) }] });
    const opened = (transport, options) => ({ sessionIdGenerator: randomUUID, onsessioninitialized: id => { sessions[id] = transport(); }, onsessionclosed: id => console.error('closed', id in sessions), ...options });
    const said = http => console.error('http://127.0.0.1:' + http.address().port + '/mcp');
    process.on('SIGTERM', () => process.exit(0));
`;
const V1 = `${HEAD}
    import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
    import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
    const seen = ({ sessionId, requestInfo, authInfo }) => [sessionId in sessions, requestInfo.headers['mcp-session-id'] === sessionId, requestInfo.headers['x-own'] ?? '', authInfo?.clientId ?? ''];
    function make() {
        const server = new McpServer({ name: 'program', version: '1' });
        server.registerTool('add', { inputSchema: shape }, sum);
        return server;
    }
    async function transportOf(request, options) {
        const known = sessions[request.headers['mcp-session-id']];
        if (known) return known;
        const transport = new StreamableHTTPServerTransport(opened(() => transport, options));
        transport.onclose = () => console.error('onclose', transport.sessionId in sessions);
        await make().connect(transport);
        return transport;
    }
`;
const V2 = `${HEAD}
    import { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
    import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
    const seen = ({ sessionId, http, mcpReq }) => [sessionId in sessions, http.req.headers.get('mcp-session-id') === sessionId, http.req.headers.get('x-own') ?? '', http.authInfo?.clientId ?? ''];
    function make(more = {}) {
        const server = new McpServer({ name: 'program', version: '1' });
        server.registerTool('add', { inputSchema: z.object(shape), ...more }, sum);
        return server;
    }
    async function transportOf(id, Transport, options, more) {
        if (sessions[id]) return sessions[id];
        const transport = new Transport(opened(() => transport, options));
        transport.onclose = () => console.error('onclose', transport.sessionId in sessions);
        await make(more).connect(transport);
        return transport;
    }
`;
const ON_NODE = (options = '') => `
    const http = createServer(async (request, response) => {
        request.auth = { token: 't', clientId: 'ada', scopes: [] };
        (await transportOf(request${options && `, ${options}`})).handleRequest(request, response);
    }).listen(0, '127.0.0.1', () => said(http));`;
const ON_NODE_V2 = more => `
    const http = createServer(async (request, response) => {
        request.auth = { token: 't', clientId: 'ada', scopes: [] };
        (await transportOf(request.headers['mcp-session-id'], NodeStreamableHTTPServerTransport, {}, ${more})).handleRequest(request, response);
    }).listen(0, '127.0.0.1', () => said(http));`;
const PROGRAMS = {
    'node:http, v1': V1 + ON_NODE(),
    'Express, v1': `${V1}
        import express from 'express';
        const app = express().use(express.json());
        app.all('/mcp', async (request, response) => {
            request.auth = { token: 't', clientId: 'ada', scopes: [] };
            await (await transportOf(request)).handleRequest(request, response, request.body);
        });
        const http = app.listen(0, '127.0.0.1', () => said(http));`,
    'node:http, v2': V2 + ON_NODE_V2('undefined'),
    'Hono, v2': `${V2}
        import { Hono } from 'hono';
        import { serve } from '@hono/node-server';
        const app = new Hono();
        app.all('/mcp', async ({ req }) => {
            const transport = await transportOf(req.header('mcp-session-id'), WebStandardStreamableHTTPServerTransport);
            return transport.handleRequest(req.raw, { authInfo: { token: 't', clientId: 'ada', scopes: [] } });
        });
        const http = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => said(http));`
};

/** Starts a program, and connects a client to it. */
async function started(file, how, t) {
    const child = spawn(process.execPath, [...how, file], { env: { ...process.env, MCPBOLT_REPORT: '1' } });
    const run = { child, err: '' };
    child.stderr.setEncoding('utf8').on('data', text => (run.err += text));
    t.after(() => child.kill('SIGKILL'));
    await until(() => /http:\S+/.test(run.err) || child.exitCode !== null);
    assert.equal(child.exitCode, null, run.err);
    run.client = await Client.connect(/http:\S+/.exec(run.err)[0], { revision: '2025-11-25', headers: { 'x-own': 'mine' } });
    t.after(() => run.client.close());
    return run;
}

const lines = err => err.split('\n').filter(line => line.startsWith('mcpbolt: ')).map(line => line.slice(9));

describe('over HTTP', { concurrency: 2 }, () => {
    for (const [name, text] of Object.entries(PROGRAMS))
        test(name, async t => {
            const file = write(`${name.replaceAll(/\W+/g, '-')}.mjs`, text);
            const said = {};
            for (const how of [[], [COMMAND, 'exec']]) {
                const run = await started(file, how, t);
                const { client } = run;
                const texts = [];
                for (let b = 0; b < 3; b++) texts.push((await client.callTool('add', { a: 1, b })).content[0].text);
                const wrong = await client.callTool('add', { a: 'x' });
                const none = await client.callTool('none').catch(error => [error.rpcCode, error.message]);
                said[how.length] = [texts, wrong, none, (await client.listTools()).map(({ name }) => name), client.server.name];
                await client.close();
                await until(() => run.err.includes('onclose'));
                said[how.length].push(run.err.match(/^(closed|onclose) .*$/gm));
                if (how.length > 0) {
                    assert.match(lines(run.err)[0], /^http: the engine serves 'program' \(@modelcontextprotocol\/\w+ \d/, run.err);
                    assert.deepEqual(lines(run.err).slice(1), ['tool add: native']);
                }
            }
            assert.deepEqual(said[2], said[0]);
            assert.deepEqual(JSON.parse(said[0][0][2]), [3, [true, true, 'mine', 'ada']]);
        });

    const KEPT = [
        ['it has no sessions', V1 + ON_NODE('{ sessionIdGenerator: undefined }')],
        ['it answers with JSON only', V1 + ON_NODE('{ enableJsonResponse: true }')],
        ['it keeps events for clients that resume', V1 + ON_NODE('{ eventStore: { storeEvent: async () => randomUUID(), replayEventsAfter: async () => "" } }')],
        ['it checks hosts and origins itself', V1 + ON_NODE('{ enableDnsRebindingProtection: true, allowedHosts: [] }')],
        ...(asksForScopes ? [['it asks for scopes itself', V2 + ON_NODE_V2('{ scopeChallenge: () => undefined }')]] : [])
    ];
    test('what the engine cannot serve, the program does', async t => {
        for (const [at, [reason, text]] of KEPT.entries()) {
            const { client, err } = await started(write(`kept${at}.mjs`, text), [COMMAND, 'exec'], t).then(async run => {
                const call = await run.client.callTool('add', { a: 1, b: 2 }).catch(error => error);
                assert.ok(call.content || at === 0, `${reason}: ${call}`);
                return run;
            });
            assert.ok(lines(err)[0]?.endsWith(`): ${reason}`) && lines(err).length === 1, err);
            await client.close();
        }
    });

    if (asksForScopes) test('a part that wants scopes and comes later is not served without them', async t => {
        const text = `${V2.replace('return server;', 'globalThis.last = server; return server;')}${ON_NODE_V2('undefined')}
            process.on('uncaughtException', error => console.error('refused', error.message)).on('unhandledRejection', error => console.error('refused', error.message));
            process.on('SIGUSR2', () => { last.registerTool('guarded', { scopeChallenge: () => ({ scopes: ['a'] }) }, async () => ({ content: [] })); console.error('added'); });`;
        const run = await started(write('later.mjs', text), [COMMAND, 'exec'], t);
        await run.client.callTool('add', { a: 1, b: 2 });
        run.child.kill('SIGUSR2');
        await until(() => run.err.includes('added'));
        await assert.rejects(run.client.callTool('guarded', {}, { timeout: 1000 }));
        assert.match(run.err, /refused mcpbolt: a part that wants scopes was added to a server that serves/);
    });
});
