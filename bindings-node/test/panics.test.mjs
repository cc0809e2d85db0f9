// A panic of the engine's fails the call at hand; the process, its event loop and the next call go on.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Client, Server } from 'mcpbolt';
import { within } from './until.mjs';

const folder = new URL('..', import.meta.url);
const require = createRequire(import.meta.url);
const { panicAt } = require(`../mcpbolt.${process.platform}-${process.arch}.node`);
const skip = panicAt === undefined && 'a build without debug assertions has no places that panic';

const made = () =>
    new Server('panics', '1')
        .tool('echo', {}, ({ text }) => text)
        .tool('late', {}, async ({ text }, ctx) => {
            await new Promise(resolve => setImmediate(resolve));
            ctx.log('info', text);
            return text;
        });

async function connected(t, carrier) {
    const server = made();
    if (carrier === 'pair') {
        const client = await Client.connect(server);
        t.after(() => client.close());
        return client;
    }
    const serving = await server.serve('http://127.0.0.1:0/mcp', { signals: false });
    const client = await Client.connect(serving.address);
    t.after(async () => (await client.close(), await serving.close()));
    return client;
}

async function works(client) {
    for (const tool of ['echo', 'late']) {
        const result = await within(tool, client.callTool(tool, { text: 'as ever' }));
        assert.equal(result.content[0].text, 'as ever');
    }
}

for (const carrier of ['pair', 'http'])
    for (const place of ['run', 'call', 'answer']) test(`a panic of the server at ${place} answers the call, ${carrier}`, { skip }, async t => {
        const client = await connected(t, carrier);
        await works(client);
        for (const tool of ['echo', 'late']) {
            panicAt(place);
            await assert.rejects(within(place, client.callTool(tool, { text: 'x' })), { code: 'ERR_MCP_PEER', message: new RegExp(`the engine panicked: as a test wants, at ${place}`) });
            await works(client);
        }
    });

test('a panic while an answer is handed over fails the request', { skip }, async t => {
    const client = await connected(t, 'http');
    await works(client);
    panicAt('event');
    await assert.rejects(within('event', client.callTool('echo', { text: 'x' })), { code: 'ERR_MCP_INTERNAL', message: /the engine panicked/ });
    await works(client);
});

test('a panic in what a function is called for is thrown by it', { skip }, async t => {
    const client = await connected(t, 'pair');
    panicAt('request');
    await assert.rejects(client.callTool('echo', { text: 'x' }), { code: 'ERR_MCP_INTERNAL', message: /as a test wants, at request/ });
    await works(client);
});

test('a panic that nobody could catch is a warning', { skip }, async t => {
    const client = await connected(t, 'pair');
    await works(client);
    for (const place of ['submit', 'drain']) {
        const warned = new Promise(resolve => process.once('warning', resolve));
        panicAt(place);
        const outcome = client.callTool('echo', { text: 'x' }).catch(error => error);
        assert.match((await within(place, warned)).message, /as a test wants/);
        await within(place, outcome);
        await works(client);
    }
});

test('a panic on the way to a server, or to serving, is told', { skip }, async t => {
    const server = made();
    panicAt('serve');
    await assert.rejects(server.serve('http://127.0.0.1:0/mcp', { signals: false }), { code: 'ERR_MCP_IO', message: /the engine panicked/ });
    const serving = await server.serve('http://127.0.0.1:0/mcp', { signals: false });
    t.after(() => serving.close());
    panicAt('open');
    await assert.rejects(within('open', Client.connect(serving.address)), { message: /the engine panicked/ });
    const client = await Client.connect(serving.address);
    await works(client);
    await client.close();
});

test('whatever is dropped while it panics ends nothing', { skip }, async () => {
    const client = await Client.connect(made());
    panicAt('stop');
    const closed = client.close();
    // The first request to end it was lost in the panic.
    await works(client);
    client.close();
    await within('the end', closed);
});

test('every native function is guarded', () => {
    const files = readdirSync(new URL('src/', folder), { recursive: true }).filter(file => file.endsWith('.rs'));
    let functions = 0;
    for (const file of files) {
        const source = readFileSync(new URL(`src/${file}`, folder), 'utf8');
        for (const [text, options] of source.matchAll(/#\[napi(\([^)]*\))?\]\s*(?:#\[[^\n]*\]\s*)*pub fn [a-z_]+/g)) {
            functions++;
            assert.match(options ?? '', /catch_unwind/, `${file}: ${text}`);
        }
    }
    assert.ok(functions > 100);
});
