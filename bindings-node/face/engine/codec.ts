import { Json } from '../content';
import { guarded, McpError } from '../errors';
import { native, type NativeDecoder } from '../native';
import { writeJson, type Integers } from '../numbers';
import { bytesOf, idToken, Message, messagesOf, WIDTH, type Id, type ReadOptions } from './message';

/** Filled by the engine, and copied before it is filled again. */
const one = new Int32Array(WIDTH);
const MAX_ROWS = 1024;
const many = new Int32Array(1 + MAX_ROWS * WIDTH);

/** One message. It is read where it lies: the bytes must not change as long as it is used. */
export function decode(data: Uint8Array | string, { integers, maxDepth }: ReadOptions = {}): Message {
    const bytes = bytesOf(data);
    native.decodeMessage(bytes, maxDepth, one);
    return new Message({ bytes, table: one.slice(), integers, maxDepth }, 0);
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

    constructor({ framing = 'line', maxMessageBytes, maxDepth, integers }: DecoderOptions = {}) {
        this.#native = guarded(() => new native.Decoder(framing, maxMessageBytes, maxDepth));
        this.#integers = integers;
        this.#maxDepth = maxDepth;
    }

    /** Takes bytes that came; they are copied. */
    feed(data: Uint8Array): this {
        this.#native.feed(data);
        return this;
    }

    /** Nothing more comes: what stands behind the last line end is a message, too. */
    feedEnd(): this {
        this.#native.feedEnd();
        return this;
    }

    /** The messages that are whole. */
    drain(): Message[] {
        let messages: Message[] = [];
        for (;;) {
            const bytes = this.#native.drain(many);
            const count = many[0]!;
            if (bytes !== null) {
                const table = many.slice(1, 1 + count * WIDTH);
                const more = messagesOf({ bytes, table, integers: this.#integers, maxDepth: this.#maxDepth }, count);
                messages = messages.length === 0 ? more : messages.concat(more);
            }
            if (count < MAX_ROWS) return messages;
        }
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
