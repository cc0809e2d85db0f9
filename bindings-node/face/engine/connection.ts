import type { Json } from '../content';
import { guarded, revive, type McpError } from '../errors';
import { native, type NativeEngineConnection } from '../native';
import { writeJson } from '../numbers';
import { REVISIONS, type Implementation, type Progress, type Revision } from '../protocol';
import { objectJson, type DecoderOptions } from './codec';
import { bytesOf, Message, WIDTH, type Source } from './message';
import { Request } from './request';

export interface ConnectionOptions extends DecoderOptions {
    side: 'server' | 'client';
    /** How it introduces itself. */
    name: string;
    /** `0.0.0` by default. */
    version?: string;
    /** What it offers, by name. */
    capabilities?: object;
    /** What a server tells the model about itself. */
    instructions?: string;
    /** The revisions that it speaks; all by default. */
    revisions?: readonly Revision[];
    /** How a client opens it: `probe` asks for the stateless era first. */
    opening?: 'probe' | 'handshake' | 'stateless';
    /** How long each request waits for news, in ms; 60 s by default. */
    timeout?: number;
    /** What the program's clock says, in ms, if it gives the time itself: it then does so with every call that takes it. */
    now?: number;
}

/** What happened on a connection. */
export type Event =
    /** It is open: from here on requests may be sent. */
    | { type: 'opened'; revision: Revision }
    /** The other side asks. */
    | Request
    /** It does not ask any more. */
    | { type: 'cancelled'; request: Request; reason: string | undefined }
    /** A notification that the engine does not deal with itself. */
    | { type: 'notification'; message: Message }
    /** How far a request of this side's is. */
    | { type: 'progress'; number: number; progress: Progress }
    /** A request of this side's is over: its answer, or why there is none. */
    | { type: 'answered'; number: number; message: Message; error?: undefined }
    | { type: 'answered'; number: number; error: McpError; message?: undefined }
    /** Something came that concerns nobody. */
    | { type: 'stray'; what: Stray; frame: Buffer }
    /** It has ended, and so has every request. */
    | { type: 'closed'; reason: McpError };

/** What came and concerned nobody: an answer that nobody waits for, something that is no message, … */
export type Stray = 'answer' | 'bad frame' | 'oversize' | 'cancel' | 'unexpected';

/** How a request is sent. */
export interface SendOptions {
    /** How long to wait without news, in ms; progress starts it again. */
    timeout?: number;
    /** How long to wait in all, in ms. */
    maxTimeout?: number;
    /** Asks to be told how far it is. */
    progress?: boolean;
    /** More members of its `_meta`. */
    meta?: Readonly<Record<string, unknown>>;
}

/** As `src/engine/events.rs` counts them. */
const enum Happened {
    Opened,
    Request,
    Cancelled,
    Notification,
    Progress,
    Answered,
    Failed,
    Stray,
    Closed
}

const STRAYS: readonly Stray[] = ['answer', 'bad frame', 'oversize', 'cancel', 'unexpected'];
const HEAD = 3;
const ROW = HEAD + WIDTH;
const MAX_ROWS = 256;
const rows = new Int32Array(2 + MAX_ROWS * ROW);

/**
 * The state of one side of a connection, without threads, sockets or a clock: a program feeds it the bytes that come,
 * drains what happened, and writes what it puts out. Handshake, discovery, pings, cancellation, time limits, bad frames
 * and revisions are its business; the other requests are the program's.
 */
export class Connection {
    readonly #native: NativeEngineConnection;
    readonly #options: ConnectionOptions;
    /** The other side's requests that wait, by their numbers. */
    readonly #requests: (Request | undefined)[] = [];

    constructor(options: ConnectionOptions) {
        const { capabilities = {}, revisions, timeout, ...rest } = options;
        const { side, name, version = '0.0.0', instructions, opening = 'probe', framing = 'line' } = rest;
        const { maxMessageBytes, maxDepth, now } = rest;
        this.#options = options;
        this.#native = guarded(
            () =>
                new native.EngineConnection({
                    ...{ side, name, version, instructions, opening, framing, maxMessageBytes, maxDepth, now },
                    capabilities: objectJson(capabilities),
                    revisions: revisions && [...revisions],
                    timeoutMs: timeout
                })
        );
    }

    /** Takes bytes that came; they are copied. */
    feed(data: Uint8Array | string, now?: number): void {
        guarded(() => this.#native.feed(bytesOf(data), now));
    }

    /** Nothing more comes. */
    feedEnd(now?: number): void {
        guarded(() => this.#native.feedEnd(now));
    }

    /** What happened since the last time, in order. */
    drain(): Event[] {
        const events: Event[] = [];
        do {
            const bytes = guarded(() => this.#native.drain(rows));
            const end = 2 + rows[0]! * ROW;
            if (bytes === null) break;
            const { integers, maxDepth } = this.#options;
            const table = rows.slice(0, end);
            const source: Source = { bytes, table, integers, maxDepth };
            for (let at = 2; at < end; at += ROW) events.push(this.#event(source, at));
        } while (rows[1] !== 0);
        return events;
    }

    #event(source: Source, at: number): Event {
        const { bytes, table } = source;
        const [kind, a, b] = [table[at] as Happened, table[at + 1]!, table[at + 2]!];
        const message = () => new Message(source, at + HEAD);
        const span = () => bytes.subarray(table[at + HEAD + 1], table[at + HEAD + 2]);
        const json = () => JSON.parse(span().toString());
        switch (kind) {
            case Happened.Opened:
                return { type: 'opened', revision: span().toString() as Revision };
            case Happened.Request:
                return (this.#requests[a] = new Request(this.#native, a, message(), REVISIONS[b >> 1]!, (b & 1) === 1));
            case Happened.Cancelled: {
                const request = this.#requests[a]!;
                request.cancel();
                this.#requests[a] = undefined;
                return { type: 'cancelled', request, reason: span().toString() || undefined };
            }
            case Happened.Notification:
                return { type: 'notification', message: message() };
            case Happened.Progress:
                return { type: 'progress', number: numberOf(a, b), progress: json() };
            case Happened.Answered:
                return { type: 'answered', number: numberOf(a, b), message: message() };
            case Happened.Failed:
                return { type: 'answered', number: numberOf(a, b), error: revive(json()) };
            case Happened.Stray:
                return { type: 'stray', what: STRAYS[a]!, frame: span() };
            case Happened.Closed:
                return { type: 'closed', reason: revive(json()) };
        }
    }

    /** What is to be written, all of it: it is gone from here. `undefined` when there is nothing. */
    output(now?: number): Buffer | undefined {
        return guarded(() => this.#native.output(now)) ?? undefined;
    }

    /** Sends a request; gives the number that its outcome and its progress name. */
    request(method: string, params?: object | Json, options: SendOptions = {}): number {
        const { timeout, maxTimeout, progress = false, meta } = options;
        const json = params && objectJson(params);
        return guarded(() => this.#native.request(method, json, timeout, maxTimeout, progress, meta && writeJson(meta)));
    }

    /** Gives up on a request of this side's, and tells the other side. Nothing more is heard of it. */
    cancel(number: number, reason?: string): void {
        this.#native.cancel(number, reason);
    }

    /** Sends a notification. */
    notify(method: string, params?: object | Json): void {
        guarded(() => this.#native.notify(method, params && objectJson(params)));
    }

    /** Milliseconds until `handleTimeout` is to be called, if time alone changes anything. */
    timeout(now?: number): number | undefined {
        return guarded(() => this.#native.timeout(now)) ?? undefined;
    }

    /** Lets time pass. */
    handleTimeout(now?: number): void {
        guarded(() => this.#native.handleTimeout(now));
    }

    /** Lets what is in flight end, for so many milliseconds at most, and closes then. */
    finish(graceMs: number): void {
        guarded(() => this.#native.finish(graceMs));
    }

    /** Closes it once everything is written. */
    close(): void {
        this.#native.close();
    }

    /** The revision in force, once it is open. */
    get revision(): Revision | undefined {
        return (this.#native.revision as Revision | null) ?? undefined;
    }

    /** What the other side said of itself when it opened. */
    get peer(): { info: Implementation | null; capabilities: Record<string, unknown> } | undefined {
        const json = this.#native.peer;
        return json === null ? undefined : JSON.parse(json);
    }

    get isClosed(): boolean {
        return this.#native.isClosed;
    }

    /** Whether more bytes are wanted: not while too much waits to be written. */
    get wantsRead(): boolean {
        return this.#native.wantsRead;
    }

    /** How many requests of the other side's are under way. */
    get inFlight(): number {
        return this.#native.inFlight;
    }

    /** How many frames came that concerned nobody. */
    get strayCount(): number {
        return this.#native.strayCount;
    }
}

/** A number of 53 bits. */
function numberOf(low: number, high: number): number {
    return high * 2 ** 32 + (low >>> 0);
}
