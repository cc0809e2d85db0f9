import { inspect } from 'node:util';
import { Json } from '../content';
import { McpError } from '../errors';
import { native } from '../native';
import { readJson, type Integers } from '../numbers';

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

/** @internal Integers per message in a table: see `src/engine/rows.rs`. */
export const WIDTH = 19;

/** The offset of each part among them. */
const enum At {
    Kind = 0,
    Start = 1,
    End = 2,
    Id = 3,
    Known = 5,
    Method = 6,
    Body = 8,
    Fault = 8,
    Offset = 9,
    Name = 10,
    Uri = 12,
    Arguments = 14,
    ProgressToken = 16,
    ShortId = 18
}

const KIND_MASK = 7;
const INVITES_ANSWER = 8;
const SHORT_ID = 16;
const KINDS = ['request', 'notification', 'response', 'error', 'batch', 'invalid'] as const;
const { methods: METHODS, faults: FAULTS }: { methods: string[]; faults: [code: number, sentence: string][] } = JSON.parse(native.rowTables());

/** @internal The bytes of messages, and what was found in them. */
export interface Source {
    bytes: Buffer;
    table: Int32Array;
    integers: Integers | undefined;
    maxDepth: number | undefined;
}

/**
 * A message that is verified to be UTF-8 and JSON. Its parts are converted to JavaScript values on access only;
 * `params`, `result` and `error` are parsed once. An invalid message has the kind `invalid`; `fault` and `code` say
 * why.
 *
 * A message keeps the bytes of all messages that arrived with it in memory: copy what you keep for long.
 */
export class Message {
    /** @internal */
    readonly source: Source;
    /** @internal */
    readonly at: number;
    /** @internal The parsed params, result or error: a message has one of them. */
    value: any;

    /** @internal */
    constructor(source: Source, at: number) {
        this.source = source;
        this.at = at;
        this.value = undefined;
    }

    get kind(): MessageKind {
        return KINDS[this.source.table[this.at]! & KIND_MASK]!;
    }

    get id(): Id | undefined {
        const { table } = this.source;
        if (table[this.at]! & SHORT_ID) return table[this.at + At.ShortId]!;
        const token = this.rawId;
        return token === undefined ? undefined : readJson(token, 'bigint');
    }

    /** The id as on the wire, which an answer repeats byte for byte. */
    get rawId(): string | undefined {
        return this.#text(At.Id);
    }

    get method(): string | undefined {
        const known = this.source.table[this.at + At.Known]!;
        return known >= 0 ? METHODS[known] : this.#string(At.Method);
    }

    get params(): any {
        return this.#is(0, 1) ? this.#body() : undefined;
    }

    get result(): any {
        return this.#is(2, 2) ? this.#body() : undefined;
    }

    get error(): { code: number; message: string; data?: unknown } | undefined {
        return this.#is(3, 3) ? this.#body() : undefined;
    }

    /** The raw params: JSON bytes. Like all bytes here they are a view, not a copy. */
    get rawParams(): Buffer | undefined {
        return this.#is(0, 1) ? this.#raw(At.Body) : undefined;
    }

    get rawResult(): Buffer | undefined {
        return this.#is(2, 2) ? this.#raw(At.Body) : undefined;
    }

    /** The raw `params.arguments`. */
    get rawArguments(): Buffer | undefined {
        return this.#raw(At.Arguments);
    }

    /** The whole raw message, without its framing on the wire. */
    get raw(): Buffer {
        return this.#raw(At.Start)!;
    }

    /** `params.name`, of a tool or a prompt. */
    get name(): string | undefined {
        return this.#string(At.Name);
    }

    /** `params.uri`, of a resource. */
    get uri(): string | undefined {
        return this.#string(At.Uri);
    }

    /** The token under which the sender wants to receive progress. */
    get progressToken(): Id | undefined {
        const token = this.#text(At.ProgressToken);
        return token === undefined ? undefined : readJson(token, 'bigint');
    }

    /** Why the message is invalid, in a sentence; only for the kind `invalid`. */
    get fault(): string | undefined {
        if (!this.#is(5, 5)) return undefined;
        const { table } = this.source;
        const sentence = FAULTS[table[this.at + At.Fault]!]![1];
        const offset = table[this.at + At.Offset]!;
        return offset < 0 ? sentence : `${sentence} at byte ${offset}`;
    }

    /** The JSON-RPC code of the error to answer with: -32700, -32600 or -32602; only for the kind `invalid`. */
    get code(): number | undefined {
        return this.#is(5, 5) ? FAULTS[this.source.table[this.at + At.Fault]!]![0] : undefined;
    }

    /**
     * Whether a server answers the message, if only with an error. A message that looks like a notification or a
     * response gets no answer.
     */
    get invitesAnswer(): boolean {
        return (this.source.table[this.at]! & INVITES_ANSWER) !== 0;
    }

    /** The messages of a batch; empty for any other kind. */
    messages(): Message[] {
        if (!this.#is(4, 4)) return [];
        const bytes = this.raw;
        const { maxDepth, integers } = this.source;
        let table = new Int32Array(16 * WIDTH);
        const count = native.decodeBatch(bytes, maxDepth, table);
        if (count * WIDTH > table.length) {
            table = new Int32Array(count * WIDTH);
            native.decodeBatch(bytes, maxDepth, table);
        }
        return messagesOf({ bytes, table, integers, maxDepth }, count);
    }

    /** Returns the same bytes with another id; a message without an id is returned unchanged. */
    withId(id: Id | Json): Buffer {
        const { bytes, table } = this.source;
        const place = (at: number) => table[this.at + at]!;
        const [start, end] = [place(At.Id), place(At.Id + 1)];
        if (start === end) return this.raw;
        const [head, tail] = [bytes.subarray(place(At.Start), start), bytes.subarray(end, place(At.End))];
        return Buffer.concat([head, Buffer.from(idToken(id)), tail]);
    }

    [inspect.custom](): string {
        return `<Message ${[this.kind, this.rawId, this.method].filter(part => part !== undefined).join(' ')}>`;
    }

    #is(first: number, last: number): boolean {
        const kind = this.source.table[this.at]! & KIND_MASK;
        return kind >= first && kind <= last;
    }

    #text(part: number): string | undefined {
        const { bytes, table } = this.source;
        const at = this.at + part;
        const [start, end] = [table[at]!, table[at + 1]!];
        return start === end ? undefined : bytes.toString('utf8', start, end);
    }

    #raw(part: number): Buffer | undefined {
        const { bytes, table } = this.source;
        const at = this.at + part;
        const [start, end] = [table[at]!, table[at + 1]!];
        return start === end ? undefined : bytes.subarray(start, end);
    }

    #string(part: number): string | undefined {
        const token = this.#text(part);
        return token?.startsWith('"') ? JSON.parse(token) : undefined;
    }

    #body(): any {
        if (this.value === undefined) {
            const text = this.#text(At.Body);
            if (text !== undefined) this.value = readJson(text, this.source.integers ?? 'number');
        }
        return this.value;
    }
}

/** @internal */
export function messagesOf(source: Source, count: number): Message[] {
    const messages = new Array<Message>(count);
    for (let i = 0; i < count; i++) messages[i] = new Message(source, i * WIDTH);
    return messages;
}

/** @internal */
export function bytesOf(data: Uint8Array | string): Buffer {
    if (typeof data === 'string') return Buffer.from(data);
    return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** @internal An id in its wire form. */
export function idToken(id: Id | Json): string {
    if (id instanceof Json) return id.text;
    const isId = typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);
    if (!isId) throw new McpError('ERR_MCP_MISUSE', 'an id is a string, an integer within 2^53, or a bigint');
    return typeof id === 'string' ? JSON.stringify(id) : String(id);
}
