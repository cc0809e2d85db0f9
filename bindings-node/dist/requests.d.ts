import type { Progress } from './protocol';
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
