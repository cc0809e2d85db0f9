import type { Json } from '../content';
import { guarded } from '../errors';
import type { NativeEngineConnection } from '../native';
import { writeJson } from '../numbers';
import type { LogLevel, Revision } from '../protocol';
import { objectJson } from './codec';
import type { Message } from './message';

/** Why a request failed: a kind, whose code depends on the revision, or a code of your own. */
export type FailureKind =
    | 'invalid request'
    | 'method not found'
    | 'invalid params'
    | 'tool not found'
    | 'prompt not found'
    | 'not found'
    | 'missing capability'
    | 'rejected'
    | 'internal'
    | number;

/** A request of the peer. Answer it once, with `respond` or `fail`, in any order and at any time. */
export class Request {
    readonly type = 'request';
    readonly message: Message;
    /** The revision of the request. */
    readonly revision: Revision;
    /** Whether the sender asked for progress. */
    readonly wantsProgress: boolean;
    #native: NativeEngineConnection | undefined;
    readonly #number: number;
    #isCancelled = false;

    /** @internal */
    constructor(native: NativeEngineConnection, number: number, message: Message, revision: Revision, wantsProgress: boolean) {
        this.#native = native;
        this.#number = number;
        this.message = message;
        this.revision = revision;
        this.wantsProgress = wantsProgress;
    }

    /** Whether the sender cancelled the request: its answer is then discarded. */
    get isCancelled(): boolean {
        return this.#isCancelled;
    }

    /** Whether the request still needs an answer. */
    get isOpen(): boolean {
        return this.#native !== undefined;
    }

    /** Answers with a result; has no effect if the request was answered or cancelled. */
    respond(result: object | Json): void {
        const json = objectJson(result);
        this.#close()?.respond(this.#number, json);
    }

    /** Answers with an error; has no effect if the request was answered or cancelled. */
    fail(kind: FailureKind, message: string, data?: unknown): void {
        const json = data === undefined ? undefined : writeJson(data);
        const [name, code] = typeof kind === 'number' ? [undefined, kind] : [kind, 0];
        guarded(() => this.#native?.fail(this.#number, name, code, message, json));
        this.#close();
    }

    /** Reports progress, if the sender asked for it. */
    progress(progress: number, total?: number, message?: string): void {
        this.#native?.progress(this.#number, progress, total, message);
    }

    /** Sends a log message, if the sender wants messages of that level. */
    log(level: LogLevel, data: unknown, logger?: string): void {
        guarded(() => this.#native?.log(this.#number, level, writeJson(data) ?? 'null', logger));
    }

    /** @internal */
    cancel(): void {
        this.#isCancelled = true;
        this.#close();
    }

    #close(): NativeEngineConnection | undefined {
        const open = this.#native;
        this.#native = undefined;
        return open;
    }
}
