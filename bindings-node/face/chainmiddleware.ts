/** A message of JSON-RPC: a request, a response or a notification. */
export interface ChainMessage {
    jsonrpc?: '2.0';
    /** The id that the sender gave a request. Requests of several senders may have the same. */
    id?: string | number;
    method?: string;
    params?: any;
    /** The result of a response. */
    result?: any;
    /** The error of a response. */
    error?: { code: number; message: string; data?: unknown };
}

/** Which way a message goes. */
export type ChainDirection = 'to_server' | 'to_client';

/** Passes a message on; a message is passed on once at most. For a request, resolves to the response. */
export interface ChainNext {
    (message: ChainMessage): Promise<ChainMessage>;
    readonly direction: ChainDirection;
    /** The revision in which the sender of a request speaks, also for its response. */
    readonly revision?: string;
    /** The verified sender of a request; absent if nobody verified it. */
    readonly principal?: string;
    /** For a response, the request that it answers, as it was passed on. */
    readonly request?: ChainMessage;
    /** Aborts when the sender cancels the request, and when the hook takes longer than `hookTimeout` of the front. */
    readonly signal: AbortSignal;
}

/**
 * A part of a chain that sees its messages, in both directions: `next.direction` says in which. A hook that is not there
 * costs nothing. What is passed on unchanged goes on byte for byte. Reports of progress and cancellations are not shown, as
 * each side has its own.
 *
 * An exception in a hook is an error for the sender of the request: a `ProtocolError`, a `ToolError` or an error of a peer with
 * its message, any other one without, and reported. So is a hook that takes longer than `hookTimeout` of the front; the error names
 * the class of the middleware, or its index.
 */
export interface ChainMiddleware {
    /**
     * Handles a request. Returns the response, which `await next(message)` gives, or one of its own. `next` gives an error of
     * the other side as a response with `error`, and rejects with an `McpError` if there is no response: the server cannot be
     * reached, or does not answer in time. Left to itself, that becomes an error that names the server.
     */
    request?(message: ChainMessage, next: ChainNext): ChainMessage | Promise<ChainMessage>;
    /** Handles a response to a request that this middleware passed on, before `request` gets it. What is given to `next` is passed on. */
    response?(message: ChainMessage, next: ChainNext): unknown;
    /** Handles a notification. One that is not given to `next` is dropped. Messages that come while this waits may overtake it. */
    notification?(message: ChainMessage, next: ChainNext): unknown;
}
