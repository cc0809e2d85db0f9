import { onAbort } from './abort';
import { Json } from './content';
import { guarded, McpError } from './errors';
import type { Link, Waiting } from './link';
import type { NativeLink } from './native';
import { writeJson } from './numbers';
import type { LogLevel, Progress } from './protocol';

export interface RequestOptions {
    /** Cancels the request, and tells the server. */
    signal?: AbortSignal;
    /** How long to wait without news, in ms; each progress notification that increases restarts it. */
    timeout?: number;
    /** How long to wait in total, in ms. */
    maxTimeout?: number;
    /** Asks the server for progress, and is called with it. */
    onProgress?: (progress: Progress) => void;
    /** Additional members of the request's `_meta`. */
    meta?: Readonly<Record<string, unknown>>;
}

type Settings = [timeoutMs: number | undefined, maxTimeoutMs: number | undefined, flags: number, meta: string | undefined];

/** Flags of a request: it asks for progress; its answer may be that it has become a task. */
const WANTS_PROGRESS = 1;
const MAY_BE_TASK = 2;

/** The `_meta` member that sets the log level of a request, from 2026-07-28 on. */
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/** @internal Sends the requests of a client and waits for their answers. */
export class Requests {
    /** The log level that each request carries, in revisions that need it. */
    level: LogLevel | undefined;
    /** Whether a log level was set, here or at the server. */
    hasLevel = false;

    constructor(private readonly link: Link, readonly timeout: number | undefined) {}

    send(method: string, params: object | undefined, options: RequestOptions = {}, isRaw: boolean): Promise<any> {
        const json = jsonOf(params);
        return this.wait(link => link.request(method, json, ...this.#settings(options)), options, isRaw);
    }

    /** Calls a tool. If the call becomes a task, the answer says so. Resolves to JSON. */
    startTool(params: object, options: RequestOptions): Promise<string> {
        return this.wait(link => link.request('tools/call', jsonOf(params), ...this.#settings(options, MAY_BE_TASK)), options, true);
    }

    /** Waits for the result of a task; `onProgress` is called with each of its states. Resolves to JSON. */
    followTask(id: string, options: RequestOptions): Promise<string> {
        return this.wait(link => link.followTask(id), options, true);
    }

    #settings(options: RequestOptions, flags = 0): Settings {
        const { onProgress, maxTimeout, timeout = this.timeout } = options;
        return [timeout, maxTimeout, onProgress === undefined ? flags : flags | WANTS_PROGRESS, this.#meta(options)];
    }

    #meta({ meta }: RequestOptions): string | undefined {
        const level = this.level;
        if (meta === undefined && level === undefined) return undefined;
        return writeJson({ ...(level && { [LOG_LEVEL]: level }), ...meta });
    }

    /** Calls `begin`, which returns a number, and waits for the answer with that number. */
    wait(begin: (link: NativeLink) => number, { signal, onProgress }: RequestOptions = {}, isRaw = false): Promise<any> {
        return new Promise((resolve, reject) => {
            if (signal?.aborted) return reject(cancelled(signal));
            const link = this.link;
            const number = guarded(() => begin(link.native));
            const waiting: Waiting = { resolve, reject, onProgress, isRaw };
            link.await(number, waiting);
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

/** The reason that the server is told: only a string given by the caller. */
function reasonOf(signal: AbortSignal): string | undefined {
    return typeof signal.reason === 'string' ? signal.reason : undefined;
}

/** @internal A member of a result that must be an array. */
export function arrayOf<Item>(value: unknown, key: string): Item[] {
    if (!Array.isArray(value)) throw new McpError('ERR_MCP_BAD_ANSWER', `the answer has no ${key}`);
    return value;
}
