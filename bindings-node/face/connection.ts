import { EventEmitter } from 'node:events';
import { Answering } from './answering';
import type { Client } from './client';
import type { Json } from './content';
import { McpError, revive, type Failure } from './errors';
import { readNotice, type ClientEvents } from './events';
import { Link } from './link';
import { Lists } from './lists';
import type { NativeLink } from './native';
import { readJson } from './numbers';
import type { ClientOptions, Exit } from './options';
import type { Implementation, Revision } from './protocol';
import { jsonOf, Requests, type RequestOptions } from './requests';
import { Streams } from './streams';

interface Opened {
    revision: Revision;
    /** The method that asks for a sign of life in this revision. */
    ping: string;
    /** Whether it has `subscriptions/listen`. */
    listens: boolean;
    /** Whether it has `logging/setLevel`. */
    setsLevel: boolean;
    /** Which form of tasks it has. */
    tasks: 'core' | 'extension' | null;
    peer?: Implementation;
    capabilities?: Record<string, unknown>;
    instructions?: string;
}

/** A connection to a server: how it opened, what is told on it, how it ends, and any request. */
export abstract class Connection extends EventEmitter<ClientEvents> implements AsyncDisposable {
    /** @internal */
    readonly link: Link;
    /** @internal */
    readonly requests: Requests;
    /** @internal */
    readonly lists = new Lists((capability, method, params, options) => this.ask(capability, method, params, options));
    /** @internal */
    readonly streams: Streams;
    readonly #opening = withResolvers<Opened>();
    readonly #ended = withResolvers<Exit>();
    #opened: Opened | undefined;
    #closed: McpError | undefined;

    /** @internal */
    protected constructor(options: ClientOptions, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        super();
        this.setMaxListeners(0);
        for (const [name, listener] of Object.entries(options.on ?? {})) this.on(name as keyof ClientEvents, listener);
        const answering: Answering = new Answering(options, () => this.client, () => this.link);
        this.link = new Link(
            {
                opened: text => this.#opening.resolve((this.#opened = JSON.parse(text))),
                asked: (number, topic, text) => void answering.asked(number, topic, text),
                withdrawn: number => answering.withdrawn(number),
                notification: text => this.#notified(readJson(text, this.link.integers)),
                closed: reason => this.#close(reason),
                traced: (isOut, text) => options.trace!(isOut ? 'out' : 'in', text),
                ended: text => this.#end(text ? JSON.parse(text) : {}),
                ...(onLine && { line: onLine })
            },
            connect
        );
        this.link.integers = options.integers ?? 'number';
        this.requests = new Requests(this.link, options.timeout);
        this.streams = new Streams(this.link);
    }

    /** @internal What the handlers of this side are given. */
    protected abstract get client(): Client;

    /** @internal Resolves once it is open. */
    get opening(): Promise<Opened> {
        return this.#opening.promise;
    }

    /** @internal What was settled when it opened. */
    get opened(): Opened {
        return this.#opened!;
    }

    /** The protocol revision in force. */
    get revision(): Revision {
        return this.opened.revision;
    }

    /** The server's name, version and more, if it named them. */
    get server(): Implementation | undefined {
        return this.opened.peer;
    }

    /** What the server offers, by name. */
    get capabilities(): Record<string, unknown> {
        return this.opened.capabilities ?? {};
    }

    /** What the server tells the model about itself. */
    get instructions(): string | undefined {
        return this.opened.instructions;
    }

    /** How many answers came that nobody waited for, and frames that were no messages. */
    get strayCount(): number {
        return this.link.native.strays();
    }

    /** Why the connection has ended, if it has. */
    get closed(): McpError | undefined {
        return this.#closed;
    }

    /** Asks for a sign of life. */
    async ping(options?: RequestOptions): Promise<void> {
        await this.request(this.opened.ping, undefined, options);
    }

    /** Sends a notification. */
    notify(method: string, params?: object | Json): void {
        if (!this.#closed) this.link.native.notify(method, jsonOf(params));
    }

    /** Sends any request; gives its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result> {
        return this.requests.send(method, params, options, false);
    }

    /**
     * Sends any request; gives its result as the JSON that it came in, for what JavaScript's numbers cannot hold, as
     * integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string> {
        return this.requests.send(method, params, options, true);
    }

    /** Ends the connection; with a program that was started, ends it too and says how it went. */
    async close(): Promise<Exit> {
        this.link.native.stop();
        return this.#ended.promise;
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    /** @internal Sends a request that needs a capability of the server. */
    ask<Result>(capability: string, method: string, params: object, options?: RequestOptions): Promise<Result> {
        const missing = this.lacks(capability);
        return missing ? Promise.reject(missing) : this.request(method, params, options);
    }

    /** @internal What a call fails with when the server did not declare a capability, named by its path. */
    lacks(...path: string[]): McpError | undefined {
        let found: any = this.opened.capabilities;
        // A server that was never asked may offer anything.
        if (found === undefined) return undefined;
        for (const name of path) found = found?.[name];
        if (found !== undefined && found !== false) return undefined;
        return new McpError('ERR_MCP_UNSUPPORTED', `the server does not offer ${path.join('.')}`);
    }

    #notified({ method, params }: { method: string; params?: Record<string, any> }): void {
        const notice = readNotice(method, params);
        if (notice.change) this.lists.changed(notice.change.type);
        this.streams.tell(notice);
        notice.emit(this);
    }

    /** The engine has let go of it; `failure` is why it never was there. */
    #end({ failure, code = null, signal = null }: Partial<Exit> & { failure?: Failure }): void {
        if (failure) {
            this.#opening.promise.catch(() => {});
            this.#opening.reject(revive(failure));
        }
        this.#ended.resolve({ code, signal });
    }

    #close(reason: McpError): void {
        if (this.#closed) return;
        this.#closed = reason;
        const failure = new McpError('ERR_MCP_CLOSED', 'the connection has ended', { cause: reason });
        const isMeant = reason.code === 'ERR_MCP_CLOSED_LOCALLY';
        this.streams.end(isMeant ? undefined : failure);
        this.#opening.promise.catch(() => {});
        this.#opening.reject(new McpError('ERR_MCP_CLOSED', `the connection did not open: ${reason.message}`, { cause: reason }));
        this.emit('closed', reason);
    }
}

function withResolvers<T>() {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
    return { promise, resolve, reject };
}
