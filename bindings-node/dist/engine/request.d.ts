import type { Json } from '../content';
import type { LogLevel, Revision } from '../protocol';
import type { Message } from './message';
/** Why a request failed: a kind, whose code depends on the revision, or a code of your own. */
export type FailureKind = 'invalid request' | 'method not found' | 'invalid params' | 'tool not found' | 'prompt not found' | 'not found' | 'missing capability' | 'rejected' | 'internal' | number;
/** A request of the peer. Answer it once, with `respond` or `fail`, in any order and at any time. */
export declare class Request {
    #private;
    readonly type = "request";
    readonly message: Message;
    /** The revision of the request. */
    readonly revision: Revision;
    /** Whether the sender asked for progress. */
    readonly wantsProgress: boolean;
    /** Whether the sender cancelled the request: its answer is then discarded. */
    get isCancelled(): boolean;
    /** Whether the request still needs an answer. */
    get isOpen(): boolean;
    /** Answers with a result; has no effect if the request was answered or cancelled. */
    respond(result: object | Json): void;
    /** Answers with an error; has no effect if the request was answered or cancelled. */
    fail(kind: FailureKind, message: string, data?: unknown): void;
    /** Reports progress, if the sender asked for it. */
    progress(progress: number, total?: number, message?: string): void;
    /** Sends a log message, if the sender wants messages of that level. */
    log(level: LogLevel, data: unknown, logger?: string): void;
}
