import { inspect } from 'node:util';
import { Json } from '../content';
import { type Integers } from '../numbers';
/** An id of a request: beyond 2^53 it is a `bigint`. */
export type Id = string | number | bigint;
export type MessageKind = 'request' | 'notification' | 'response' | 'error' | 'batch' | 'invalid';
/** How bytes are read. */
export interface ReadOptions {
    /** The deepest nesting of a message; 512 by default, 1024 at most. */
    maxDepth?: number;
    /** What integers beyond 2^53 become in params, results and errors; `number` by default. */
    integers?: Integers;
}
/**
 * A message that is proved to be JSON in UTF-8. Its parts become JavaScript's values when they are looked at, and only
 * then; `params`, `result` and `error` are parsed once. What is no valid message is of the kind `invalid`, and says by
 * `fault` and `code` why.
 *
 * It keeps the bytes of all the messages that came with it from being freed: what is kept for long is better copied.
 */
export declare class Message {
    #private;
    get kind(): MessageKind;
    get id(): Id | undefined;
    /** The id as it stands on the wire: what an answer repeats byte for byte. */
    get rawId(): string | undefined;
    get method(): string | undefined;
    get params(): any;
    get result(): any;
    get error(): {
        code: number;
        message: string;
        data?: unknown;
    } | undefined;
    /** The params as they came: bytes that are JSON. They are a view, not a copy, as all bytes here. */
    get rawParams(): Buffer | undefined;
    get rawResult(): Buffer | undefined;
    /** `params.arguments` as they came. */
    get rawArguments(): Buffer | undefined;
    /** The whole message as it came, without what ends it on the wire. */
    get raw(): Buffer;
    /** `params.name`, of a tool or a prompt. */
    get name(): string | undefined;
    /** `params.uri`, of a resource. */
    get uri(): string | undefined;
    /** Under which its sender wants to be told how far it is. */
    get progressToken(): Id | undefined;
    /** Why it is no valid message, in a sentence; only of the kind `invalid`. */
    get fault(): string | undefined;
    /** The number of the error to answer it with: -32700, -32600 or -32602; only of the kind `invalid`. */
    get code(): number | undefined;
    /** Whether a server answers it, be it with an error: nothing is answered that looks like a notification or an answer. */
    get invitesAnswer(): boolean;
    /** The messages of a batch; none of any other message. */
    messages(): Message[];
    /** The same message with another id, byte for byte otherwise; one without an id as it is. */
    withId(id: Id | Json): Buffer;
    [inspect.custom](): string;
}
