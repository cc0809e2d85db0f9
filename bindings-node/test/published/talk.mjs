// A conversation with a published server: its lists, and three calls of each tool, with right, wrong and missing arguments.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const LISTS = { 'tools/list': 'tools', 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates', 'prompts/list': 'prompts' };
export const STATELESS = '2026-07-28';
const CLIENT = { name: 'raw', version: '1' };
const ANSWER_MS = 120_000;

/** A client of a server process, one request at a time. */
export class Talk {
    #lines;
    #count = 0;
    stderr = '';

    constructor(command, cwd, env, revision) {
        this.revision = revision;
        this.child = spawn(command[0], command.slice(1), { cwd, env: { ...process.env, ...env } });
        this.child.stdin.on('error', () => {});
        this.child.stderr.setEncoding('utf8').on('data', text => (this.stderr += text));
        this.exit = once(this.child, 'close').then(([code, signal]) => signal ?? code);
        this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    }

    send(message) {
        this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    }

    begin(method, params = {}) {
        if (this.revision === STATELESS) {
            const own = { protocolVersion: STATELESS, clientCapabilities: {}, clientInfo: CLIENT };
            params = { ...params, _meta: Object.fromEntries(Object.entries(own).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value])) };
        }
        this.send({ id: ++this.#count, method, ...(Object.keys(params).length > 0 && { params }) });
        return this.#count;
    }

    /** Sends a request and gives its answer, without the id, and with the notifications before it. */
    async request(method, params) {
        const wanted = this.begin(method, params);
        const before = [];
        for (;;) {
            const line = await this.#line();
            if (line === undefined) return { ended: await this.exit, before };
            // What the server itself prints goes to stderr under the engine.
            if (line.startsWith('{')) {
                const { id, ...message } = JSON.parse(line);
                if (id === wanted && message.method === undefined) return before.length > 0 ? { ...message, before } : message;
                before.push(message);
            }
        }
    }

    async #line() {
        let timer;
        const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`no answer: ${this.stderr.slice(-2000)}`)), ANSWER_MS)));
        const { value } = await Promise.race([this.#lines.next(), late]).finally(() => clearTimeout(timer));
        return value;
    }

    async open() {
        if (this.revision === STATELESS) {
            const found = await this.request('server/discover');
            if (found.result) {
                // The engine tells of the revisions with a handshake, too.
                found.result.supportedVersions = found.result.supportedVersions.includes(STATELESS);
                return found;
            }
            // A server without that revision is asked for an earlier one.
            this.revision = '2025-11-25';
            return ['refused', await this.open()];
        }
        const answer = await this.request('initialize', { protocolVersion: this.revision, capabilities: {}, clientInfo: CLIENT });
        this.send({ method: 'notifications/initialized' });
        return answer;
    }

    /** Ends stdin; gives how the process ended, by a signal of ours if it does not end by itself. */
    async end() {
        this.child.stdin.end();
        const timer = setTimeout(() => this.child.kill(), 10_000);
        return this.exit.finally(() => clearTimeout(timer));
    }
}

/** Everything that the server says, by step. */
export async function conversation(talk, server) {
    const said = { opening: await talk.open() };
    for (const method of Object.keys(LISTS)) said[method] = await talk.request(method);
    const tools = server.isListedOnly ? [] : (said['tools/list'].result?.tools ?? []);
    for (const { name, inputSchema } of tools) {
        if (server.without?.[name]) continue;
        const right = argumentsOf(inputSchema, name, server.known ?? {});
        for (const [how, given] of [['right', right], ['wrong', wrong(right)], ['missing', {}]])
            said[`${name} ${how} ${JSON.stringify(given)}`] = await talk.request('tools/call', { name, arguments: given });
    }
    if (!server.isListedOnly) {
        for (const { uri } of (said['resources/list'].result?.resources ?? []).slice(0, 3)) said[`read ${uri}`] = await talk.request('resources/read', { uri });
        for (const { name, arguments: args = [] } of (said['prompts/list'].result?.prompts ?? []).slice(0, 3))
            said[`prompt ${name}`] = await talk.request('prompts/get', { name, arguments: Object.fromEntries(args.map(one => [one.name, 'text'])) });
        said['no such tool'] = await talk.request('tools/call', { name: 'no-such-tool', arguments: {} });
    }
    said.end = await talk.end();
    return said;
}

/** Right arguments by a schema: the required ones, and those whose values are known. */
export function argumentsOf(schema, tool, known) {
    const made = {};
    for (const [name, of] of Object.entries(schema.properties ?? {})) {
        const value = known[`${tool}.${name}`] ?? known[name];
        if (value !== undefined) made[name] = value;
        else if (schema.required?.includes(name)) made[name] = example(of, schema);
    }
    return made;
}

/** A value by its schema. */
function example(of, whole) {
    if (of.$ref) return example(of.$ref.replace(/^#\//, '').split('/').reduce((within, part) => within[part], whole), whole);
    for (const key of ['default', 'const']) if (of[key] != null) return of[key];
    if (of.enum) return of.enum[0];
    for (const key of ['anyOf', 'oneOf', 'allOf']) if (of[key]) return example(of[key].find(one => one.type !== 'null') ?? of[key][0], whole);
    switch (Array.isArray(of.type) ? of.type[0] : of.type) {
        case 'object':
            return Object.fromEntries(Object.entries(of.properties ?? {}).filter(([name]) => of.required?.includes(name)).map(([name, one]) => [name, example(one, whole)]));
        case 'array':
            return [example(of.items ?? {}, whole)];
        case 'integer':
            return of.minimum ?? 1;
        case 'number':
            return of.minimum ?? 1.5;
        case 'boolean':
            return true;
        case 'null':
            return null;
        default:
            return 'text';
    }
}

/** The same arguments with values of other types. */
function wrong(right) {
    const entries = Object.entries(right);
    if (entries.length === 0) return { surplus: 1 };
    return Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'object' && !Array.isArray(value) ? ['wrong'] : { wrong: [1] }]));
}

/** What differs from run to run. */
const MASKS = [
    [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?([+-]\d\d:?\d\d|Z)?/g, 'TIME'],
    [/\b\d?\d:\d\d:\d\d([.,]\d+)?( [AP]M)?/g, 'TIME'],
    [/[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} TIME GMT[+-]\d{4} \([^)]*\)/g, 'TIME'],
    [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID'],
    [/\b\d+(\.\d+)?( ?(s|ms|seconds|milliseconds)\b)/g, 'N$2'],
    [/\b[Pp][Ii][Dd]:? \d+/g, 'PID']
];

/** A value without what differs from run to run. */
export function masked(value) {
    if (typeof value === 'string') return MASKS.reduce((text, [pattern, word]) => text.replace(pattern, word), value);
    if (Array.isArray(value)) return value.map(masked);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, masked(one)]));
}

/** The types in a value. */
export function shape(value) {
    if (Array.isArray(value)) return value.map(shape);
    if (typeof value !== 'object' || value === null) return typeof value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shape(one)]));
}
