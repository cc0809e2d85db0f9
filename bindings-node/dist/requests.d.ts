import type { Progress } from './protocol';
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
