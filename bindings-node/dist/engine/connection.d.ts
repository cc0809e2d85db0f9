import type { Json } from '../content';
import { type McpError } from '../errors';
import { type Implementation, type Progress, type Revision } from '../protocol';
import { type DecoderOptions } from './codec';
import { Message } from './message';
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
{
    type: 'opened';
    revision: Revision;
}
/** The peer sent a request. */
 | Request
/** The peer cancelled a request. */
 | {
    type: 'cancelled';
    request: Request;
    reason: string | undefined;
}
/** A notification that the engine does not handle itself. */
 | {
    type: 'notification';
    message: Message;
}
/** Progress of a request of this side. */
 | {
    type: 'progress';
    number: number;
    progress: Progress;
}
/** A request of this side has ended, with its answer or with an error. */
 | {
    type: 'answered';
    number: number;
    message: Message;
    error?: undefined;
} | {
    type: 'answered';
    number: number;
    error: McpError;
    message?: undefined;
}
/** A frame arrived that was not expected, or is not a message. */
 | {
    type: 'stray';
    what: Stray;
    frame: Buffer;
}
/** The connection has ended, and with it every request. */
 | {
    type: 'closed';
    reason: McpError;
};
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
/**
 * The state machine of one side of a connection, without threads, sockets or a clock (sans-I/O): a program feeds it the
 * received bytes, drains its events, and writes its output. It handles the handshake, discovery, pings, cancellation,
 * time limits, bad frames and revisions; all other requests are events for the program.
 */
export declare class Connection {
    #private;
    constructor(options: ConnectionOptions);
    /** Takes received bytes; they are copied. */
    feed(data: Uint8Array | string, now?: number): void;
    /** Marks the end of the input. */
    feedEnd(now?: number): void;
    /** Returns the events since the last call, in order. */
    drain(): Event[];
    /** Takes all bytes that are to be written; `undefined` if there are none. */
    output(now?: number): Buffer | undefined;
    /** Sends a request; returns the number by which its events identify it. */
    request(method: string, params?: object | Json, options?: SendOptions): number;
    /** Cancels a request of this side, and tells the peer. No further event names it. */
    cancel(number: number, reason?: string): void;
    /** Sends a notification. */
    notify(method: string, params?: object | Json): void;
    /** Milliseconds until `handleTimeout` must be called; `undefined` if no timer is running. */
    timeout(now?: number): number | undefined;
    /** Handles the timers that have expired. */
    handleTimeout(now?: number): void;
    /** Lets requests in flight finish for at most `graceMs` milliseconds, then closes the connection. */
    finish(graceMs: number): void;
    /** Closes the connection once all output is written. */
    close(): void;
    /** The negotiated revision, once the connection is open. */
    get revision(): Revision | undefined;
    /** The peer's description of itself, from when the connection opened. */
    get peer(): {
        info: Implementation | null;
        capabilities: Record<string, unknown>;
    } | undefined;
    get isClosed(): boolean;
    /** Whether to read more bytes; `false` while too much output waits to be written. */
    get wantsRead(): boolean;
    /** How many requests of the peer are in progress. */
    get inFlight(): number;
    /** How many stray frames have arrived. */
    get strayCount(): number;
}
