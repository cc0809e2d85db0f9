// A server program over HTTP, as `Wire` of `wire.mjs` has one on pipes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { folder } from './wire.mjs';

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

export class Posting {
    #headers = HEADERS;
    #lines = [];
    #takers = [];
    #said = Promise.resolve();
    #over = new AbortController();
    #url;
    /** What belongs to no request, in order. */
    standing = [];
    stderr = '';

    /** `args` are those of node. */
    constructor(args, env = {}) {
        this.child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env } });
        this.#url = new Promise((resolve, reject) => {
            this.child.stderr.setEncoding('utf8').on('data', text => {
                this.stderr += text;
                const url = /http:\S+/.exec(this.stderr);
                if (url) resolve(url[0]);
            });
            this.child.on('close', () => reject(new Error(`the server has ended\n${this.stderr}`)));
        });
        this.#url.catch(() => {});
        this.exit = once(this.child, 'close');
    }

    #push(message) {
        const text = JSON.stringify(message);
        const taker = this.#takers.shift();
        if (taker) taker(text);
        else this.#lines.push(text);
    }

    line() {
        const next = this.#lines.shift();
        return next === undefined ? new Promise(resolve => this.#takers.push(resolve)) : Promise.resolve(next);
    }

    /** The message with that id; nothing else may come before it. */
    async answer(id) {
        const message = JSON.parse(await this.line());
        if (message.id !== id) throw new Error(`unexpected: ${JSON.stringify(message)}`);
        return message;
    }

    /** Everything up to the answer of that id. */
    async whole(id) {
        const all = [];
        for (;;) {
            const message = JSON.parse(await this.line());
            all.push(message);
            if (message.method === undefined && (message.id === id || message.id === null || message.id === undefined)) return all;
        }
    }

    send(message, headers) {
        // A message that is not a request is accepted before the next is sent.
        const sent = this.#said.then(() => this.#post(message, headers));
        if (message.id === undefined || message.method === undefined || message.method === 'initialize') this.#said = sent;
        sent.catch(error => this.#over.signal.aborted || this.#push({ id: message.id, failed: String(error) }));
    }

    call(id, name, args, meta) {
        this.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...(meta && { _meta: meta }) } });
    }

    async #post(message, more) {
        const { signal } = this.#over;
        const init = { method: 'POST', headers: { ...this.#headers, ...more }, body: JSON.stringify(message), signal };
        const response = await fetch(await this.#url, init);
        const session = response.headers.get('mcp-session-id');
        if (message.method === 'initialize' && session) {
            this.#headers = { ...HEADERS, 'mcp-session-id': session, 'mcp-protocol-version': message.params.protocolVersion };
        }
        if (message.method === 'notifications/initialized') await this.#stand();
        const reading = this.#read(response, answer => this.#push(answer));
        if (message.method === 'initialize') await reading;
        else reading.catch(() => {});
    }

    async #stand() {
        const { signal } = this.#over;
        const response = await fetch(await this.#url, { headers: { ...this.#headers, accept: 'text/event-stream' }, signal });
        const take = message => (message.id === undefined ? this.standing.push(message) : this.#push(message));
        this.#read(response, take).catch(() => {});
    }

    async #read(response, take) {
        const type = response.headers.get('content-type') ?? '';
        if (!type.startsWith('text/event-stream')) {
            const text = await response.text();
            if (text !== '') take(JSON.parse(text));
            return;
        }
        let rest = '';
        for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
            const events = (rest + piece).split('\n\n');
            rest = events.pop();
            // U+2028 ends no line here.
            const lines = events.flatMap(event => event.split('\n')).filter(line => line.startsWith('data: {'));
            for (const line of lines) take(JSON.parse(line.slice(6)));
        }
    }

    end() {
        this.#over.abort();
        this.child.kill();
        return this.exit;
    }
}
