import { Json } from '../content';
import { guarded, McpError } from '../errors';
import { native, type NativeDecoder } from '../native';
import { writeJson, type Integers } from '../numbers';
import { bytesOf, idToken, Message, messagesOf, WIDTH, type Id, type ReadOptions } from './message';

/** Rows of messages that come one by one: so many are made at once. */
const POOLED = 64;
let pool = new Int32Array(POOLED * WIDTH);
let pooled = 0;
const MAX_ROWS = 1024;
/** Filled by the engine, and copied before it is filled again. */
const many = new Int32Array(1 + MAX_ROWS * WIDTH);

/** One message. It is read where it lies: the bytes must not change as long as it is used. */
export function decode(data: Uint8Array | string, { integers, maxDepth }: ReadOptions = {}): Message {
    const bytes = bytesOf(data);
    if (pooled === POOLED) [pool, pooled] = [new Int32Array(POOLED * WIDTH), 0];
    native.decodeMessage(bytes, maxDepth, pool, pooled);
    return new Message({ bytes, table: pool, integers, maxDepth }, pooled++ * WIDTH);
}

/** How messages are told apart on a stream of bytes: by line ends, by a length of four bytes before each, or as the first byte tells. */
export type Framing = 'line' | 'length' | 'detect';

export interface DecoderOptions extends ReadOptions {
    /** `line` by default. */
    framing?: Framing;
    /** The longest message, in bytes; 128 MiB by default. */
    maxMessageBytes?: number;
}

/**
 * Messages out of a stream of bytes, whatever its pieces are. What is no valid message, or too long, comes as one of
 * the kind `invalid`, and the next one is read as if nothing had been.
 */
export class Decoder {
    readonly #native: NativeDecoder;
    readonly #integers: Integers | undefined;
    readonly #maxDepth: number | undefined;
    /** What was fed last, and where in it what is not drained begins. */
    #fed: Buffer | undefined;
    #from = 0;

    constructor({ framing = 'line', maxMessageBytes, maxDepth, integers }: DecoderOptions = {}) {
        this.#native = guarded(() => new native.Decoder(framing, maxMessageBytes, maxDepth));
        this.#integers = integers;
        this.#maxDepth = maxDepth;
    }

    /** Takes bytes that came. Messages are read where they lie: the bytes must not change as long as those are used. */
    feed(data: Uint8Array): this {
        this.#keep();
        this.#fed = bytesOf(data);
        this.#from = this.#native.feedBegun(this.#fed);
        return this;
    }

    /** Copies what of it is not drained: its end comes later. */
    #keep(): void {
        const fed = this.#fed;
        this.#fed = undefined;
        if (fed && this.#from < fed.length) this.#native.feed(fed.subarray(this.#from));
    }

    /** Nothing more comes: what stands behind the last line end is a message, too. */
    feedEnd(): this {
        this.#keep();
        this.#native.feedEnd();
        return this;
    }

    /** The messages that are whole. */
    drain(): Message[] {
        let messages: Message[] = [];
        const take = (bytes: Buffer | null): boolean => {
            const count = many[0]!;
            if (bytes !== null && count > 0) {
                const table = many.slice(1, 1 + count * WIDTH);
                const more = messagesOf({ bytes, table, integers: this.#integers, maxDepth: this.#maxDepth }, count);
                messages = messages.length === 0 ? more : messages.concat(more);
            }
            return count === MAX_ROWS;
        };
        while (take(this.#native.drain(many)));
        const fed = this.#fed;
        if (fed && this.#from < fed.length) {
            do this.#from = this.#native.drainFrom(fed, this.#from, many);
            while (take(fed));
        }
        this.#keep();
        return messages;
    }
}

/** A request, without a line end. Its id may be the `rawId` of another message, as `json(rawId)`. */
export function encodeRequest(id: Id | Json, method: string, params?: object | Json): string {
    return `{"jsonrpc":"2.0","id":${idToken(id)},"method":${JSON.stringify(method)}${paramsOf(params)}}`;
}

export function encodeNotification(method: string, params?: object | Json): string {
    return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${paramsOf(params)}}`;
}

export function encodeResponse(id: Id | Json, result: object | Json): string {
    return `{"jsonrpc":"2.0","id":${idToken(id)},"result":${objectJson(result)}}`;
}

/** An error; without an id it is left out, `null` says that it is not known (before 2025-11-25). */
export function encodeError(id: Id | Json | null | undefined, code: number, message: string, data?: unknown): string {
    const member = id === undefined ? '' : `"id":${id === null ? null : idToken(id)},`;
    const error = data instanceof Json ? `{"code":${code},"message":${JSON.stringify(message)},"data":${data.text}}` : writeJson({ code, message, data });
    return `{"jsonrpc":"2.0",${member}"error":${error}}`;
}

function paramsOf(params: object | Json | undefined): string {
    return params === undefined ? '' : `,"params":${objectJson(params)}`;
}

/** @internal A JSON object. */
export function objectJson(value: object | Json): string {
    const text = value instanceof Json ? value.text.trimStart() : writeJson(value);
    if (text?.startsWith('{')) return text;
    throw new McpError('ERR_MCP_MISUSE', 'params and results are objects');
}
