// Credentials: keys, signed tokens and certificates that a policy knows clients by, and the scopes of tools.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { afterEach, test } from 'node:test';
import { Client, Server } from 'mcpbolt';
import { certificate } from './certificate.mjs';
import { toolCall } from './http.mjs';
import { connect, failsWith, spawned } from './wire.mjs';

const closing = [];
afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
});

const SECRET = 'a secret of thirty-two bytes, yes';
const policy = {
    keys: { 'k-alice': { client: 'alice', scopes: ['notes:write'] }, 'k-bob': { client: 'bob' } },
    jwt: { algorithm: 'HS256', key: SECRET, issuer: 'me', audience: 'here' },
    scopes: { 'note.write': ['notes:write'] }
};
const OFFER = `
const who = (_, ctx) => ctx.principal + ' ' + ctx.hasScope('notes:write');
const server = new Server('notes', '1', { actions: true, policy }).tool('note.read', {}, who).tool('note.write', {}, async (...both) => who(...both));
`;
const offer = () => new Function('Server', 'policy', `${OFFER} return server;`)(Server, policy);
const program = `import { Server } from 'mcpbolt'; const policy = ${JSON.stringify(policy)}; ${OFFER} await server.run();`;

const now = () => Math.floor(Date.now() / 1000);
const part = value => Buffer.from(JSON.stringify(value)).toString('base64url');

/** One that carol bears for an hour, unless `claims` say otherwise. */
function token(claims, kid, secret = SECRET) {
    const good = { sub: 'carol', scope: 'read notes:write', iss: 'me', aud: 'here', exp: now() + 3600 };
    const signed = `${part({ alg: 'HS256', typ: 'JWT', kid })}.${part({ ...good, ...claims })}`;
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const bearer = token => ({ type: 'bearer', token });
const key = key => ({ type: 'api_key', key });
const wrong = () => [
    key('k-eve'),
    ...[token({ exp: now() - 3600 }), token({ aud: 'there' }), `${token().slice(0, -8)}AAAAAAAA`, 'k-alice'].map(bearer)
];
const good = () => [
    [key('k-alice'), 'key:alice', true],
    [key('k-bob'), 'key:bob', false],
    [bearer(token()), 'jwt:me#carol', true],
    [bearer(token({ sub: 'alice', scope: 'read' })), 'jwt:me#alice', false]
];
const carried = auth => ('key' in auth ? { type: 'apiKey', key: auth.key } : auth);
const acted = answer => answer.data.content[0].text;
const called = result => result.content[0].text;
const once = { retry: { tries: 1 } };

test('who asks over HTTP is known by headers (R-AUX-03, R-PER-05, R-ACT-22, R-ACT-40)', { timeout: 30_000 }, async () => {
    const serving = await offer().serve('http://127.0.0.1:0/mcp');
    closing.push(() => serving.close());
    for (const [auth, name, mayWrite] of good()) {
        const caller = await connect(serving.address, { auth: carried(auth) });
        assert.equal(called(await caller.callTool('note.read')), `${name} ${mayWrite}`);
        if (mayWrite) assert.equal(called(await caller.callTool('note.write')), `${name} true`);
        const actor = await connect(serving.address, { auth: carried(auth), opening: 'actions' });
        assert.equal(acted(await actor.action('note.read')), `${name} ${mayWrite}`);
        if (mayWrite) continue;
        const lacks = await actor.action('note.write', {}, once).catch(error => error);
        assert.deepEqual([lacks.type, lacks.details], ['AUTHORIZATION_FAILED', { scope: 'notes:write' }]);
    }
    for (const auth of wrong()) {
        const refused = await Client.connect(serving.address, { auth: carried(auth) }).catch(error => error);
        assert.deepEqual([refused.code, refused.cause.code, refused.cause.status], ['ERR_MCP_CLOSED', 'ERR_MCP_CARRIER', 401]);
    }
    const json = { 'content-type': 'application/json' };
    const action = { method: 'POST', headers: json, body: '{"action":"note.write","params":{}}' };
    for (const { headers, ...init } of [action, toolCall('note.write')]) {
        for (const [key, status, challenge] of [
            ['k-alice', 200, null],
            ['k-bob', 403, 'Bearer error="insufficient_scope", scope="notes:write"'],
            ['k-eve', 401, 'Bearer']
        ]) {
            const answer = await fetch(serving.address, { ...init, headers: { ...headers, 'x-api-key': key } });
            assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [status, challenge]);
            await answer.text();
        }
    }
});

test('who asks on stdin says so with each request (R-AUX-01, R-AUX-03, R-ACT-30)', { timeout: 30_000 }, async () => {
    const caller = await spawned(program);
    const actor = await spawned(program, { opening: 'actions' });
    for (const [auth, name, mayWrite] of good()) {
        const meta = { auth };
        assert.equal(called(await caller.callTool('note.read', {}, { meta })), `${name} ${mayWrite}`);
        assert.equal(acted(await actor.action('note.read', {}, { metadata: meta })), `${name} ${mayWrite}`);
        if (mayWrite) {
            assert.equal(called(await caller.callTool('note.write', {}, { meta })), `${name} true`);
            continue;
        }
        const lacks = await caller.callTool('note.write', {}, { meta }).catch(error => error);
        assert.deepEqual(lacks.data, { scope: 'notes:write' });
        const denied = await actor.action('note.write', {}, { metadata: meta, ...once }).catch(error => error);
        assert.deepEqual([denied.type, denied.actionCode], ['AUTHORIZATION_FAILED', 403]);
    }
    for (const meta of [{}, ...wrong().map(auth => ({ auth }))]) {
        await assert.rejects(caller.callTool('note.read', {}, { meta }), failsWith('ERR_MCP_PEER'));
        const unknown = await actor.action('note.read', {}, { metadata: meta, ...once }).catch(error => error);
        assert.deepEqual([unknown.type, unknown.actionCode], ['AUTHENTICATION_FAILED', 401]);
    }
});

test('the keys of tokens are replaced while a server runs (R-AUX-03)', { timeout: 30_000 }, async () => {
    const fresh = 'another secret of as many bytes..';
    const jwt = { keys: { june: { algorithm: 'HS256', key: SECRET } }, issuer: ['me', 'you'], anyAudience: true };
    const server = new Server('notes', '1', { policy: { jwt } }).tool('who', {}, (_, ctx) => ctx.principal);
    const caller = await connect(server);
    const asks = async token => called(await caller.callTool('who', {}, { meta: { auth: bearer(token) } }));
    const [june, july] = [token({ aud: 'there' }, 'june'), token({ iss: 'you' }, 'july', fresh)];
    assert.equal(await asks(june), 'jwt:me#carol');
    await assert.rejects(asks(july), failsWith('ERR_MCP_PEER'));
    server.replaceJwtKeys({ june: { algorithm: 'HS256', key: SECRET }, july: { algorithm: 'HS256', key: fresh } });
    assert.deepEqual([await asks(june), await asks(july)], ['jwt:me#carol', 'jwt:you#carol']);
    server.replaceJwtKeys({ july: { algorithm: 'HS256', key: fresh } });
    await assert.rejects(asks(june), failsWith('ERR_MCP_PEER'));
    for (const keys of [{}, { k: { algorithm: 'HS256', key: 'short' } }])
        assert.throws(() => server.replaceJwtKeys(keys), failsWith('ERR_MCP_MISUSE'));
    assert.throws(() => new Server('none', '1').replaceJwtKeys({ k: { algorithm: 'HS256', key: fresh } }), failsWith('ERR_MCP_MISUSE'));
    assert.equal(await asks(july), 'jwt:you#carol');
});

test('what nobody can be known by is refused', () => {
    for (const wrong of [
        { keys: { '': { client: 'alice' } } },
        { keys: { k: 'alice' } },
        { scopes: { 'note.write': 'write' } },
        { jwt: { algorithm: 'none', key: 's' } },
        { jwt: { algorithm: 'HS256', key: 's'.repeat(31), issuer: 'me', audience: 'here' } },
        { jwt: { algorithm: 'HS256', key: SECRET, audience: 'here' } },
        { jwt: { algorithm: 'HS256', key: SECRET, issuer: 'me' } },
        { jwt: { issuer: 'me', audience: 'here' } },
        { auditQueue: { whenFull: 'burst' } },
        { jwt: { algorithm: 'ES256', key: 'no PEM' } }
    ])
        assert.throws(() => new Server('notes', '1', { policy: wrong }), failsWith('ERR_MCP_MISUSE'), JSON.stringify(wrong));
});

test('clients show certificates, where the server asks for them (R-AUX-03, R-HTP-07)', { timeout: 20_000 }, async () => {
    const [tls, alice, eve] = [certificate(), certificate(), certificate()];
    const serving = await offer().serve('https://localhost:0/mcp', { tls: { ...tls, clients: alice.certificate } });
    closing.push(() => serving.close());
    const ask = shown =>
        new Promise((resolve, reject) => {
            const files = shown && { cert: readFileSync(shown.certificate), key: readFileSync(shown.key) };
            const headers = { 'content-type': 'application/json', 'x-api-key': 'k-bob' };
            const asked = request(serving.address, { method: 'POST', ca: readFileSync(tls.certificate), agent: false, headers, ...files });
            asked.on('response', response => resolve(response.resume().statusCode)).on('error', reject);
            asked.end('{"action":"note.read","params":{}}');
        });
    assert.equal(await ask(alice), 200);
    await assert.rejects(ask());
    await assert.rejects(ask(eve));
});
