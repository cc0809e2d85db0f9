import type { ServerResponse } from 'node:http';
import type { Id, Message, SendOptions } from './shapes';

/** Receives the answer to one POST. */
export interface Answering {
    head(status: number, headers: Record<string, string>): void;
    write(text: string): void;
    end(text?: string): void;
}

/** @internal An answer on `node:http`. */
export function toNode(response: ServerResponse): Answering {
    return {
        head: (status, headers) => void response.writeHead(status, headers),
        write: text => void response.write(text),
        end: text => void response.end(text)
    };
}

/** @internal A web-standard answer; `cancelled` is called when its reader has gone. */
export function toWeb(cancelled: () => void): { answering: Answering; response: Promise<Response> } {
    const encoder = new TextEncoder();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    let resolve!: (response: Response) => void;
    let init: ResponseInit | undefined;
    const response = new Promise<Response>(made => (resolve = made));
    const begin = () => {
        const body = new ReadableStream<Uint8Array>({ start: made => void (controller = made), cancel: cancelled });
        resolve(new Response(body, init));
        init = undefined;
    };
    const answering: Answering = {
        head: (status, headers) => (init = { status, headers }),
        write: text => {
            if (init) begin();
            controller.enqueue(encoder.encode(text));
        },
        end: text => {
            if (init) return resolve(new Response(text ?? null, init));
            if (text) controller.enqueue(encoder.encode(text));
            controller.close();
        }
    };
    return { answering, response };
}

/**
 * @internal One POST of a client without a session, and its answer: JSON if nothing precedes the last response,
 * otherwise an event stream.
 */
export class StatelessExchange {
    readonly #answering: Answering;
    /** The unanswered requests. */
    readonly #open = new Set<Id>();
    readonly #answers: Message[] = [];
    readonly #isBatch: boolean;
    #isStream = false;

    /** The body is one message or an array of messages; `receive` is called with each. */
    constructor(answering: Answering, body: unknown, receive: (message: Message) => void) {
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
            answering.head(202, {});
            answering.end();
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
        if (this.#isStream) return this.#answering.end();
        this.#answering.head(200, { 'content-type': 'application/json' });
        this.#answering.end(JSON.stringify(this.#isBatch ? this.#answers : this.#answers[0]));
    }

    #event(message: Message): void {
        if (!this.#isStream) {
            this.#isStream = true;
            this.#answering.head(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' });
            this.#answers.splice(0).forEach(answer => this.#event(answer));
        }
        this.#answering.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    }
}

/** @internal */
export function refuse(answering: Answering, status: number, code: number, message: string): void {
    answering.head(status, { 'content-type': 'application/json', ...(status === 405 && { allow: 'POST' }) });
    answering.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}
