// Functions of the program that say who a client is.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, Server } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, failsWith, spawned } from './wire.mjs';

const bearer = token => ({ type: 'bearer', token });
const said = result => result.content[0].text;
const who = (_, ctx) => `${ctx.principal} ${ctx.hasScope('write')}`;

/** Each test serves at an address of its own, which ends with it. */
async function serve(t, policy, options = {}, address = 'http://127.0.0.1:0/mcp') {
    const server = new Server('guarded', '1', { onError: () => {}, policy, ...options }).tool('who', {}, who).tool('write', {}, who);
    const serving = await server.serve(address, { ...options.serve });
    t.after(() => serving.close());
    return serving.address;
}

const status = opening => opening.then(() => 'connected', error => error.cause?.status);

test('a verifier decides over HTTP, after a while too, and its scopes count', async t => {
    const seen = [];
    const verifier = async credentials => {
        seen.push(credentials.kind);
        await new Promise(resolve => setTimeout(resolve, 5));
        if (credentials.secret === 'throw') throw new Error('no database');
        return { alice: { name: 'alice', scopes: ['write'] }, bob: 'bob', nobody: null, empty: '', odd: { name: 'odd', scopes: 'write' } }[credentials.secret];
    };
    const errors = [];
    const address = await serve(t, { verifier, scopes: { write: ['write'] } }, { onError: (error, what) => errors.push([what, error.message]) });
    const alice = await connect(address, { auth: bearer('alice') });
    assert.equal(said(await alice.callTool('write')), 'alice true');
    const bob = await connect(address, { auth: { type: 'apiKey', key: 'bob' } });
    assert.equal(said(await bob.callTool('who')), 'bob false');
    const refused = await bob.callTool('write').catch(error => error);
    assert.equal(refused.cause?.status ?? refused.status, 403);
    for (const [token, expected] of Object.entries({ nobody: 401, unknown: 401, empty: 503, odd: 503, throw: 503 }))
        assert.equal(await status(Client.connect(address, { auth: bearer(token) })), expected, token);
    assert.equal(await status(Client.connect(address)), 401);
    assert.deepEqual([...new Set(seen)].sort(), ['apiKey', 'bearer', 'none']);
    const told = new Set(errors.map(([what, message]) => `${what}: ${message.slice(0, 20)}`));
    assert.deepEqual([...told].sort(), ['the verifier: no database', 'the verifier: the scopes of a prin', 'the verifier: the verifier returne']);
});

test('only refused credentials are guesses; an exception says nothing about them, with and without a resource server', async t => {
    for (const resource of [undefined, { url: 'https://api.example/mcp', issuers: ['https://login.example'], cachedFor: 600_000 }]) {
        let isAway = true;
        const verifier = ({ secret }) => {
            if (secret !== 'none' && isAway) throw new Error('the database is away');
            return secret === 'none' ? undefined : 'alice';
        };
        const address = await serve(t, { verifier, resource, rate: { burst: 3, perSecond: 0 } });
        const told = async (token, times) => {
            const statuses = [];
            for (let time = 0; time < times; time++) {
                const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
                const response = await fetch(address, { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
                await response.arrayBuffer();
                statuses.push(response.status === 503 ? `503 ${response.headers.get('retry-after')}` : response.status);
            }
            return statuses;
        };
        assert.deepEqual(await told('right', 5), Array(5).fill('503 1'));
        isAway = false;
        // The next request is verified anew.
        assert.notEqual((await told('right', 1))[0], '503 1');
        assert.deepEqual(await told('none', 4), [401, 401, 401, 429]);
    }
});

test('what a verifier returns that is no principal is reported, and no verdict', async t => {
    const wrong = { scope: { name: 'a', scopes: [7] }, key: { name: 'a', boundKey: new Uint8Array(32) }, end: { name: 'a', expiresAt: 'soon' } };
    const errors = [];
    const address = await serve(t, { verifier: ({ secret }) => wrong[secret] }, { onError: error => errors.push(error.name) });
    for (const token of Object.keys(wrong)) assert.equal(await status(Client.connect(address, { auth: bearer(token) })), 503, token);
    assert.deepEqual([...new Set(errors)], ['TypeError']);
});

test('on stdio and sockets the credentials come with each request', async t => {
    const program = `
        import { Server } from 'mcpbolt';
        const verifier = async ({ kind, secret }) => (await null, kind === 'bearer' && secret === 'sesame' ? 'ali' : undefined);
        new Server('guarded', '1', { policy: { verifier } }).tool('who', {}, (_, ctx) => ctx.principal).run();`;
    const meta = { auth: { type: 'bearer', token: 'sesame' } };
    const policy = { verifier: async ({ secret }) => (secret === 'sesame' ? 'ali' : undefined) };
    const socket = await serve(t, policy, {}, `unix:${join(tmpdir(), `verify-${process.pid}`)}`);
    for (const client of [await spawned(program, { opening: 'stateless' }), await connect(socket, { opening: 'stateless' })]) {
        assert.match(said(await client.callTool('who', {}, { meta })), /^ali/);
        await assert.rejects(client.callTool('who'), failsWith('ERR_MCP_PEER'));
        await assert.rejects(client.callTool('who', {}, { meta: { auth: { type: 'bearer', token: 'no' } } }), failsWith('ERR_MCP_PEER'));
    }
});

test('a verification that nobody waits for is aborted, by its time or by the client', async t => {
    const aborted = [];
    let begun = 0;
    const verifier = (credentials, { signal }) => {
        begun++;
        return new Promise((_, reject) => signal.addEventListener('abort', () => (aborted.push(signal.reason.name), reject(signal.reason))));
    };
    const errors = [];
    const onError = error => errors.push(error);
    const slow = await serve(t, { verifier, verifierTimeout: 50 }, { onError });
    assert.equal(await status(Client.connect(slow, { auth: bearer('a') })), 503);
    const patient = await serve(t, { verifier }, { onError });
    begun = 0;
    aborted.length = 0;
    const post = new AbortController();
    const headers = { authorization: 'Bearer a', 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const asked = fetch(patient, { method: 'POST', headers, body, signal: post.signal }).catch(() => {});
    await until(() => begun === 1);
    post.abort();
    await asked;
    await until(() => aborted.length === 1);
    assert.deepEqual([aborted, errors], [['AbortError'], []]);
});

test('other requests go on while one is verified', async t => {
    let release;
    const gate = new Promise(resolve => (release = resolve));
    let waiting = 0;
    const verifier = async ({ secret }) => (secret === 'slow' && (waiting++, await gate), secret);
    const address = await serve(t, { verifier });
    const slow = Client.connect(address, { auth: bearer('slow') });
    await until(() => waiting === 1);
    const quick = await connect(address, { auth: bearer('quick') });
    assert.equal(said(await quick.callTool('who')), 'quick false');
    release();
    const late = await slow;
    assert.equal(said(await late.callTool('who')), 'slow false');
    await late.close();
});

test('a verifier stands alone', () => {
    const verifier = () => 'a';
    assert.throws(() => new Server('s', '1', { policy: { verifier, keys: { k: { client: 'a' } } } }), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => new Server('s', '1', { policy: { verifier: 'a' } }), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => new Server('s', '1', { policy: { verifierTimeout: 5 } }), failsWith('ERR_MCP_MISUSE'));
});
