// Raw requests of MCP over HTTP, as `fetch` sends them.
import { within } from './until.mjs';

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const STATELESS = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' }
};

/** A request that stands alone, for `fetch`. */
export function stateless(method, params = {}, { id = 1, meta, ...init } = {}) {
    const name = params.name ?? params.uri;
    const headers = {
        ...HEADERS,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name && { 'mcp-name': name }),
        ...init.headers
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...STATELESS, ...meta } } });
    return { method: 'POST', ...init, headers, body };
}

/** A call of a tool that stands alone. */
export const toolCall = (name, args = {}, more) => stateless('tools/call', { name, arguments: args }, more);

/** The messages of an answer, JSON or events. */
export function messages(type, text) {
    if (type === 'application/json') return [JSON.parse(text)];
    return [...text.matchAll(/^data: (.+)$/gm)].map(([, json]) => JSON.parse(json));
}

export async function ask(url, init) {
    const answer = fetch(url, init).then(async response => [response, await response.text()]);
    const what = `${init?.method ?? 'GET'} ${init?.body ?? url}`.slice(0, 200);
    const [response, text] = await within(`the answer to ${what}`, answer);
    const all = text === '' ? [] : messages(response.headers.get('content-type'), text);
    return { status: response.status, headers: response.headers, all, last: all.at(-1) };
}

/** What a tool said. */
export async function said(url, name, args, more) {
    const { last } = await ask(url, toolCall(name, args, more));
    return last.result?.content[0]?.text ?? last;
}

/** A session of the handshake era. */
export class Session {
    #id = 0;

    static async open(url, name = 'raw', revision = '2025-11-25', capabilities = {}) {
        const session = new Session();
        session.url = url;
        session.headers = HEADERS;
        const params = { protocolVersion: revision, capabilities, clientInfo: { name, version: '1' } };
        const { headers } = await session.post({ id: 'open', method: 'initialize', params });
        session.headers = {
            ...HEADERS,
            'mcp-session-id': headers.get('mcp-session-id'),
            'mcp-protocol-version': revision
        };
        await session.post({ method: 'notifications/initialized' });
        return session;
    }

    post(message) {
        return ask(this.url, { method: 'POST', headers: this.headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
    }

    request(method, params) {
        return this.post({ id: ++this.#id, method, params });
    }

    /** A stream of a POST, or of what belongs to no request. */
    stream(message) {
        const body = message && JSON.stringify({ jsonrpc: '2.0', ...message });
        return fetch(this.url, { method: message ? 'POST' : 'GET', headers: this.headers, ...(body && { body }) });
    }

    async said(name, args = {}) {
        const { last } = await this.request('tools/call', { name, arguments: args });
        return last.result.content[0]?.text;
    }

    end() {
        return fetch(this.url, { method: 'DELETE', headers: this.headers });
    }
}
