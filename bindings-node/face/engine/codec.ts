import { Json } from '../content';
import { guarded, McpError } from '../errors';
import { native, type NativeDecoder } from '../native';
import { writeJson, type Integers } from '../numbers';
import { bytesOf, idToken, Message, messagesOf, WIDTH, type Id, type ReadOptions } from './message';

/** How many rows for single messages are allocated at once. */
const POOLED = 64;
let pool = new Int32Array(POOLED * WIDTH);
let pooled = 0;
const MAX_ROWS = 1024;
/** Filled by the engine, and copied before it is filled again. */
const many = new Int32Array(1 + MAX_ROWS * WIDTH);

/** Decodes one message. Its parts are views of the bytes, which must not change as long as the message is used. */
export function decode(data: Uint8Array | string, { integers, maxDepth }: ReadOptions = {}): Message {
    const bytes = bytesOf(data);
    if (pooled === POOLED) [pool, pooled] = [new Int32Array(POOLED * WIDTH), 0];
    native.decodeMessage(bytes, maxDepth, pool, pooled);
    return new Message({ bytes, table: pool, integers, maxDepth }, pooled++ * WIDTH);
}

/**
 * How messages are separated in a byte stream: by line ends, by a four-byte length before each, or detected from the
 * first byte.
 */
export type Framing = 'line' | 'length' | 'detect';

export interface DecoderOptions extends ReadOptions {
    /** `line` by default. */
    framing?: Framing;
    /** Maximum size of a message in bytes; 128 MiB by default. */
    maxMessageBytes?: number;
}

/**
 * Decodes messages from a byte stream, however the stream is split. An invalid or too long message is returned with the
 * kind `invalid`, and decoding continues with the next one.
 */
export class Decoder {
    readonly #native: NativeDecoder;
    readonly #integers: Integers | undefined;
    readonly #maxDepth: number | undefined;
    /** The bytes that were fed last, and the offset of the first undrained byte in them. */
    #fed: Buffer | undefined;
    #from = 0;

    constructor({ framing = 'line', maxMessageBytes, maxDepth, integers }: DecoderOptions = {}) {
        this.#native = guarded(() => new native.Decoder(framing, maxMessageBytes, maxDepth));
        this.#integers = integers;
        this.#maxDepth = maxDepth;
    }

    /**
     * Takes received bytes. Messages are views of the bytes, which must not change as long as the messages are used.
     */
    feed(data: Uint8Array): this {
        this.#keep();
        this.#fed = bytesOf(data);
        this.#from = this.#native.feedBegun(this.#fed);
        return this;
    }

    /** Copies the undrained bytes: the end of their message is still to come. */
    #keep(): void {
        const fed = this.#fed;
        this.#fed = undefined;
        if (fed && this.#from < fed.length) this.#native.feed(fed.subarray(this.#from));
    }

    /** Marks the end of the stream: bytes after the last line end are a message, too. */
    feedEnd(): this {
        this.#keep();
        this.#native.feedEnd();
        return this;
    }

    /** Returns the complete messages. */
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

/** Encodes a request, without a line end. To reuse the `rawId` of another message, pass `json(rawId)` as the id. */
export function encodeRequest(id: Id | Json, method: string, params?: object | Json): string {
    return `{"jsonrpc":"2.0","id":${idToken(id)},"method":${JSON.stringify(method)}${paramsOf(params)}}`;
}

export function encodeNotification(method: string, params?: object | Json): string {
    return `{"jsonrpc":"2.0","method":${JSON.stringify(method)}${paramsOf(params)}}`;
}

export function encodeResponse(id: Id | Json, result: object | Json): string {
    return `{"jsonrpc":"2.0","id":${idToken(id)},"result":${objectJson(result)}}`;
}

/** Encodes an error. Without an id the member is left out; `null` means that the id is unknown (before 2025-11-25). */
export function encodeError(id: Id | Json | null | undefined, code: number, message: string, data?: unknown): string {
    const member = id === undefined ? '' : `"id":${id === null ? null : idToken(id)},`;
    const error = data instanceof Json ? `{"code":${code},"message":${JSON.stringify(message)},"data":${data.text}}` : writeJson({ code, message, data });
    return `{"jsonrpc":"2.0",${member}"error":${error}}`;
}

function paramsOf(params: object | Json | undefined): string {
    return params === undefined ? '' : `,"params":${objectJson(params)}`;
}

/** @internal Serializes a JSON object. */
export function objectJson(value: object | Json): string {
    const text = value instanceof Json ? value.text.trimStart() : writeJson(value);
    if (text?.startsWith('{')) return text;
    throw new McpError('ERR_MCP_MISUSE', 'params and results are objects');
}
