import type { Json } from '../content';
import { type McpError } from '../errors';
import { type Implementation, type Progress, type Revision } from '../protocol';
import { type DecoderOptions } from './codec';
import { Message } from './message';
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
{
    type: 'opened';
    revision: Revision;
}
/** The other side asks. */
 | Request
/** It does not ask any more. */
 | {
    type: 'cancelled';
    request: Request;
    reason: string | undefined;
}
/** A notification that the engine does not deal with itself. */
 | {
    type: 'notification';
    message: Message;
}
/** How far a request of this side's is. */
 | {
    type: 'progress';
    number: number;
    progress: Progress;
}
/** A request of this side's is over: its answer, or why there is none. */
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
/** Something came that concerns nobody. */
 | {
    type: 'stray';
    what: Stray;
    frame: Buffer;
}
/** It has ended, and so has every request. */
 | {
    type: 'closed';
    reason: McpError;
};
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
/**
 * The state of one side of a connection, without threads, sockets or a clock: a program feeds it the bytes that come,
 * drains what happened, and writes what it puts out. Handshake, discovery, pings, cancellation, time limits, bad frames
 * and revisions are its business; the other requests are the program's.
 */
export declare class Connection {
    #private;
    constructor(options: ConnectionOptions);
    /** Takes bytes that came; they are copied. */
    feed(data: Uint8Array | string, now?: number): void;
    /** Nothing more comes. */
    feedEnd(now?: number): void;
    /** What happened since the last time, in order. */
    drain(): Event[];
    /** What is to be written, all of it: it is gone from here. `undefined` when there is nothing. */
    output(now?: number): Buffer | undefined;
    /** Sends a request; gives the number that its outcome and its progress name. */
    request(method: string, params?: object | Json, options?: SendOptions): number;
    /** Gives up on a request of this side's, and tells the other side. Nothing more is heard of it. */
    cancel(number: number, reason?: string): void;
    /** Sends a notification. */
    notify(method: string, params?: object | Json): void;
    /** Milliseconds until `handleTimeout` is to be called, if time alone changes anything. */
    timeout(now?: number): number | undefined;
    /** Lets time pass. */
    handleTimeout(now?: number): void;
    /** Lets what is in flight end, for so many milliseconds at most, and closes then. */
    finish(graceMs: number): void;
    /** Closes it once everything is written. */
    close(): void;
    /** The revision in force, once it is open. */
    get revision(): Revision | undefined;
    /** What the other side said of itself when it opened. */
    get peer(): {
        info: Implementation | null;
        capabilities: Record<string, unknown>;
    } | undefined;
    get isClosed(): boolean;
    /** Whether more bytes are wanted: not while too much waits to be written. */
    get wantsRead(): boolean;
    /** How many requests of the other side's are under way. */
    get inFlight(): number;
    /** How many frames came that concerned nobody. */
    get strayCount(): number;
}
