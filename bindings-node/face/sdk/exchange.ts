import type { ServerResponse } from 'node:http';
import type { Answer, Taker } from '../mounted';
import { Streamer } from '../web';
import type { Id, Message, SendOptions } from './shapes';

/** @internal An answer on `node:http`. */
export function toNode(response: ServerResponse): Taker {
    return {
        head: (status, headers) => void response.writeHead(status, headers),
        piece: (text, isLast) => void (isLast ? response.end(text) : response.write(text)),
        room: () => {}
    };
}

/** @internal A web-standard answer; `cancelled` is called when its reader has gone. */
export function toWeb(cancelled: () => void): { answering: Taker; response: Promise<Response> } {
    let answering!: Taker;
    const response = new Promise<Response>(resolve => (answering = new Streamer({ more: () => {}, end: cancelled }, resolve)));
    return { answering, response };
}

/** The headers of an event stream. */
const STREAM = ['content-type', 'text/event-stream', 'cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no'];

/**
 * @internal One POST of a client without a session, and its answer: JSON if nothing precedes the last response,
 * otherwise an event stream.
 */
export class StatelessExchange {
    readonly #answering: Taker;
    /** The unanswered requests. */
    readonly #open = new Set<Id>();
    readonly #answers: Message[] = [];
    readonly #isBatch: boolean;
    #isStream = false;

    /** The body is one message or an array of messages; `receive` is called with each. */
    constructor(answering: Taker, body: unknown, receive: (message: Message) => void) {
        this.#answering = answering;
        this.#isBatch = Array.isArray(body);
        const messages = (this.#isBatch ? body : [body]) as Message[];
        const areMessages = messages.every(message => typeof message === 'object' && message?.jsonrpc === '2.0');
        if (!areMessages) {
            refuse(answering, 400, -32700, 'Parse error: Invalid JSON-RPC message');
            return;
        }
        if (messages.length === 0) {
            refuse(answering, 400, -32600, 'an empty batch');
            return;
        }
        for (const { id, method } of messages) if (method !== undefined && id !== undefined) this.#open.add(id);
        if (this.#open.size === 0) {
            answering.head(202, []);
            answering.piece('', true);
        }
        messages.forEach(receive);
    }

    send(message: Message, { relatedRequestId }: SendOptions = {}): void {
        const isAnswer = message.method === undefined;
        // A message that belongs to no request cannot be delivered.
        if (isAnswer ? !this.#open.delete(message.id!) : relatedRequestId === undefined || !this.#open.has(relatedRequestId)) return;
        if (isAnswer && !this.#isStream) this.#answers.push(message);
        else this.#event(message);
        if (this.#open.size > 0) return;
        if (this.#isStream) return this.#answering.piece('', true);
        this.#answering.head(200, ['content-type', 'application/json']);
        this.#answering.piece(JSON.stringify(this.#isBatch ? this.#answers : this.#answers[0]), true);
    }

    #event(message: Message): void {
        if (!this.#isStream) {
            this.#isStream = true;
            this.#answering.head(200, STREAM);
            this.#answers.splice(0).forEach(answer => this.#event(answer));
        }
        this.#answering.piece(`event: message\ndata: ${JSON.stringify(message)}\n\n`, false);
    }
}

/** @internal The answer to a request that is refused. */
export function refusal(status: number, code: number, message: string, data?: unknown): Answer {
    const headers = ['content-type', 'application/json', ...(status === 405 ? ['allow', 'POST'] : [])];
    return { status, headers, text: JSON.stringify({ jsonrpc: '2.0', error: { code, message, data }, id: null }) };
}

/** @internal */
export function refuse(answering: Taker, status: number, code: number, message: string): void {
    const { headers, text } = refusal(status, code, message);
    answering.head(status, headers);
    answering.piece(text, true);
}
