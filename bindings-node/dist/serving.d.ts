import type { RunReport } from './definitions';
/** Counters of a server at an address since it started. */
export interface Counts {
    openConnections: number;
    connections: number;
    /** WebSocket connections; `connections` includes them. */
    webSockets: number;
    httpRequests: number;
    /** HTTP requests answered with a status of 400 or more; `httpRequests` includes them. */
    httpErrors: number;
    /** Bytes received, without TLS overhead; likewise `bytesWritten`. */
    bytesRead: number;
    bytesWritten: number;
}
/** A server that listens at an address. */
export declare class Serving implements AsyncDisposable {
    #private;
    /** The address, with the port that the system chose if port 0 was requested. */
    readonly address: string;
    /** Resolves with a report once the server has ended. */
    readonly ended: Promise<RunReport>;
    /** The counters so far. */
    get counts(): Counts;
    /** Stops accepting connections; calls in flight may still be answered. Resolves when the server has ended. */
    close(): Promise<RunReport>;
    [Symbol.asyncDispose](): Promise<void>;
}
