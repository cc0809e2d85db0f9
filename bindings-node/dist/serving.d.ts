import type { RunReport } from './definitions';
/** What a server on an address has done so far. */
export interface Counts {
    openConnections: number;
    connections: number;
    /** WebSockets; they are connections, too. */
    webSockets: number;
    httpRequests: number;
    /** Those of them that were answered with a status of 400 or more. */
    httpErrors: number;
    /** Without those of TLS, as the next. */
    bytesRead: number;
    bytesWritten: number;
}
/** A server on an address. */
export declare class Serving implements AsyncDisposable {
    #private;
    /** Where it listens: with the port that the system chose, where the address asked for port 0. */
    readonly address: string;
    /** How it ended, once it has. */
    readonly ended: Promise<RunReport>;
    /** What it has done so far. */
    get counts(): Counts;
    /** Takes no new connection; what is in flight may still be answered. Resolves when it has ended. */
    close(): Promise<RunReport>;
    [Symbol.asyncDispose](): Promise<void>;
}
