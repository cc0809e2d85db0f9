import { Json } from '../content';
import { Message, type Id, type ReadOptions } from './message';
/** One message. It is read where it lies: the bytes must not change as long as it is used. */
export declare function decode(data: Uint8Array | string, { integers, maxDepth }?: ReadOptions): Message;
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
export declare class Decoder {
    #private;
    constructor({ framing, maxMessageBytes, maxDepth, integers }?: DecoderOptions);
    /** Takes bytes that came. Messages are read where they lie: the bytes must not change as long as those are used. */
    feed(data: Uint8Array): this;
    /** Nothing more comes: what stands behind the last line end is a message, too. */
    feedEnd(): this;
    /** The messages that are whole. */
    drain(): Message[];
}
/** A request, without a line end. Its id may be the `rawId` of another message, as `json(rawId)`. */
export declare function encodeRequest(id: Id | Json, method: string, params?: object | Json): string;
export declare function encodeNotification(method: string, params?: object | Json): string;
export declare function encodeResponse(id: Id | Json, result: object | Json): string;
/** An error; without an id it is left out, `null` says that it is not known (before 2025-11-25). */
export declare function encodeError(id: Id | Json | null | undefined, code: number, message: string, data?: unknown): string;
