import { EventEmitter } from 'node:events';
import type { Json } from './content';
import { McpError } from './errors';
import { type ClientEvents } from './events';
import type { Exit } from './options';
import type { Implementation, Revision } from './protocol';
import { type RequestOptions } from './requests';
/** A connection to a server: its properties, requests, notifications and end. */
export declare abstract class Connection extends EventEmitter<ClientEvents> implements AsyncDisposable {
    #private;
    /** The protocol revision in force. */
    get revision(): Revision;
    /** The server's name, version and more, if it sent them. */
    get server(): Implementation | undefined;
    /** The capabilities that the server declared, by name. */
    get capabilities(): Record<string, unknown>;
    /** The server's instructions for the model. */
    get instructions(): string | undefined;
    /** How many responses without a pending request, and frames that are not messages, have arrived. */
    get strayCount(): number;
    /** Why the connection has ended, if it has ended. */
    get closed(): McpError | undefined;
    /** Pings the server. */
    ping(options?: RequestOptions): Promise<void>;
    /** Sends a notification. */
    notify(method: string, params?: object | Json): void;
    /** Sends any request and returns its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result>;
    /**
     * Sends any request and returns the raw JSON of its result, for values that JavaScript's numbers cannot hold, such
     * as integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string>;
    /** Closes the connection. If it started a program, also ends that program and returns its exit status. */
    close(): Promise<Exit>;
    [Symbol.asyncDispose](): Promise<void>;
}
