import { type Stream } from 'node:stream';
import type { Message, SdkTransport } from './shapes';
/** A transport of the SDKs over a pair of pipes. */
declare abstract class Pipes implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** Starts to carry messages; called by `connect()`. */
    start(): Promise<void>;
    /** Sends a message; waits only while too much output is buffered. */
    send(message: Message): Promise<void>;
    /** Closes the transport, even with unanswered requests; resolves when it has ended. */
    close(): Promise<void>;
}
/**
 * This process's stdin and stdout, for a server of either SDK. Replaces the SDK's own class of this name. While it is
 * open, everything else that the process prints to stdout goes to stderr.
 */
export declare class StdioServerTransport extends Pipes {
    constructor(stdin?: unknown, stdout?: unknown);
}
/** How to start a server program. */
export interface StdioServerParameters {
    command: string;
    args?: string[];
    /** Added to the SDK's `getDefaultEnvironment()`: HOME, PATH and the like. */
    env?: Record<string, string>;
    /** `inherit` by default; with `pipe`, its lines are on the stream `stderr`. */
    stderr?: 'inherit' | 'ignore' | 'pipe' | 'overlapped';
    cwd?: string;
}
/**
 * The stdin and stdout of a server program, for a client of either SDK. Replaces the SDK's own class of this name. The
 * child runs in a process group of its own, which ends with it.
 */
export declare class StdioClientTransport extends Pipes {
    #private;
    constructor(server: StdioServerParameters);
    /** The child's stderr, if it was requested; available before the child is started. */
    get stderr(): Stream | null;
    /** The child's process id, from its start until its end. */
    get pid(): number | null;
}
export {};
