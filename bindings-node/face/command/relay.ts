/**
 * Carries lines between a client on stdin and stdout and the process of a server, which may be replaced:
 *
 *     client ─▶ stdin  ─▶ Relay ─▶ server, then its successor
 *     client ◀─ stdout ◀─ Relay ◀─
 *
 * A successor gets the client's handshake again, whose answer the client does not see, and what the client listens to
 * (`subscriptions/listen`, from 2026-07-28 on). Every other request is answered by the process that got it, or else
 * with an error. What a process has asked the client is cancelled when the process is left, and answered to no other.
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
const VOID = 'the server was restarted';
const INTERNAL = -32603;
const NO_METHOD = -32601;
const NEWLINE = 10;
/** Bytes of a line that are kept to read it. A longer one is passed on unread: no restart answers it, if it is a request. */
const MAX_LINE = 32 << 20;
/** Requests to listen that outlive a restart; further ones get an error then. */
const MAX_LISTENING = 1000;
/** Questions whose answers are told apart; of further ones, the oldest are forgotten. */
const MAX_QUESTIONS = 1000;
const LISTS = ['tools', 'resources', 'prompts'];
const CANCELLED = 'notifications/cancelled';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const STREAM = 'io.modelcontextprotocol/subscriptionId';

type Message = Record<string, any>;

/** A request of the client to listen to changes. */
interface Listening {
    line: Buffer;
    /** The lists whose changes it asks for. */
    wanted: string[];
    /** The process that has acknowledged it. */
    server?: Piped;
}

/** A request of a process to the client. */
interface Question {
    server: Piped;
    /** The id that the process gave it. */
    id: unknown;
    /** Whether the client was told that it is cancelled. */
    isVoid?: boolean;
}

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
    /** What the client listens to, by the ids of the requests in JSON. */
    readonly #listening = new Map<string, Listening>();
    /** The ids, in JSON, of requests for what the server offers. */
    readonly #discovering = new Set<string>();
    /** The ids, in JSON, of the client's requests in flight, also of those in batches. */
    readonly #asked = new Set<string>();
    /** The open requests to the client, by the ids that the client knows, as JSON texts. */
    readonly #questions = new Map<string, Question>();
    #renamed = 0;
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
        for (const { line } of this.#listening.values()) server.stdin.write(line);
        this.#isHeld = false;
        this.#resume();
    }

    #resume(): void {
        if (!this.#isHeld) this.client.stdin.resume();
    }

    /** Passes nothing on to the process any more. */
    leave(): void {
        this.#server = undefined;
        // The rest of a line is still to come.
        if (!this.#isMidLine) this.#cancelQuestions();
    }

    /** Cancels what a process that is left has asked. */
    #cancelQuestions(): void {
        for (const [key, question] of this.#questions) {
            if (question.isVoid || question.server === this.#server) continue;
            question.isVoid = true;
            this.#say(`{"jsonrpc":"2.0","method":"${CANCELLED}","params":{"requestId":${key},"reason":"${VOID}"}}\n`);
        }
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
        const passed = changed(line, isWhole, (message, alone) => ('method' in message ? this.#asks(message, alone) : this.#answers(message)));
        if (this.#server === undefined) return this.#refuseAll(DOWN);
        if (passed !== undefined && !this.#server.stdin.write(passed)) this.client.stdin.pause();
    }

    /** A request or notification of the client. */
    #asks(message: Message, alone: () => Buffer): Message {
        const { method, id, params } = message;
        const key = keyOf(id);
        if (method === 'initialize') [this.#hello, this.#helloId, this.#isGreeted] = [alone(), key, false];
        else if (method === 'notifications/initialized') this.#ready = alone();
        else if (method === CANCELLED) this.#forget(keyOf(params?.requestId) ?? '');
        if (key === undefined) return message;
        this.#asked.add(key);
        if (method === 'server/discover') this.#discovering.add(key);
        if (method === 'subscriptions/listen' && this.#listening.size < MAX_LISTENING)
            this.#listening.set(key, { line: alone(), wanted: LISTS.filter(name => params?.notifications?.[`${name}ListChanged`]) });
        return message;
    }

    /** An answer of the client; none to a process that was left. */
    #answers(message: Message): Message | undefined {
        const key = keyOf(message.id) ?? '';
        const question = this.#questions.get(key);
        if (question === undefined) return message;
        this.#questions.delete(key);
        if (question.server !== this.#server) return undefined;
        return keyOf(question.id) === key ? message : { ...message, id: question.id };
    }

    /** A line of a process. */
    #said(server: Piped, line: Buffer, isWhole: boolean): void {
        const passed = changed(line, isWhole, message => ('method' in message ? this.#tells(server, message) : this.#answered(server, message)));
        if (passed !== undefined) this.#say(passed);
    }

    /** A request or notification of a process. */
    #tells(server: Piped, message: Message): Message | undefined {
        if (message.method === ACKNOWLEDGED) return this.#acknowledged(server, message);
        if (message.method === CANCELLED) return this.#withdrawn(server, message);
        const key = keyOf(message.id);
        if (key === undefined) return message;
        // An answer would no longer reach a process that is left.
        if (server !== this.#server) return undefined;
        // The client has not answered a process before this one, which gave the same id.
        const isTaken = (this.#questions.get(key)?.server ?? server) !== server;
        const id = isTaken ? `restart ${++this.#renamed}` : message.id;
        const seen = keyOf(id)!;
        // At the end of the map.
        this.#questions.delete(seen);
        this.#questions.set(seen, { server, id: message.id });
        if (this.#questions.size > MAX_QUESTIONS) this.#questions.delete(this.#questions.keys().next().value!);
        return isTaken ? { ...message, id } : message;
    }

    /** A process cancels what it has asked. */
    #withdrawn(server: Piped, message: Message): Message | undefined {
        const key = keyOf(message.params?.requestId);
        const isMeant = ([, asked]: [string, Question]) => asked.server === server && keyOf(asked.id) === key;
        const seen = [...this.#questions].find(isMeant)?.[0];
        // The client knows since the process was left.
        if (seen !== undefined && server !== this.#server) return undefined;
        return seen === undefined || seen === key ? message : { ...message, params: { ...message.params, requestId: JSON.parse(seen) } };
    }

    /** An answer of a process. */
    #answered(server: Piped, message: Message): Message | undefined {
        const key = keyOf(message.id);
        if (key === undefined) return message;
        if (key === this.#helloId && server === this.#replayed) {
            this.#replayed = undefined;
            return this.#announce(this.#offers);
        }
        if (this.#listening.has(key)) {
            // A process that is left ends what it listens to; its successor goes on.
            if (server !== this.#server) return undefined;
            // A server whose lists do not change.
            if (message.error?.code === NO_METHOD) return this.#acknowledged(server, acknowledgement(message.id));
        }
        const isOffer = (key === this.#helloId || this.#discovering.has(key)) && message.result;
        this.#forget(key);
        if (!isOffer) return message;
        if (key === this.#helloId) this.#isGreeted = true;
        return this.#withChanges(message);
    }

    #forget(key: string): void {
        for (const known of [this.#asked, this.#discovering, this.#listening]) known.delete(key);
    }

    /** A process listens for the client. One that does so again has other lists, perhaps. */
    #acknowledged(server: Piped, { params, ...message }: Message): Message | undefined {
        const stream = params?._meta?.[STREAM];
        const listening = this.#listening.get(keyOf(stream) ?? '');
        if (listening === undefined) return { ...message, params };
        const isAgain = listening.server !== undefined && listening.server !== server;
        listening.server = server;
        if (isAgain) return this.#announce(listening.wanted, { _meta: { [STREAM]: stream } });
        const notifications = { ...params.notifications, ...Object.fromEntries(listening.wanted.map(name => [`${name}ListChanged`, true])) };
        return { ...message, params: { ...params, notifications } };
    }

    /** The answer to the handshake, which tells the client that lists may change, as this process does. */
    #withChanges(answer: Message): Message {
        const capabilities = answer.result.capabilities ?? {};
        this.#offers = LISTS.filter(name => name in capabilities);
        for (const name of this.#offers) capabilities[name] = { ...capabilities[name], listChanged: true };
        return { ...answer };
    }

    #announce(lists: readonly string[], params?: object): undefined {
        for (const name of lists) this.#say(`${writeJson({ jsonrpc: '2.0', method: `notifications/${name}/list_changed`, params })}\n`);
    }

    /** Answers all requests in flight with an error, except the handshake and what listens, which the next process answers. */
    #refuseAll(why: string): void {
        if (this.#isMidLine) this.#say('\n');
        this.#cancelQuestions();
        const awaited = this.#isGreeted ? undefined : this.#helloId;
        for (const key of this.#asked) {
            if (key === awaited || this.#listening.has(key)) continue;
            this.#forget(key);
            this.#say(`{"jsonrpc":"2.0","id":${key},"error":${JSON.stringify({ code: INTERNAL, message: why })}}\n`);
        }
    }

    #say(line: Buffer | string): void {
        this.#isMidLine = line.at(-1) !== NEWLINE && line.at(-1) !== '\n';
        this.client.stdout.write(line);
    }
}

/** The message with which a server agrees to listen, to nothing so far. */
function acknowledgement(id: unknown): Message {
    return { jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: {}, _meta: { [STREAM]: id } } };
}

/** Gives a message in place of one, or none; `alone` makes a line of the message alone. */
type Change = (message: Message, alone: () => Buffer) => Message | undefined;

/** A line with its messages changed, which are several in a batch; `undefined` if none is left. Other lines stay as they are. */
function changed(line: Buffer, isWhole: boolean, change: Change): Buffer | string | undefined {
    const read = isWhole ? parsed(line) : undefined;
    const isBatch = Array.isArray(read);
    const before: unknown[] = isBatch ? read : [read];
    const alone = (message: unknown) => () => (isBatch ? Buffer.from(`${writeJson(message)}\n`) : line);
    const after = before.map(one => (typeof one === 'object' && one !== null && !Array.isArray(one) ? change(one, alone(one)) : one));
    if (after.every((one, i) => one === before[i])) return line;
    const left = after.filter(one => one !== undefined);
    return left.length === 0 ? undefined : `${writeJson(isBatch ? left : left[0])}\n`;
}

function parsed(line: Buffer): unknown {
    try {
        return readJson(line.toString(), 'bigint');
    } catch {
        return undefined;
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
