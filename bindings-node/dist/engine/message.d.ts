import { inspect } from 'node:util';
import { Json } from '../content';
import { type Integers } from '../numbers';
/** The id of a request; a `bigint` beyond 2^53. */
export type Id = string | number | bigint;
export type MessageKind = 'request' | 'notification' | 'response' | 'error' | 'batch' | 'invalid';
/** Options for decoding. */
export interface ReadOptions {
    /** Maximum nesting depth of a message; 512 by default, 1024 at most. */
    maxDepth?: number;
    /** How integers beyond 2^53 appear in params, results and errors; `number` by default. */
    integers?: Integers;
}
/**
 * A message that is verified to be UTF-8 and JSON. Its parts are converted to JavaScript values on access only;
 * `params`, `result` and `error` are parsed once. An invalid message has the kind `invalid`; `fault` and `code` say
 * why.
 *
 * A message keeps the bytes of all messages that arrived with it in memory: copy what you keep for long.
 */
export declare class Message {
    #private;
    get kind(): MessageKind;
    get id(): Id | undefined;
    /** The id as on the wire, which an answer repeats byte for byte. */
    get rawId(): string | undefined;
    get method(): string | undefined;
    get params(): any;
    get result(): any;
    get error(): {
        code: number;
        message: string;
        data?: unknown;
    } | undefined;
    /** The raw params: JSON bytes. Like all bytes here they are a view, not a copy. */
    get rawParams(): Buffer | undefined;
    get rawResult(): Buffer | undefined;
    /** The raw `params.arguments`. */
    get rawArguments(): Buffer | undefined;
    /** The whole raw message, without its framing on the wire. */
    get raw(): Buffer;
    /** `params.name`, of a tool or a prompt. */
    get name(): string | undefined;
    /** `params.uri`, of a resource. */
    get uri(): string | undefined;
    /** The token under which the sender wants to receive progress. */
    get progressToken(): Id | undefined;
    /** Why the message is invalid, in a sentence; only for the kind `invalid`. */
    get fault(): string | undefined;
    /** The JSON-RPC code of the error to answer with: -32700, -32600 or -32602; only for the kind `invalid`. */
    get code(): number | undefined;
    /**
     * Whether a server answers the message, if only with an error. What looks like a notification or a response gets no
     * answer.
     */
    get invitesAnswer(): boolean;
    /** The messages of a batch; empty for any other kind. */
    messages(): Message[];
    /** Returns the same bytes with another id; a message without an id is returned unchanged. */
    withId(id: Id | Json): Buffer;
    [inspect.custom](): string;
}
