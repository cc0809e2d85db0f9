import type { Json } from '../content';
import { guarded, revive, type McpError } from '../errors';
import { native, type NativeEngineConnection } from '../native';
import { settingsJson, writeJson } from '../numbers';
import { REVISIONS, type Implementation, type Progress, type Revision } from '../protocol';
import { objectJson, type DecoderOptions } from './codec';
import { bytesOf, Message, WIDTH, type Source } from './message';
import { Request } from './request';

export interface ConnectionOptions extends DecoderOptions {
    side: 'server' | 'client';
    /** The name that this side introduces itself with. */
    name: string;
    /** `0.0.0` by default. */
    version?: string;
    /** The capabilities that this side declares, by name. */
    capabilities?: object;
    /** A server's instructions for the model. */
    instructions?: string;
    /** The revisions to support; all by default. */
    revisions?: readonly Revision[];
    /** How a client opens the connection: `probe` tries stateless requests (2026-07-28) first. */
    opening?: 'probe' | 'handshake' | 'stateless';
    /** How long each request waits without news, in ms; 60 s by default. */
    timeout?: number;
    /**
     * The current time in ms, if the program supplies the time itself: it must then pass the time to every call that
     * takes one.
     */
    now?: number;
}

/** An event on a connection. */
export type Event =
    /** The connection is open: from now on requests may be sent. */
    | { type: 'opened'; revision: Revision }
    /** The peer sent a request. */
    | Request
    /** The peer cancelled a request. */
    | { type: 'cancelled'; request: Request; reason: string | undefined }
    /** A notification that the engine does not handle itself. */
    | { type: 'notification'; message: Message }
    /** Progress of a request of this side. */
    | { type: 'progress'; number: number; progress: Progress }
    /** A request of this side has ended, with its answer or with an error. */
    | { type: 'answered'; number: number; message: Message; error?: undefined }
    | { type: 'answered'; number: number; error: McpError; message?: undefined }
    /** A frame arrived that was not expected, or is not a message. */
    | { type: 'stray'; what: Stray; frame: Buffer }
    /** The connection has ended, and with it every request. */
    | { type: 'closed'; reason: McpError };

/** Why a frame is stray: a response without a pending request, an invalid frame, … */
export type Stray = 'answer' | 'bad frame' | 'oversize' | 'cancel' | 'unexpected';

/** How a request is sent. */
export interface SendOptions {
    /** How long to wait without news, in ms; progress starts it again. */
    timeout?: number;
    /** How long to wait in all, in ms. */
    maxTimeout?: number;
    /** Asks for progress events. */
    progress?: boolean;
    /** Additional members of its `_meta`. */
    meta?: Readonly<Record<string, unknown>>;
}

/** In the order of `src/engine/events.rs`. */
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
 * The state machine of one side of a connection, without threads, sockets or a clock (sans-I/O): a program feeds it the
 * received bytes, drains its events, and writes its output. It handles the handshake, discovery, pings, cancellation,
 * time limits, bad frames and revisions; all other requests are events for the program.
 */
export class Connection {
    readonly #native: NativeEngineConnection;
    readonly #options: ConnectionOptions;
    /** The peer's unanswered requests, by number. */
    readonly #requests: (Request | undefined)[] = [];

    constructor(options: ConnectionOptions) {
        const { side, name, version = '0.0.0', capabilities = {}, instructions, revisions, opening = 'probe', framing = 'line' } = options;
        const { maxMessageBytes, maxDepth, timeout, now } = options;
        this.#options = options;
        const settings = settingsJson({
            ...{ side, name, version, capabilities, instructions, revisions, opening, framing },
            ...{ maxMessageBytes, maxDepth, timeout, now }
        });
        this.#native = guarded(() => new native.EngineConnection(settings));
    }

    /** Takes received bytes; they are copied. */
    feed(data: Uint8Array | string, now?: number): void {
        guarded(() => this.#native.feed(bytesOf(data), now));
    }

    /** Marks the end of the input. */
    feedEnd(now?: number): void {
        guarded(() => this.#native.feedEnd(now));
    }

    /** Returns the events since the last call, in order. */
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

    /** Takes all bytes that are to be written; `undefined` if there are none. */
    output(now?: number): Buffer | undefined {
        return guarded(() => this.#native.output(now)) ?? undefined;
    }

    /** Sends a request; returns the number by which its events identify it. */
    request(method: string, params?: object | Json, options: SendOptions = {}): number {
        const { timeout, maxTimeout, progress = false, meta } = options;
        const json = params && objectJson(params);
        return guarded(() => this.#native.request(method, json, timeout, maxTimeout, progress, meta && writeJson(meta)));
    }

    /** Cancels a request of this side, and tells the peer. No further event names it. */
    cancel(number: number, reason?: string): void {
        this.#native.cancel(number, reason);
    }

    /** Sends a notification. */
    notify(method: string, params?: object | Json): void {
        guarded(() => this.#native.notify(method, params && objectJson(params)));
    }

    /** Milliseconds until `handleTimeout` must be called; `undefined` if no timer is running. */
    timeout(now?: number): number | undefined {
        return guarded(() => this.#native.timeout(now)) ?? undefined;
    }

    /** Handles the timers that have expired. */
    handleTimeout(now?: number): void {
        guarded(() => this.#native.handleTimeout(now));
    }

    /** Lets requests in flight finish for at most `graceMs` milliseconds, then closes the connection. */
    finish(graceMs: number): void {
        guarded(() => this.#native.finish(graceMs));
    }

    /** Closes the connection once all output is written. */
    close(): void {
        this.#native.close();
    }

    /** The negotiated revision, once the connection is open. */
    get revision(): Revision | undefined {
        return (this.#native.revision as Revision | null) ?? undefined;
    }

    /** The peer's description of itself, from when the connection opened. */
    get peer(): { info: Implementation | null; capabilities: Record<string, unknown> } | undefined {
        const json = this.#native.peer;
        return json === null ? undefined : JSON.parse(json);
    }

    get isClosed(): boolean {
        return this.#native.isClosed;
    }

    /** Whether to read more bytes; `false` while too much output waits to be written. */
    get wantsRead(): boolean {
        return this.#native.wantsRead;
    }

    /** How many requests of the peer are in progress. */
    get inFlight(): number {
        return this.#native.inFlight;
    }

    /** How many stray frames have arrived. */
    get strayCount(): number {
        return this.#native.strayCount;
    }
}

/** Joins the two halves of a 53-bit number. */
function numberOf(low: number, high: number): number {
    return high * 2 ** 32 + (low >>> 0);
}
