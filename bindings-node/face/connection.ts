import { EventEmitter } from 'node:events';
import { Answering } from './answering';
import type { Json } from './content';
import { McpError, revive, type Failure } from './errors';
import { readNotice, type ClientEvents } from './events';
import { Link } from './link';
import { Lists } from './lists';
import type { NativeLink } from './native';
import { readJson } from './numbers';
import type { ClientOptionsOf, Exit } from './options';
import { DIRECTIONS, type Implementation, type Revision } from './protocol';
import { jsonOf, Requests, type RequestOptions } from './requests';
import { Streams } from './streams';

interface Opened {
    revision: Revision;
    /** The method that pings the server in this revision. */
    ping: string;
    /** Whether the revision has `subscriptions/listen`. */
    listens: boolean;
    /** Whether the revision has `logging/setLevel`. */
    setsLevel: boolean;
    /** The form of tasks in the revision. */
    tasks: 'core' | 'extension' | null;
    peer?: Implementation;
    capabilities?: Record<string, unknown>;
    instructions?: string;
}

/** A connection to a server: its properties, requests, notifications and end. */
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
    protected constructor(options: ClientOptionsOf<any>, connect?: (wake: () => void) => NativeLink, onLine?: (line: string) => void) {
        super();
        this.setMaxListeners(0);
        const answering = new Answering(options, this, () => this.link);
        this.link = new Link(
            {
                opened: text => {
                    this.#opening.resolve((this.#opened = JSON.parse(text)));
                    this.link.letGo();
                },
                asked: (text, number, topic) => void answering.asked(number, topic, text),
                withdrawn: (_, number) => answering.withdrawn(number),
                notification: text => this.#notified(readJson(text, this.link.integers)),
                closed: reason => this.#close(reason),
                traced: (text, _, direction) => options.trace!(DIRECTIONS[direction]!, text),
                ended: text => this.#end(text ? JSON.parse(text) : {}),
                ...(onLine && { line: onLine })
            },
            connect,
            `client ${options.name ?? 'mcpbolt'}`
        );
        this.link.integers = options.integers ?? 'number';
        holdWhileHeard(this as EventEmitter, this.link);
        this.requests = new Requests(this.link, options.timeout);
        this.streams = new Streams(this.link);
        for (const [name, listener] of Object.entries(options.on ?? {})) this.on(name as keyof ClientEvents, listener);
    }

    /** @internal Resolves once the connection is open. */
    get opening(): Promise<Opened> {
        return this.#opening.promise;
    }

    /** @internal Resolves once the engine has dropped the connection. */
    get ending(): Promise<Exit> {
        return this.#ended.promise;
    }

    /** @internal What was negotiated when the connection opened. */
    get opened(): Opened {
        return this.#opened!;
    }

    /** The protocol revision in force. */
    get revision(): Revision {
        return this.opened.revision;
    }

    /** The server's name, version and more, if it sent them. */
    get server(): Implementation | undefined {
        return this.opened.peer;
    }

    /** The capabilities that the server declared, by name. */
    get capabilities(): Record<string, unknown> {
        return this.opened.capabilities ?? {};
    }

    /** The server's instructions for the model. */
    get instructions(): string | undefined {
        return this.opened.instructions;
    }

    /** How many responses without a pending request, and frames that are not messages, have arrived. */
    get strayCount(): number {
        return this.link.native.strays();
    }

    /** Why the connection has ended, if it has ended. */
    get closed(): McpError | undefined {
        return this.#closed;
    }

    /** Pings the server. */
    async ping(options?: RequestOptions): Promise<void> {
        await this.request(this.opened.ping, undefined, options);
    }

    /** Sends a notification. */
    notify(method: string, params?: object | Json): void {
        if (!this.#closed) this.link.native.notify(method, jsonOf(params));
    }

    /** Sends any request and returns its result. */
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result> {
        return this.requests.send(method, params, options, false);
    }

    /**
     * Sends any request and returns the raw JSON of its result, for values that JavaScript's numbers cannot hold, such
     * as integers beyond 2^53.
     */
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string> {
        return this.requests.send(method, params, options, true);
    }

    /**
     * Lets the process end while this connection is open, as `unref` of a socket does; a pending request is then not
     * waited for.
     */
    unref(): this {
        this.link.keepAlive(false);
        return this;
    }

    /** Keeps the process alive while this connection is open, which is the default. */
    ref(): this {
        this.link.keepAlive(true);
        return this;
    }

    /** Closes the connection. If it started a program, also ends that program and returns its exit status. */
    async close(): Promise<Exit> {
        this.link.hold();
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

    /** @internal The error if the server did not declare a capability, named by its path. */
    lacks(...path: string[]): McpError | undefined {
        let found: any = this.opened.capabilities;
        // Without a handshake or discovery the capabilities are unknown: the server may offer anything.
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

    /** The engine has dropped the connection; `failure` is the reason if it never opened. */
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

/** Keeps a client that has listeners from being garbage-collected, even if nothing else refers to it. */
function holdWhileHeard(client: EventEmitter, link: Link): void {
    let listeners = 0;
    client.on('removeListener', (name: string | symbol) => {
        if (name !== 'newListener' && name !== 'removeListener' && --listeners === 0) link.letGo();
    });
    client.on('newListener', () => {
        if (listeners++ === 0) link.hold();
    });
}

function withResolvers<T>() {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((yes, no) => ([resolve, reject] = [yes, no]));
    return { promise, resolve, reject };
}
