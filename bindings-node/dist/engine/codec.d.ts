import { Json } from '../content';
import { Message, type Id, type ReadOptions } from './message';
/** Decodes one message. Its parts are views of the bytes, which must not change as long as the message is used. */
export declare function decode(data: Uint8Array | string, { integers, maxDepth }?: ReadOptions): Message;
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
export declare class Decoder {
    #private;
    constructor({ framing, maxMessageBytes, maxDepth, integers }?: DecoderOptions);
    /**
     * Takes received bytes. Messages are views of the bytes, which must not change as long as the messages are used.
     */
    feed(data: Uint8Array): this;
    /** Marks the end of the stream: bytes after the last line end are a message, too. */
    feedEnd(): this;
    /** Returns the complete messages. */
    drain(): Message[];
}
/** Encodes a request, without a line end. To reuse the `rawId` of another message, pass `json(rawId)` as the id. */
export declare function encodeRequest(id: Id | Json, method: string, params?: object | Json): string;
export declare function encodeNotification(method: string, params?: object | Json): string;
export declare function encodeResponse(id: Id | Json, result: object | Json): string;
/** Encodes an error. Without an id the member is left out; `null` means that the id is unknown (before 2025-11-25). */
export declare function encodeError(id: Id | Json | null | undefined, code: number, message: string, data?: unknown): string;
