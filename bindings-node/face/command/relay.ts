/**
 * Carries lines between a client on stdin and stdout and the process of a server, which may be replaced:
 *
 *     client ─▶ stdin  ─▶ Relay ─▶ server, then its successor
 *     client ◀─ stdout ◀─ Relay ◀─
 *
 * A successor gets the client's handshake again, whose answer the client does not see. Every other request is answered
 * by the process that got it, or else with an error.
 */
import type { Readable, Writable } from 'node:stream';
import { readJson, writeJson } from '../numbers';

/** @internal The pipes of a server's process. */
export interface Piped {
    stdin: Writable;
    stdout: Readable;
}

const RESTARTED = 'the server was restarted before it answered; call again';
const DOWN = 'the server is not running: it says why on stderr, and starts again when a file changes';
const INTERNAL = -32603;
const NEWLINE = 10;
/** Bytes of a line that are kept to read it. A longer one is passed on unread: no restart answers it, if it is a request. */
const MAX_LINE = 32 << 20;
const LISTS = ['tools', 'resources', 'prompts'];

type Message = Record<string, any>;

/** @internal */
export class Relay {
    #server: Piped | undefined;
    /** The client's handshake, which each successor gets. */
    #hello: Buffer | undefined;
    #helloId: string | undefined;
    #ready: Buffer | undefined;
    /** Whether the client has its answer. */
    #isGreeted = false;
    /** The process whose answer to the handshake the client does not see. */
    #replayed: Piped | undefined;
    #offers: string[] = [];
    /** The ids, in JSON, of the client's requests in flight. */
    readonly #asked = new Set<string>();
    #isHeld = false;
    #isMidLine = false;

    constructor(private readonly client: { stdin: Readable; stdout: Writable }, onEnd: () => void) {
        const lines = new Lines((line, isWhole) => this.#take(line, isWhole));
        client.stdin.on('data', piece => lines.push(piece)).on('end', onEnd).on('error', onEnd);
        // The end of stdin says that the client has gone.
        client.stdout.on('error', () => {});
        this.hold();
    }

    /** Reads nothing from the client until a process begins. */
    hold(): void {
        this.#isHeld = true;
        this.client.stdin.pause();
    }

    /** Introduces the client to a new process. */
    begin(server: Piped): void {
        this.#server = server;
        const lines = new Lines((line, isWhole) => this.#said(server, line, isWhole));
        server.stdin.on('error', () => {});
        server.stdin.on('drain', () => this.#resume());
        server.stdout.on('data', piece => {
            lines.push(piece);
            if (!this.client.stdout.writableNeedDrain) return;
            server.stdout.pause();
            this.client.stdout.once('drain', () => server.stdout.resume());
        });
        if (this.#hello !== undefined) {
            this.#replayed = this.#isGreeted ? server : undefined;
            server.stdin.write(this.#hello);
            if (this.#ready) server.stdin.write(this.#ready);
        }
        this.#isHeld = false;
        this.#resume();
    }

    #resume(): void {
        if (!this.#isHeld) this.client.stdin.resume();
    }

    /** Passes nothing on to the process any more. */
    leave(): void {
        this.#server = undefined;
    }

    /** The process has ended by itself. */
    ended(server: Piped): void {
        if (this.#server !== server) return;
        this.leave();
        this.#refuseAll(DOWN);
        this.#resume();
    }

    /** The process that was left has ended. */
    replaced(): void {
        this.#refuseAll(RESTARTED);
    }

    /** A line of the client. */
    #take(line: Buffer, isWhole: boolean): void {
        const { method, id, params } = isWhole ? parsed(line) : {};
        const key = keyOf(id);
        if (method === 'initialize') [this.#hello, this.#helloId, this.#isGreeted] = [line, key, false];
        else if (method === 'notifications/initialized') this.#ready = line;
        else if (method === 'notifications/cancelled') this.#asked.delete(keyOf(params?.requestId) ?? '');
        if (method !== undefined && key !== undefined) this.#asked.add(key);
        if (this.#server === undefined) return this.#refuseAll(DOWN);
        if (!this.#server.stdin.write(line)) this.client.stdin.pause();
    }

    /** A line of a process. */
    #said(server: Piped, line: Buffer, isWhole: boolean): void {
        const message = isWhole ? parsed(line) : {};
        const key = 'method' in message ? undefined : keyOf(message.id);
        if (key === undefined) return this.#say(line);
        if (key === this.#helloId && server === this.#replayed) {
            this.#replayed = undefined;
            return this.#announce();
        }
        this.#asked.delete(key);
        if (key !== this.#helloId || !message.result) return this.#say(line);
        this.#isGreeted = true;
        this.#say(this.#withChanges(message));
    }

    /** The answer to the handshake, which tells the client that lists may change, as this process does. */
    #withChanges(answer: Message): string {
        const capabilities = answer.result.capabilities ?? {};
        this.#offers = LISTS.filter(name => name in capabilities);
        for (const name of this.#offers) capabilities[name] = { ...capabilities[name], listChanged: true };
        return `${writeJson(answer)}\n`;
    }

    #announce(): void {
        for (const name of this.#offers) this.#say(`{"jsonrpc":"2.0","method":"notifications/${name}/list_changed"}\n`);
    }

    /** Answers all requests in flight with an error, except the handshake, which the next process answers. */
    #refuseAll(why: string): void {
        if (this.#isMidLine) this.#say('\n');
        const awaited = this.#isGreeted ? undefined : this.#helloId;
        for (const key of this.#asked) {
            if (key === awaited) continue;
            this.#asked.delete(key);
            this.#say(`{"jsonrpc":"2.0","id":${key},"error":${JSON.stringify({ code: INTERNAL, message: why })}}\n`);
        }
    }

    #say(line: Buffer | string): void {
        this.#isMidLine = line.at(-1) !== NEWLINE && line.at(-1) !== '\n';
        this.client.stdout.write(line);
    }
}

/** A message; empty for anything else, which is passed on as it is. */
function parsed(line: Buffer): Message {
    try {
        const message = readJson(line.toString(), 'bigint');
        return typeof message === 'object' && message !== null && !Array.isArray(message) ? message : {};
    } catch {
        return {};
    }
}

/** An id in JSON. */
function keyOf(id: unknown): string | undefined {
    return ['string', 'number', 'bigint'].includes(typeof id) ? writeJson(id) : undefined;
}

/** Splits bytes into lines, each with its end. One that is too long is passed on in pieces, the last with its end. */
class Lines {
    #pieces: Buffer[] = [];
    #bytes = 0;
    #isWhole = true;

    constructor(private readonly take: (line: Buffer, isWhole: boolean) => void) {}

    push(piece: Buffer): void {
        for (let from = 0; from < piece.length; ) {
            const end = piece.indexOf(NEWLINE, from);
            const to = end < 0 ? piece.length : end + 1;
            this.#pieces.push(piece.subarray(from, to));
            this.#bytes += to - from;
            from = to;
            if (end < 0 && this.#bytes <= MAX_LINE) return;
            const isWhole = this.#isWhole && end >= 0;
            this.#isWhole = end >= 0;
            const line = Buffer.concat(this.#pieces);
            [this.#pieces, this.#bytes] = [[], 0];
            this.take(line, isWhole);
        }
    }
}
