import type { Json } from '../content';
import { guarded } from '../errors';
import type { NativeEngineConnection } from '../native';
import { writeJson } from '../numbers';
import type { LogLevel, Revision } from '../protocol';
import { objectJson } from './codec';
import type { Message } from './message';

/** What a request fails with: a kind, which has another number in each revision, or a number of your own. */
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

/** A request of the other side's: answered once, by `respond` or `fail`, in any order and at any time. */
export class Request {
    readonly type = 'request';
    readonly message: Message;
    /** The revision that it is made in. */
    readonly revision: Revision;
    /** Whether its sender wants to know how far it is. */
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

    /** Whether its sender gave it up: what it is answered then is discarded. */
    get isCancelled(): boolean {
        return this.#isCancelled;
    }

    /** Whether it waits for an answer. */
    get isOpen(): boolean {
        return this.#native !== undefined;
    }

    /** Answers with a result; does nothing when it is answered or given up. */
    respond(result: object | Json): void {
        const json = objectJson(result);
        this.#close()?.respond(this.#number, json);
    }

    /** Answers with an error; does nothing when it is answered or given up. */
    fail(kind: FailureKind, message: string, data?: unknown): void {
        const json = data === undefined ? undefined : writeJson(data);
        const [name, code] = typeof kind === 'number' ? [undefined, kind] : [kind, 0];
        guarded(() => this.#native?.fail(this.#number, name, code, message, json));
        this.#close();
    }

    /** Tells how far it is, if its sender wants to know. */
    progress(progress: number, total?: number, message?: string): void {
        this.#native?.progress(this.#number, progress, total, message);
    }

    /** Sends a log message, if its sender wants messages of that level. */
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
