// The steps of a page of another origin with a server; it reports every step to the server of the page.
import { ask, messages, post } from './http.mjs';

const server = new URLSearchParams(location.search).get('server');
const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const about = { name: 'page', version: '1' };
const pause = ms => new Promise(done => setTimeout(done, ms));
const textOf = ({ result }) => result.content[0].text;
const steps = before => before.map(({ params }) => params.progress);

/** A session, with a stream of its own for what belongs to no request. */
async function session() {
    const capabilities = { sampling: {} };
    const opening = { protocolVersion: LEGACY, capabilities, clientInfo: about };
    const opened = await ask(server, {}, 'initialize', opening);
    const id = opened.response.headers.get('mcp-session-id');
    const headers = { 'mcp-session-id': id, 'mcp-protocol-version': LEGACY };
    const initialized = await post(server, headers, { method: 'notifications/initialized' });
    const stream = await fetch(server, { headers: { accept: 'text/event-stream', ...headers } });
    const told = messages(stream);
    const call = (name, args, meta, heard) =>
        ask(server, headers, 'tools/call', { name, arguments: args, ...(meta && { _meta: meta }) }, heard);

    const listed = await ask(server, headers, 'tools/list', {});
    const progress = await call('progress', { n: 20 }, { progressToken: 'p' });
    const touching = told.next();
    await call('touch', {});
    const asked = await call('ask_model', { text: 'hi' }, undefined, ({ id, params }) => {
        const content = { type: 'text', text: `said ${params.messages[0].content.text}` };
        return post(server, headers, { id, result: { role: 'assistant', model: 'm', content } });
    });
    const told_of = (await touching).value.method;
    const ended = await fetch(server, { method: 'DELETE', headers });
    const after = await post(server, headers, { id: 'late', method: 'ping' });
    return {
        revision: opened.result.protocolVersion,
        named: Boolean(id),
        initialized: initialized.status,
        listed: listed.kind,
        steps: steps(progress.before),
        answered: textOf(progress),
        told_of,
        asked: textOf(asked),
        ended: ended.ok,
        after: after.status
    };
}

/** Requests that stand alone. */
async function alone() {
    const _meta = {
        [`${META}protocolVersion`]: MODERN,
        [`${META}clientCapabilities`]: {},
        [`${META}clientInfo`]: about
    };
    const headersOf = (method, name) => ({
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        ...(name && { 'mcp-name': name })
    });
    const whole = params => ({ ...params, _meta: { ..._meta, ...params._meta } });
    const request = (method, params = {}) => ask(server, headersOf(method, params.name), method, whole(params));
    const call = (name, args = {}, meta) => request('tools/call', { name, arguments: args, _meta: meta });

    const discovered = await request('server/discover');
    const plain = await call('echo', { text: 'é 漢字 🦀' });
    const progress = await call('progress', { n: 20 }, { progressToken: 'p' });
    await call('stats');
    const params = whole({ name: 'sleep', arguments: { ms: 60_000 } });
    const sleep = { id: 'sleep', method: 'tools/call', params };
    const signal = AbortSignal.timeout(200);
    const given_up = await post(server, headersOf('tools/call', 'sleep'), sleep, { signal })
        .then(response => response.text())
        .catch(error => error.name);
    await pause(200);
    const wrong = await ask(server, headersOf('tools/list'), 'tools/call', whole({ name: 'echo', arguments: {} }));
    return {
        versions: discovered.result.supportedVersions,
        text: textOf(plain),
        kind: plain.kind,
        steps: steps(progress.before),
        given_up,
        sleeps: JSON.parse(textOf(await call('stats'))),
        mismatch: { status: wrong.response.status, code: wrong.error.code }
    };
}

/** What became of it, or why nothing did. */
const tried = step => step().catch(error => ({ failed: String(error) }));
const outcome = { session: await tried(session), alone: await tried(alone) };
const text = JSON.stringify(outcome, null, 2);
document.getElementById('outcome').textContent = text;
await fetch('outcome', { method: 'POST', body: text });
