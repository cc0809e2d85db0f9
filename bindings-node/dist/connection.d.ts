import { EventEmitter } from 'node:events';
import type { Json } from './content';
import { McpError } from './errors';
import { type ClientEvents } from './events';
import type { Exit } from './options';
import type { Implementation, Revision } from './protocol';
import { type RequestOptions } from './requests';
/** A connection to a server: how it opened, what is told on it, how it ends, and any request. */
export declare abstract class Connection extends EventEmitter<ClientEvents> implements AsyncDisposable {
    #private;
    /** The protocol revision in force. */
    get revision(): Revision;
    /** The server's name, version and more, if it named them. */
    get server(): Implementation | undefined;
    /** What the server offers, by name. */
    get capabilities(): Record<string, unknown>;
    /** What the server tells the model about itself. */
    get instructions(): string | undefined;
    /** How many answers came that nobody waited for, and frames that were no messages. */
    get strayCount(): number;
    /** Why the connection has ended, if it has. */
    get closed(): McpError | undefined;
    /** Asks for a sign of life. */
    ping(options?: RequestOptions): Promise<void>;
    /** Sends a notification. */
    notify(method: string, params?: object | Json): void;
    /** Sends any request; gives its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result>;
    /**
     * Sends any request; gives its result as the JSON that it came in, for what JavaScript's numbers cannot hold, as
     * integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string>;
    /** Ends the connection; with a program that was started, ends it too and says how it went. */
    close(): Promise<Exit>;
    [Symbol.asyncDispose](): Promise<void>;
}
