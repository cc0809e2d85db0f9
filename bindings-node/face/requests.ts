import { onAbort } from './abort';
import { Json } from './content';
import { guarded, McpError } from './errors';
import type { Link, Waiting } from './link';
import type { NativeLink, RequestSettings } from './native';
import { writeJson } from './numbers';
import type { LogLevel, Progress } from './protocol';

export interface RequestOptions {
    /** Gives the request up, and tells the server. */
    signal?: AbortSignal;
    /** How long to wait without news, in ms; progress starts it again. */
    timeout?: number;
    /** How long to wait in all, in ms. */
    maxTimeout?: number;
    /** Asks the server for progress. */
    onProgress?: (progress: Progress) => void;
    /** More members of the request's `_meta`. */
    meta?: Readonly<Record<string, unknown>>;
}

/** Where a request says what it wants to be logged, from 2026-07-28 on. */
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/** @internal The requests of a client. */
export class Requests {
    readonly #link: Link;
    /** How long each waits for news, unless it says otherwise. */
    readonly timeout: number | undefined;
    /** What each request wants to be logged, where it has to say so. */
    level: LogLevel | undefined;

    constructor(link: Link, timeout: number | undefined) {
        this.#link = link;
        this.timeout = timeout;
    }

    send(method: string, params: object | undefined, options: RequestOptions = {}, isRaw: boolean): Promise<any> {
        const json = jsonOf(params);
        return this.wait(link => link.request(method, json, ...this.#settings(options)), options, isRaw);
    }

    /** Calls a tool; where the call becomes a task, the answer says so. Gives JSON. */
    startTool(params: object, options: RequestOptions): Promise<string> {
        return this.wait(link => link.startTool(jsonOf(params)!, ...this.#settings(options)), options, true);
    }

    /** Waits for what comes of a task; `onProgress` is told each state of it. Gives JSON. */
    followTask(id: string, options: RequestOptions): Promise<string> {
        return this.wait(link => link.followTask(id), options, true);
    }

    #settings(options: RequestOptions): RequestSettings {
        const { onProgress, maxTimeout, timeout = this.timeout } = options;
        return [timeout, maxTimeout, onProgress !== undefined, this.#meta(options)];
    }

    #meta({ meta }: RequestOptions): string | undefined {
        const level = this.level;
        if (meta === undefined && level === undefined) return undefined;
        return writeJson({ ...(level && { [LOG_LEVEL]: level }), ...meta });
    }

    /** Waits for what `begin` begins, under the number that it gives. */
    wait(begin: (link: NativeLink) => number, { signal, onProgress }: RequestOptions = {}, isRaw = false): Promise<any> {
        return new Promise((resolve, reject) => {
            if (signal?.aborted) return reject(cancelled(signal));
            const link = this.#link;
            const number = guarded(() => begin(link.native));
            const waiting: Waiting = { resolve, reject, onProgress, isRaw };
            link.waiting.set(number, waiting);
            if (signal === undefined) return;
            const forget = onAbort(signal, () => {
                link.giveUp(number, reasonOf(signal));
                reject(cancelled(signal));
            });
            const after = <T>(settle: (value: T) => void) => (value: T) => {
                forget();
                settle(value);
            };
            waiting.resolve = after(resolve);
            waiting.reject = after(reject);
        });
    }
}

/** @internal */
export function jsonOf(params: object | undefined): string | undefined {
    return params instanceof Json ? params.text : params && writeJson(params);
}

/** @internal */
export function cancelled(signal: AbortSignal): McpError {
    return new McpError('ERR_MCP_CANCELLED', 'the request was cancelled', { cause: signal.reason });
}

/** What the server is told: only what the caller said in words. */
function reasonOf(signal: AbortSignal): string | undefined {
    return typeof signal.reason === 'string' ? signal.reason : undefined;
}

/** @internal A member of a result. */
export function arrayOf<Item>(value: unknown, key: string): Item[] {
    if (!Array.isArray(value)) throw new McpError('ERR_MCP_BAD_ANSWER', `the answer has no ${key}`);
    return value;
}
