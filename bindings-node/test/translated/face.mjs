// Puts the engine in the place of the official SDK's in-memory transport: tests of the SDK's servers then test those
// servers as `accelerate` serves them. Each server listens on a socket of its own, and messages go to and fro:
//
//     the SDK's client ─ InMemoryTransport ─ Carried ─ unix socket ─ engine ─ the SDK's server, accelerated
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { accelerate } from 'mcpbolt/sdk';

const folder = mkdtempSync(join(tmpdir(), 'mcpbolt-face-'));
const open = new Set();
let count = 0;
/** How long nothing arrives before all that was sent has arrived, in ms. */
const QUIET = 30;

class Carried {
    #asked = new Map();
    #isQuiet = true;

    constructor(server, transport) {
        this.server = server;
        this.transport = transport;
    }

    async start() {
        const path = join(folder, `${++count}`);
        this.serving = await accelerate(this.server).serve(`unix:${path}`, { signals: false });
        this.socket = connect(path);
        open.add(this);
        process.nextTick = tick;
        this.transport.onmessage = message => this.#write(message);
        this.transport.onclose = () => this.socket.end();
        void this.#read().finally(() => this.#end());
        await this.transport.start();
    }

    #write(message) {
        this.socket.write(`${JSON.stringify(message)}\n`);
    }

    /** One message for each turn of the event loop, in which the SDK's client handles it. */
    async #read() {
        for await (const line of createInterface({ input: this.socket })) {
            this.#isQuiet = false;
            const message = JSON.parse(line);
            const answered = this.#asked.get(message.id);
            if (answered) answered();
            else await this.transport.send(message);
            await turn();
        }
    }

    #end() {
        open.delete(this);
        for (const answered of this.#asked.values()) answered();
        void this.serving.close();
        if (open.size === 0) process.nextTick = nextTick;
    }

    /** Resolves when all that was sent before has arrived. */
    async settled() {
        await turn();
        const id = `settled ${++count}`;
        const answer = new Promise(resolve => this.#asked.set(id, resolve));
        this.#write({ jsonrpc: '2.0', id, method: 'ping' });
        await answer;
        this.#asked.delete(id);
        // What the engine reports of its own accord may come after the answer.
        do {
            this.#isQuiet = true;
            await pause(QUIET);
        } while (!this.#isQuiet);
    }
}

const settled = () => Promise.all([...open].map(one => one.settled()));

const { nextTick } = process;

/** In memory, a message arrives within the tick. The tests wait for that with `await new Promise(process.nextTick)`. */
function tick(callback, ...args) {
    const isWait = args.length === 1 && typeof args[0] === 'function' && callback.name === '';
    if (isWait) void settled().then(callback);
    else nextTick.call(process, callback, ...args);
}

/** The classes with which the tests are to run. */
export function faces({ McpServer, Server, Client, InMemoryTransport }) {
    return {
        Server: Server && class extends Server {
            connect(to) {
                return to instanceof InMemoryTransport ? new Carried(this, to).start() : super.connect(to);
            }

            sendLoggingMessage(...message) {
                return super.sendLoggingMessage(...message).then(settled);
            }

            createElicitationCompletionNotifier(...of) {
                const tell = super.createElicitationCompletionNotifier(...of);
                return () => tell().then(settled);
            }
        },
        McpServer: class extends McpServer {
            constructor(...args) {
                super(...args);
                const { server } = this;
                const [own, log] = [server.connect.bind(server), server.sendLoggingMessage.bind(server)];
                server.connect = to => (to instanceof InMemoryTransport ? new Carried(this, to).start() : own(to));
                server.sendLoggingMessage = (...message) => log(...message).then(settled);
            }
        },
        Client: class extends Client {
            async connect(...args) {
                await super.connect(...args);
                await settled();
            }
        }
    };
}
