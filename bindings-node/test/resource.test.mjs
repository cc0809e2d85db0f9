// Resource servers, whose tokens the program verifies, and PermissionManager. `cargo xtask tokens` plays the corpus of tokens.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { McpError, PermissionManager, Server } from 'mcpbolt';

const fails = why => error => error instanceof McpError && error.code === 'ERR_MCP_MISUSE' && why.test(error.message);

const url = 'https://api.example/mcp';

test('tokens that the program verifies are judged', async t => {
    const verifier = ({ kind, user, secret }) => {
        if (kind === 'basic') return secret === 's3cret:x' ? { name: user, scopes: ['notes'] } : null;
        const alice = more => ({ name: 'alice', scopes: ['notes'], ...more });
        return {
            good: alice(),
            narrow: 'alice',
            ended: alice({ expiresAt: 1 }),
            bound: alice({ boundKey: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' }),
            certified: alice({ boundCertificate: 'abc' })
        }[secret];
    };
    const resource = { url, issuers: ['https://login.example'], scopes: ['notes'], name: 'Notes' };
    const server = new Server('notes', '1', { actions: true, policy: { verifier, resource } }).tool('whoami', {}, () => 'done');
    const serving = await server.serve('http://127.0.0.1:0/mcp');
    t.after(() => serving.close());
    for (const path of ['', '/mcp']) {
        const told = await fetch(new URL(`/.well-known/oauth-protected-resource${path}`, serving.address));
        assert.equal(told.headers.get('access-control-allow-origin'), '*');
        const { resource, resource_name: name } = await told.json();
        assert.deepEqual([resource, name], [url, 'Notes']);
    }
    const call = authorization =>
        fetch(serving.address, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
            body: JSON.stringify({ action: 'whoami', params: {} })
        });
    const place = 'https://api.example/.well-known/oauth-protected-resource/mcp';
    const asked = await call();
    assert.deepEqual([asked.status, asked.headers.get('www-authenticate')], [401, `Bearer resource_metadata="${place}", scope="notes"`]);
    for (const [authorization, status, error] of [
        ['Bearer good', 200],
        ['Bearer narrow', 403, 'insufficient_scope'],
        ['Bearer ended', 401, 'invalid_token'],
        ['Bearer bound', 401, 'invalid_token'],
        ['Bearer certified', 401, 'invalid_token'],
        ['Bearer other', 401, 'invalid_token'],
        ['Bearer a b', 400, 'invalid_request'],
        ['Basic Ym9iOnMzY3JldDp4', 200],
        ['Basic Ym9iOng=', 401, 'invalid_token']
    ]) {
        const answer = await call(authorization);
        const challenge = answer.headers.get('www-authenticate') ?? '';
        assert.deepEqual([answer.status, challenge.includes(error ?? '')], [status, true], `${authorization}: ${challenge}`);
    }
});

test('settings that are wrong are refused', () => {
    const issuers = ['https://a.example'];
    for (const [resource, why] of [
        [{ url: 'http://api.example/mcp', issuers }, /https/],
        [{ url, issuers: [] }, /issuer/],
        [{ url, issuers, proofs: 'sometimes' }, /sometimes/],
        [{ url, issuers: [{ issuer: 'https://a.example', jwks: 'http://a.example/' }] }, /https/]
    ])
        assert.throws(() => new Server('notes', '1', { policy: { resource } }), fails(why));
});

test('a permission manager says what is allowed', () => {
    const manager = new PermissionManager({
        tools: { allowed: ['*'], denied: ['erase'] },
        resources: { allowed: ['file:///srv/**'], denied: ['file:///srv/secret/**'] }
    });
    assert.deepEqual(['search', 'erase'].map(tool => manager.canExecuteTool(tool)), [true, false]);
    const uris = ['file:///srv/a', 'file:///srv/secret/a', 'file:///srv/../etc/passwd', 'file:///etc'];
    assert.deepEqual(uris.map(uri => manager.canAccessResource(uri)), [true, false, false, false]);
    assert.equal(new PermissionManager({}).canExecuteTool('search'), false);
    assert.throws(() => new PermissionManager({ tool: {} }), fails(/permissions: /));
});
