// Logins of clients: the functions of the program, its store, what fails and how, and when a login ends.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { inspect } from 'node:util';
import { Client, McpError, oauth } from 'mcpbolt';
import { agree, authorizing } from './authorizing.mjs';
import { until, within } from './until.mjs';
import { failsWith, folder, program } from './wire.mjs';

const closing = [];
afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
});

async function guarded(options) {
    const server = await authorizing(options);
    closing.push(server.close);
    return server;
}

async function connect(url, auth, options = {}) {
    const client = await within('the connection', Client.connect(url, { auth, ...options }));
    closing.push(() => client.close());
    return client;
}

const called = async (client, name) => (await within(name, client.callTool(name))).content[0].text;
/** The error of a login: of the call itself, or the cause of the connection's error. */
const loginError = async promise => {
    const error = await within('a failure', promise.then(() => assert.fail('it is logged in'), error => error));
    return error.code === 'ERR_MCP_CLOSED' ? error.cause : error;
};

/** A store in memory, which records what it does. */
function remembering(extra = {}) {
    const [documents, did] = [new Map(), []];
    const store = {
        load: async key => (did.push(['load', key]), documents.get(key)),
        save: async (key, document) => void (did.push(['save', key]), documents.set(key, document)),
        remove: async key => void (did.push(['remove', key]), documents.delete(key)),
        ...extra
    };
    return { documents, did, store };
}

test('a program opens the page; two clients share one login, and more scopes are asked for (R-AUC-16)', async () => {
    const server = await guarded();
    const pages = [];
    const auth = oauth({ clientName: 'Test', redirectUri: 'http://127.0.0.1:9/back', onAuthorize: page => (pages.push(page), agree(page)) });
    const [first, second] = await Promise.all([connect(server.url, auth), connect(server.url, auth)]);
    assert.deepEqual(await Promise.all([called(first, 'add'), called(second, 'add')]), ['added', 'added']);
    assert.equal(pages.length, 1);
    assert.equal(new URL(pages[0].url).searchParams.get('state'), pages[0].state);
    assert.equal(pages[0].redirectUri, 'http://127.0.0.1:9/back');
    assert.equal(server.seen.find(({ path }) => path === '/register').form.client_name, 'Test');
    assert.equal(await called(first, 'drop'), 'dropped');
    assert.equal(pages.length, 2);
    assert.match(new URL(pages[1].url).searchParams.get('scope'), /drop/);
    assert.equal(await called(second, 'drop'), 'dropped');
    assert.equal(pages.length, 2);
});

test('the browser comes back to this process, also to a function that waits for something else', async () => {
    const server = await guarded();
    const aborted = [];
    const visit = ({ url }, { signal }) => {
        void fetch(url);
        return new Promise(() => signal.addEventListener('abort', () => aborted.push(signal.reason.name)));
    };
    assert.equal(await called(await connect(server.url, oauth({ onAuthorize: visit })), 'add'), 'added');
    await until(() => aborted.length === 1);
    assert.deepEqual(aborted, ['AbortError']);
});

test('the other grants: devices, the program itself, workloads', async () => {
    const server = await guarded();
    const codes = [];
    const device = oauth({ grant: 'device', onDeviceCode: code => void codes.push(code) });
    assert.equal(await called(await connect(server.url, device), 'add'), 'added');
    assert.deepEqual(codes, [{ userCode: 'ABCD', verificationUri: `${server.origin}/enter`, expiresIn: 60_000 }]);
    const machine = oauth({ grant: 'clientCredentials', clientId: 'machine', clientSecret: 'secret of the machine' });
    assert.equal(await called(await connect(server.url, machine), 'add'), 'added');
    const asked = [];
    const workload = oauth({ grant: 'workload', clientId: 'pod', assertion: async request => (asked.push(request), 'signed by the platform') });
    assert.equal(await called(await connect(server.url, workload), 'add'), 'added');
    assert.deepEqual(asked, [{ issuer: server.origin, resource: server.url }]);
    assert.equal(server.seen.at(-1).form.assertion, 'signed by the platform');
});

test("a program's own store keeps a login over its end, with and without locks", async () => {
    const server = await guarded();
    for (const hasLocks of [false, true]) {
        let [held, released] = [new Set(), 0];
        const lock = key => {
            assert(!held.has(key), 'a lock is held once');
            held.add(key);
            return async () => void (held.delete(key), released++);
        };
        const { documents, did, store } = remembering(hasLocks ? { lock } : {});
        const before = server.paths('/authorize');
        const auth = () => oauth({ store, redirectUri: 'http://127.0.0.1:9/back', onAuthorize: agree });
        assert.equal(await called(await connect(server.url, auth()), 'add'), 'added');
        assert(documents.size > 0);
        // Another process begins with what is stored, and refreshes tokens that are refused.
        server.revoke();
        assert.equal(await called(await connect(server.url, auth()), 'add'), 'added');
        assert.equal(server.paths('/authorize') - before, 1);
        assert(did.some(([what]) => what === 'load'));
        await until(() => held.size === 0);
        assert.equal(released > 0, hasLocks);
    }
});

test('credentials in a folder are for their owner alone, and last', async () => {
    const server = await guarded();
    const place = mkdtempSync(join(tmpdir(), 'mcpbolt-login-'));
    closing.push(() => rmSync(place, { recursive: true }));
    const auth = () => oauth({ store: { folder: join(place, 'own') }, redirectUri: 'http://127.0.0.1:9/back', onAuthorize: agree });
    for (let time = 0; time < 2; time++) assert.equal(await called(await connect(server.url, auth()), 'add'), 'added');
    assert.equal(server.paths('/authorize'), 1);
    for (const name of readdirSync(join(place, 'own'))) assert.equal(statSync(join(place, 'own', name)).mode & 0o077, 0, name);
});

test('errors name the step, what the server said and what to do, and no secret', async () => {
    const back = { redirectUri: 'http://127.0.0.1:9/back', onAuthorize: agree };
    const { store } = remembering({ save: () => Promise.reject(new Error('the disk is full')) });
    const cases = [
        ['registration', { faults: { '/register': [400, { error: 'invalid_redirect_uri', error_description: 'no such place' }] } }, back, /invalid_redirect_uri: no such place/, 'invalid_redirect_uri'],
        ['token', { faults: { '/token': [400, { error: 'invalid_grant' }] } }, back, /invalid_grant/, 'invalid_grant'],
        ['discovery', { faults: { '/.well-known/oauth-authorization-server': [200, { issuer: 'https://evil.example' }] } }, back, /evil\.example/],
        ['authorization', {}, { ...back, onAuthorize: () => Promise.reject(new Error('no window')) }, /onAuthorize failed: no window/],
        ['authorization', {}, { ...back, onAuthorize: () => {} }, /onAuthorize returned nothing; .*return the address/],
        ['authorization', {}, { ...back, onAuthorize: () => 7 }, /returned number instead of a string/],
        ['authorization', {}, { ...back, onAuthorize: ({ redirectUri, state }) => `${redirectUri}?error=access_denied&state=${state}` }, /access_denied|iss/],
        ['authorization', {}, { ...back, timeout: 50, onAuthorize: () => new Promise(() => {}) }, /nobody answered within/],
        ['token', {}, { grant: 'workload', clientId: 'pod', assertion: () => Promise.reject(new Error('no token')) }, /assertion failed: no token/],
        ['store', {}, { ...back, store }, /save failed: the disk is full/],
        ['store', {}, { ...back, store: { ...store, load: () => Promise.reject(new Error('locked away')) } }, /load failed: locked away/]
    ];
    for (const [step, server, options, text, oauthError] of cases) {
        const { url, secrets } = await guarded(server);
        const error = await loginError(Client.connect(url, { auth: oauth(options) }));
        const what = `${step}, ${text}`;
        assert(error instanceof McpError, what);
        assert.deepEqual([error.code, error.loginStep], ['ERR_MCP_LOGIN', step], `${what}: ${error.message}`);
        assert.match(error.message, text);
        if (oauthError) assert.equal(error.oauthError, oauthError);
        const shown = `${error.stack} ${JSON.stringify(error)}`;
        for (const secret of secrets) assert(!shown.includes(secret), what);
    }
});

test('the private key of bound tokens is written down nowhere, in whatever form (R-AUC-17)', async () => {
    const server = await guarded({ scheme: 'DPoP' });
    const { documents, did, store } = remembering();
    const shown = [];
    const bound = (store, options = {}) => oauth({ dpop: true, store, redirectUri: 'http://127.0.0.1:9/back', onAuthorize: agree, ...options });
    const auth = bound(store);
    const client = await connect(server.url, auth, { trace: (_, message) => shown.push(message) });
    assert.equal(await called(client, 'add'), 'added');
    const [place, document] = [...documents].find(([key]) => key.startsWith('tokens '));
    const fails = async (store, options) => shown.push(inspect(await loginError(Client.connect(server.url, { auth: bound(store, options) })), { depth: 9 }));
    await fails({ ...store, save: () => Promise.reject(new Error('the disk is full')) }, { clientName: 'Another' }).catch(() => {});
    documents.set(place, document.slice(0, -1));
    await fails(store);
    documents.set(place, document.replace(/"dpop_key":"../, '"dpop_key":"!!'));
    await fails(store);
    shown.push(inspect({ auth, client, did, seen: server.seen }, { depth: 9 }));
    assert.ok(shown.length > 4 && shown.at(-1).includes('dpop:'), 'proofs are sent');
    const stored = JSON.parse(document).dpop_key;
    const key = createPrivateKey({ key: Buffer.from(stored, 'base64url'), format: 'der', type: 'pkcs8' });
    const secret = Buffer.from(key.export({ format: 'jwk' }).d, 'base64url');
    const lines = ['pkcs8', 'sec1'].flatMap(type => key.export({ format: 'pem', type }).split('\n').filter(line => line.length === 64));
    const forms = [stored, ...['base64url', 'base64', 'hex'].map(form => secret.toString(form)), [...secret.subarray(0, 8)].join(', '), ...lines];
    for (const text of shown) for (const form of forms) assert.ok(!text.includes(form), text);
});

test('options that contradict each other are refused at once', () => {
    const cases = [
        [{ grant: 'device' }, /onDeviceCode/],
        [{ grant: 'workload' }, /assertion/],
        [{ grant: 'enterprise', assertion: () => '' }, /identityProvider/],
        [{ redirectUri: 'http://127.0.0.1:9/' }, /onAuthorize/],
        [{ onAuthorize: 'no' }, /not a function/],
        [{ store: { load() {} } }, /save/],
        [{ store: 'nowhere' }, /store/],
        [{ grant: 'password' }, /grant/],
        [{ clientSecret: 's' }, /clientId/],
        [{ timeout: -1 }, /timeout/],
        [{ signingKey: { pem: 'no key', algorithm: 'ES256' } }, /signing key/],
        [{ clientID: 'x' }, /clientID/]
    ];
    for (const [options, text] of cases) assert.throws(() => oauth(options), error => failsWith('ERR_MCP_MISUSE')(error) && text.test(error.message), String(text));
});

test('a login is for HTTP', async () => {
    await assert.rejects(Client.connect('ws://127.0.0.1:9/', { auth: oauth() }), failsWith('ERR_MCP_MISUSE'));
});

test('a client closes while a call waits for the user', async () => {
    const server = await guarded();
    let asked = 0;
    const onAuthorize = page => (asked++ === 0 ? agree(page) : new Promise(() => {}));
    const client = await connect(server.url, oauth({ redirectUri: 'http://127.0.0.1:9/back', onAuthorize }));
    const dropped = client.callTool('drop');
    dropped.catch(() => {});
    await until(() => asked === 2);
    await within('the end', client.close());
    await assert.rejects(within('the call', dropped), failsWith('ERR_MCP_CLOSED'));
});

test('a login keeps no process alive: not one that waits for the user, nor an object that is not used', async () => {
    const server = await guarded();
    const source = `
        import { Client, oauth } from 'mcpbolt';
        import { agree } from './test/authorizing.mjs';
        oauth();
        let asked = 0;
        const onAuthorize = page => (asked++ === 0 ? agree(page) : new Promise(() => (console.log('asked'), void client.close())));
        const client = await Client.connect(${JSON.stringify(server.url)}, { auth: oauth({ redirectUri: 'http://127.0.0.1:9/back', onAuthorize }) });
        client.callTool('drop').catch(error => console.log(error.code));
    `;
    const said = await new Promise((resolve, reject) =>
        execFile(process.execPath, program(source), { cwd: folder, timeout: 30_000 }, (error, stdout) => (error ? reject(error) : resolve(stdout)))
    );
    assert.equal(said, 'asked\nERR_MCP_CLOSED\n');
});
