// The examples of mounts, each driven by the clients of both official SDKs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { within } from './until.mjs';
import { folder } from './wire.mjs';

const EXAMPLES = new URL('examples/mounts/', folder);
const SDKS = { v1: [Client1, Transport1], v2: [Client2, Transport2] };

/** Uses the example as a client of each SDK does. */
async function drive(url, options) {
    for (const [name, [Client, Transport]] of Object.entries(SDKS)) {
        const client = new Client({ name, version: '1' });
        await client.connect(new Transport(new URL(url), options));
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map(({ name, description }) => [name, description]), [['order', 'Orders books.']], name);
        const seen = [];
        const call = { name: 'order', arguments: { copies: 2 } };
        const request = { onprogress: ({ progress }) => seen.push(progress) };
        const result = await (name === 'v1' ? client.callTool(call, undefined, request) : client.callTool(call, request));
        assert.deepEqual([result.content, seen], [[{ type: 'text', text: '2 ordered' }], [1]], name);
        await client.close();
    }
}

for (const name of ['express', 'fastify', 'hono'])
    test(`${name} serves`, async t => {
        const child = spawn(process.execPath, [new URL(`${name}.mjs`, EXAMPLES).pathname], { stdio: ['ignore', 'pipe', 'inherit'] });
        t.after(() => child.kill());
        const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
        const { value: url } = await within('the address', lines.next());
        await drive(url);
        assert.equal(await (await fetch(new URL('/health', url))).text(), 'ok');
    });

test('a function from Request to Response serves', async () => {
    const { default: site } = await import(new URL('fetch.mjs', EXAMPLES));
    await drive('http://localhost/mcp', { fetch: (url, init) => site.fetch(new Request(url, init)) });
    assert.equal((await site.fetch(new Request('http://localhost/other'))).status, 404);
});

test('a route handler serves', async () => {
    const route = await import(new URL('route.mjs', EXAMPLES));
    await drive('http://localhost/mcp', { fetch: (url, init = {}) => route[init.method ?? 'GET'](new Request(url, init)) });
    assert.equal((await route.GET(new Request('http://elsewhere.example/mcp'))).status, 403);
});

test('each example is at most 30 lines, and has a test', () => {
    const names = readdirSync(EXAMPLES).sort();
    assert.deepEqual(names, ['express.mjs', 'fastify.mjs', 'fetch.mjs', 'hono.mjs', 'route.mjs']);
    for (const name of names) assert.ok(readFileSync(new URL(name, EXAMPLES), 'utf8').split('\n').length <= 31, name);
});
