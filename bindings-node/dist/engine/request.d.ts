import type { Json } from '../content';
import type { LogLevel, Revision } from '../protocol';
import type { Message } from './message';
/** What a request fails with: a kind, which has another number in each revision, or a number of your own. */
export type FailureKind = 'invalid request' | 'method not found' | 'invalid params' | 'tool not found' | 'prompt not found' | 'not found' | 'missing capability' | 'rejected' | 'internal' | number;
/** A request of the other side's: answered once, by `respond` or `fail`, in any order and at any time. */
export declare class Request {
    #private;
    readonly type = "request";
    readonly message: Message;
    /** The revision that it is made in. */
    readonly revision: Revision;
    /** Whether its sender wants to know how far it is. */
    readonly wantsProgress: boolean;
    /** Whether its sender gave it up: what it is answered then is discarded. */
    get isCancelled(): boolean;
    /** Whether it waits for an answer. */
    get isOpen(): boolean;
    /** Answers with a result; does nothing when it is answered or given up. */
    respond(result: object | Json): void;
    /** Answers with an error; does nothing when it is answered or given up. */
    fail(kind: FailureKind, message: string, data?: unknown): void;
    /** Tells how far it is, if its sender wants to know. */
    progress(progress: number, total?: number, message?: string): void;
    /** Sends a log message, if its sender wants messages of that level. */
    log(level: LogLevel, data: unknown, logger?: string): void;
}
