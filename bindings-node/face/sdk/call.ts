import type { Bridge } from './bridge';
import { contextOf, taskStoreFor } from './private';
import type { Id, Message } from './shapes';

/** The `_meta` members by which a request describes itself from 2026-07-28 on; handlers do not see them. */
const RESERVED = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map(name => `io.modelcontextprotocol/${name}`);

/** The HTTP request that brought a call. */
export interface Head {
    method: string;
    target: string;
    headers: [string, string][];
    session?: string;
    auth?: unknown;
}

/**
 * @internal A client's request for the SDK's server. It arrives whole or, for tool calls, in parts, as most handlers
 * need only the arguments.
 *
 * It is also the handler of the proxy that serves as the context of the SDK's handler. Most handlers never use the
 * context, and an object with a getter costs more than the rest of a call, so the context is filled on first access.
 */
export class SdkCall implements ProxyHandler<any> {
    /** The bridge's count of list changes when the call arrived. */
    readonly changes: number;
    /** Whether it was passed to the SDK's protocol. */
    hasFallen = false;
    /** Whether the call is answered or cancelled: results are discarded. */
    isOver = false;
    isAborted = false;
    /** Called when the call is answered or cancelled. */
    onEnd: (() => void) | undefined;
    #isFilled = false;
    /** For a tool call: the tool's name, the arguments, and the id and `_meta` as JSON. */
    #name = '';
    #args: object | undefined;
    #idText = '';
    #metaText = '';
    #message: Message | undefined;
    #id: Id | undefined;
    #meta: Record<string, unknown> | undefined;
    #reason: unknown;
    #controller: AbortController | undefined;

    constructor(readonly bridge: Bridge, readonly number: number, readonly method: string, readonly isAlone: boolean) {
        this.changes = bridge.changes;
    }

    static whole(bridge: Bridge, number: number, message: Message, isAlone: boolean): SdkCall {
        const call = new SdkCall(bridge, number, message.method!, isAlone);
        call.#message = message;
        message.id = call.#id = bridge.register(call, message.id!);
        return call;
    }

    static ofTool(bridge: Bridge, number: number, isAlone: boolean, name: string, args: object | null, id: string, meta: string): SdkCall {
        const call = new SdkCall(bridge, number, 'tools/call', isAlone);
        call.#name = name;
        call.#args = args ?? undefined;
        call.#idText = id;
        call.#metaText = meta;
        return call;
    }

    /** The SDK's id of the call; reading it registers the call under that id. */
    get id(): Id {
        return (this.#id ??= this.bridge.register(this, JSON.parse(this.#idText)));
    }

    get isRegistered(): boolean {
        return this.#id !== undefined;
    }

    /** The message as received, except for its id. */
    get message(): Message {
        return (this.#message ??= {
            jsonrpc: '2.0',
            id: this.id,
            method: this.method,
            params: {
                name: this.#name,
                ...(this.#args && { arguments: this.#args }),
                ...(this.#metaText && { _meta: this.meta })
            }
        });
    }

    /** The arguments of a tool call. */
    get args(): object | undefined {
        return this.#args;
    }

    get meta(): Record<string, any> | undefined {
        if (this.#message) return this.#message.params?._meta;
        return (this.#meta ??= this.#metaText === '' ? undefined : JSON.parse(this.#metaText));
    }

    /** The context of its handler: `RequestHandlerExtra` in v1, `ServerContext` in v2. */
    get context(): object {
        return new Proxy({}, this);
    }

    /** Aborts with the client's reason, as in the SDK. */
    get signal(): AbortSignal {
        if (this.#controller === undefined) {
            this.#controller = new AbortController();
            if (this.isAborted) this.#controller.abort(this.#reason);
        }
        return this.#controller.signal;
    }

    /** Marks the call as answered, and frees its arguments, as the handler may continue for long. */
    end(): void {
        this.isOver = true;
        this.#args = undefined;
        this.onEnd?.();
    }

    abort(reason?: unknown): void {
        this.end();
        this.isAborted = true;
        this.#reason = reason;
        this.#controller?.abort(reason);
    }

    #filled(context: any): any {
        if (!this.#isFilled) {
            this.#isFilled = true;
            if (this.bridge.generation === 1) fillExtra(context, this);
            else fillContext(context, this);
        }
        return context;
    }

    get(context: any, name: PropertyKey): unknown {
        return this.#filled(context)[name];
    }

    set(context: any, name: PropertyKey, value: unknown): boolean {
        return Reflect.set(this.#filled(context), name, value);
    }

    has(context: any, name: PropertyKey): boolean {
        return name in this.#filled(context);
    }

    ownKeys(context: any): (string | symbol)[] {
        return Reflect.ownKeys(this.#filled(context));
    }

    getOwnPropertyDescriptor(context: any, name: PropertyKey): PropertyDescriptor | undefined {
        return Reflect.getOwnPropertyDescriptor(this.#filled(context), name);
    }

    defineProperty(context: any, name: PropertyKey, descriptor: PropertyDescriptor): boolean {
        return Reflect.defineProperty(this.#filled(context), name, descriptor);
    }

    deleteProperty(context: any, name: PropertyKey): boolean {
        return Reflect.deleteProperty(this.#filled(context), name);
    }

    preventExtensions(context: any): boolean {
        return Reflect.preventExtensions(this.#filled(context));
    }
}

/** Creates the `AbortController` only when the signal is read. */
function addSignal(to: object, call: SdkCall): void {
    Object.defineProperty(to, 'signal', { get: () => call.signal, enumerable: true, configurable: true });
}

/** Fills a context of v1. */
function fillExtra(extra: object, call: SdkCall): void {
    const { bridge, id, meta } = call;
    const head = bridge.headOf(call);
    addSignal(extra, call);
    const sessionId = bridge.sessionId ?? head?.session;
    Object.assign(extra, {
        sessionId,
        _meta: meta,
        sendNotification: async (notification: object) => {
            if (!call.isAborted) await bridge.protocol.notification(notification, { relatedRequestId: id });
        },
        sendRequest: async (request: object, schema: object, options?: object) => {
            if (call.isAborted) throw cancelled();
            return bridge.protocol.request(request, schema, { ...options, relatedRequestId: id });
        },
        authInfo: head?.auth,
        requestId: id,
        requestInfo: head && requestInfoOf(head),
        taskId: undefined,
        taskStore: taskStoreFor(bridge.protocol, call.message, sessionId),
        taskRequestedTtl: undefined,
        closeSSEStream: undefined,
        closeStandaloneSSEStream: undefined
    });
}

/** The error of v1. */
function cancelled(): Error {
    return Object.assign(new Error('MCP error -32000: Request was cancelled'), { name: 'McpError', code: -32000 });
}

/** Fills a context of v2. */
function fillContext(context: object, call: SdkCall): void {
    const { bridge, id, method } = call;
    const { protocol } = bridge;
    const head = bridge.headOf(call);
    const { envelope, _meta } = lift(call.meta);
    const base = {
        sessionId: bridge.sessionId ?? head?.session,
        mcpReq: {
            id,
            method,
            _meta,
            ...(envelope && { envelope }),
            requestState: () => undefined,
            signal: undefined,
            send: (request: object, schemaOrOptions?: any, options?: object) => {
                const isSchema = schemaOrOptions?.['~standard'] !== undefined;
                if (isSchema) return protocol.request(request, schemaOrOptions, { ...options, relatedRequestId: id });
                return protocol.request(request, { ...schemaOrOptions, relatedRequestId: id });
            },
            notify: (notification: object, options?: object) =>
                protocol.notification(notification, { ...options, relatedRequestId: id })
        },
        http: head?.auth ? { authInfo: head.auth } : undefined
    };
    const built = contextOf(protocol, base, head && { request: requestOf(head), authInfo: head.auth });
    addSignal(built.mcpReq, call);
    Object.assign(context, built);
}

/** Splits `_meta` as v2 does before a handler sees it. */
function lift(meta: Record<string, unknown> | undefined): { envelope?: object; _meta?: object | undefined } {
    const keys = meta ? RESERVED.filter(key => key in meta) : [];
    if (meta === undefined || keys.length === 0) return { _meta: meta };
    const [envelope, rest] = [{} as Record<string, unknown>, { ...meta }];
    for (const key of keys) {
        envelope[key] = meta[key];
        delete rest[key];
    }
    return { envelope, _meta: Object.keys(rest).length > 0 ? rest : undefined };
}

function urlOf({ target, headers }: Head): URL {
    const host = headers.find(([name]) => name === 'host')?.[1];
    return new URL(target, `http://${host ?? 'localhost'}`);
}

/** @internal The description of an HTTP request in v1. */
export function requestInfoOf(head: Head): object {
    return { headers: Object.fromEntries(new Headers(head.headers)), url: urlOf(head) };
}

/** @internal The HTTP request in v2; its body has been read. */
export function requestOf(head: Head): Request {
    return new Request(urlOf(head), { method: head.method, headers: head.headers });
}
