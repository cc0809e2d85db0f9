// A consent proxy: a login of a client that registers itself, at a provider that knows one application.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { McpError, Server } from 'mcpbolt';

const fails = why => error => error instanceof McpError && error.code === 'ERR_MCP_MISUSE' && why.test(error.message);

const secret = 'a secret that is 32 characters or more';
const back = 'https://client.example/back';
const verifier = 'a-verifier-of-a-client-that-is-long-enough-to-be-one';

const listening = server => new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

// The token endpoint: one code is good.
const provider = () =>
    createServer(async (request, response) => {
        let body = '';
        for await (const piece of request) body += piece;
        const isGood = new URLSearchParams(body).get('code') === 'of-alice' && request.headers.authorization?.startsWith('Basic ');
        const claims = Buffer.from('{"sub":"alice"}').toString('base64url');
        const tokens = { access_token: 'hidden', token_type: 'Bearer', id_token: `e30.${claims}.c2ln` };
        response.writeHead(isGood ? 200 : 400).end(JSON.stringify(isGood ? tokens : { error: 'invalid_grant' }));
    });

// Registers, logs in as a browser does, and returns an access token.
async function logIn(at) {
    const cookies = new Map();
    const ask = async (path, body, type = 'application/x-www-form-urlencoded') => {
        const cookie = [...cookies].map(pair => pair.join('=')).join('; ');
        const headers = { cookie, ...(body && { 'content-type': type }) };
        const method = body ? 'POST' : 'GET';
        const answer = await fetch(`${at}${path}`, { method, headers, body: body && `${body}`, redirect: 'manual' });
        for (const said of answer.headers.getSetCookie()) cookies.set(...said.split(';')[0].split(/=(.*)/s, 2));
        const text = await answer.text();
        assert.ok(answer.status < 400, text);
        return [text, answer.headers.get('location')];
    };
    const [registered] = await ask('/register', JSON.stringify({ redirect_uris: [back] }), 'application/json');
    const client = { client_id: JSON.parse(registered).client_id, redirect_uri: back };
    const challenge = { code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' };
    const asked = { ...client, ...challenge, response_type: 'code', state: 's', resource: `${at}/mcp` };
    const [page] = await ask(`/authorize?${new URLSearchParams(asked)}`);
    assert.match(page, /Notes &amp; more/);
    const [, sealed] = page.match(/name="request" value="([^"]*)"/);
    const [, there] = await ask('/consent', new URLSearchParams({ request: sealed, answer: 'allow' }));
    const state = new URL(there).searchParams.get('state');
    const [, location] = await ask(`/callback?${new URLSearchParams({ code: 'of-alice', state })}`);
    const code = new URL(location).searchParams.get('code');
    const form = { ...client, grant_type: 'authorization_code', code, code_verifier: verifier };
    const [tokens] = await ask('/token', new URLSearchParams(form));
    assert.ok(!tokens.includes('hidden'));
    return JSON.parse(tokens).access_token;
}

test('a client that registers itself logs in', async t => {
    const upstream = provider();
    const login = `http://127.0.0.1:${await listening(upstream)}`;
    t.after(() => upstream.close());
    const free = createServer();
    const at = `http://127.0.0.1:${await listening(free)}`;
    await new Promise(resolve => free.close(resolve));
    const consentProxy = {
        issuer: at,
        resource: `${at}/mcp`,
        secret,
        name: 'Notes & more',
        scopes: ['notes'],
        tokenLifetime: 600_000,
        upstream: {
            authorizationEndpoint: `${login}/authorize`,
            tokenEndpoint: `${login}/token`,
            clientId: 'known',
            clientSecret: 's3cret'
        }
    };
    const policy = { consentProxy, scopes: { whoami: ['notes'] }, verifier: () => null };
    const server = new Server('notes', '1', { actions: true, policy }).tool('whoami', {}, (_, { principal }) => principal);
    const serving = await server.serve(`${at}/mcp`);
    t.after(() => serving.close());
    const token = await logIn(at);
    const call = async authorization => {
        const headers = { 'content-type': 'application/json', authorization };
        const answer = await fetch(serving.address, { method: 'POST', headers, body: JSON.stringify({ action: 'whoami', params: {} }) });
        return [answer.status, await answer.text()];
    };
    const [status, text] = await call(`Bearer ${token}`);
    assert.deepEqual([status, text.includes(`jwt:${at}#alice`)], [200, true], text);
    assert.equal((await call(`Bearer ${token}x`))[0], 401);
    assert.equal((await call('Basic YTpi'))[0], 401);
});

test('settings that are wrong are refused', () => {
    const upstream = { authorizationEndpoint: 'https://login.example/a', tokenEndpoint: 'https://login.example/t', clientId: 'known' };
    const good = { issuer: 'https://api.example', resource: 'https://api.example/mcp', secret, upstream };
    for (const [change, why] of [
        [{ secret: 'short' }, /32 bytes/],
        [{ issuer: 'http://api.example' }, /issuer/],
        [{ upstream: { ...upstream, scope: 'x' } }, /scope/]
    ])
        assert.throws(() => new Server('notes', '1', { policy: { consentProxy: { ...good, ...change } } }), fails(why));
    const resource = { url: good.resource, issuers: ['https://a.example'] };
    assert.throws(() => new Server('notes', '1', { policy: { consentProxy: good, resource } }), fails(/resource/));
});
