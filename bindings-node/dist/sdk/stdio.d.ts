import { type Stream } from 'node:stream';
import type { Message, SdkTransport } from './shapes';
/** Messages on a pair of pipes, as the SDKs hand them about. */
declare abstract class Pipes implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** Begins to carry messages; called by whoever connects to it. */
    start(): Promise<void>;
    /** Sends a message; waits only while too much is on its way. */
    send(message: Message): Promise<void>;
    /** Ends it, whatever is not answered; resolves when all is over. */
    close(): Promise<void>;
}
/**
 * This process's stdin and stdout, for a server of either SDK: in place of the SDK's own class of that name. While it is
 * open, what else the process prints goes to stderr.
 */
export declare class StdioServerTransport extends Pipes {
    constructor(stdin?: unknown, stdout?: unknown);
}
/** How a server program is started. */
export interface StdioServerParameters {
    command: string;
    args?: string[];
    /** Besides what `getDefaultEnvironment()` of the SDK gives: HOME, PATH and the like. */
    env?: Record<string, string>;
    /** `inherit` by default; `pipe` gives its lines as the stream `stderr`. */
    stderr?: 'inherit' | 'ignore' | 'pipe' | 'overlapped';
    cwd?: string;
}
/**
 * A server program and its stdin and stdout, for a client of either SDK: in place of the SDK's own class of that name.
 * The child is in a process group of its own, which ends with it.
 */
export declare class StdioClientTransport extends Pipes {
    #private;
    constructor(server: StdioServerParameters);
    /** What the child says on stderr, if that was asked for; there before it is started. */
    get stderr(): Stream | null;
    /** Once it is started, until it has ended. */
    get pid(): number | null;
}
export {};
