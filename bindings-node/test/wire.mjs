// A server program on raw pipes: what a test sends is exactly what goes over the wire.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach } from 'node:test';
import { Client, McpError } from 'mcpbolt';

export const folder = new URL('..', import.meta.url);

export const REVISION = '2025-06-18';

const initialize = (revision = REVISION) => ({
    jsonrpc: '2.0',
    id: 'open',
    method: 'initialize',
    params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
});

/** Runs the text of a program as a module that can import this package. */
export const program = source => ['--input-type=module', '-e', source];

const { MCPBOLT_TRACE = '' } = process.env;

/** Closed after each test, so that one that fails does not keep its process alive. */
const clients = new Set();
afterEach(async () => {
    for (const client of clients) await client.close();
    clients.clear();
});

const kept = async opening => {
    const client = await opening;
    clients.add(client);
    return client;
};

/** A client of a server in this process. */
export const connect = (server, options) => kept(Client.connect(server, options));

/** A client of a server program, given as its text. */
export const spawned = (source, options) => {
    const env = { MCPBOLT_TRACE, ...options?.env };
    return kept(Client.spawn(process.execPath, program(source), { cwd: folder.pathname, ...options, env }));
};

/** Whether an error is one of ours, of that code. */
export const failsWith = code => error => error instanceof McpError && error.code === code;

export class Wire {
    #lines;
    #early = [];
    stderr = '';

    /** `args` are those of node. */
    constructor(args, env = {}) {
        this.child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env } });
        this.child.stderr.setEncoding('utf8').on('data', text => (this.stderr += text));
        this.child.stdin.on('error', () => {});
        this.exit = once(this.child, 'close').then(([code, signal]) => ({ code, signal }));
        this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    }

    static async open(args, env) {
        const wire = new Wire(args, env);
        wire.send(initialize());
        await wire.answer('open');
        wire.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
        return wire;
    }

    /** Objects are written as JSON, strings and bytes as they are; a newline follows. */
    send(message) {
        this.child.stdin.write(typeof message === 'object' && !Buffer.isBuffer(message) ? JSON.stringify(message) : message);
        this.child.stdin.write('\n');
    }

    call(id, name, args, meta) {
        this.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...(meta && { _meta: meta }) } });
    }

    /** The next line, as text. */
    async line() {
        const { value, done } = await this.#lines.next();
        if (done) throw new Error(`the server has ended\n${this.stderr}`);
        return value;
    }

    /** The message with that id, whatever comes before it. */
    async answer(id) {
        const early = this.#early.findIndex(message => message.id === id);
        if (early >= 0) return this.#early.splice(early, 1)[0];
        for (;;) {
            const message = JSON.parse(await this.line());
            if (message.id === id) return message;
            this.#early.push(message);
        }
    }

    /** Everything that came before the last answer and was not asked for. */
    get others() {
        return this.#early;
    }

    end() {
        this.child.stdin.end();
        return this.exit;
    }
}
