import type { Bridge } from './bridge';
import type { Id, Message } from './shapes';

/** What a request says of itself from 2026-07-28 on, and what it is not shown as. */
const RESERVED = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map(name => `io.modelcontextprotocol/${name}`);

/** What brought a request over HTTP. */
export interface Head {
    method: string;
    target: string;
    headers: [string, string][];
    session?: string;
    auth?: unknown;
}

/**
 * @internal A request of a client that the SDK's server has to answer. It comes whole, or as the parts of a call of a tool,
 * of which most handlers need no more than the arguments.
 *
 * It is also the handler of the proxy that its handler is given as a context: most never look at that, and an object with
 * a getter costs more than all the rest of a call. So it is filled when it is first touched in any way.
 */
export class SdkCall implements ProxyHandler<any> {
    readonly bridge: Bridge;
    /** The engine's number of it. */
    readonly number: number;
    readonly method: string;
    /** It came without a handshake, and says itself who asks. */
    readonly isAlone: boolean;
    /** How often the lists had changed when it came. */
    readonly changes: number;
    /** The SDK's protocol has it. */
    hasFallen = false;
    /** Nothing that is given back matters any more. */
    isOver = false;
    isAborted = false;
    /** Called once it is answered or given up. */
    onEnd: (() => void) | undefined;
    #isFilled = false;
    /** Of the call of a tool: which, and JSON. */
    #name = '';
    #args: object | undefined;
    #idText = '';
    #metaText = '';
    #message: Message | undefined;
    #id: Id | undefined;
    #meta: Record<string, unknown> | undefined;
    #reason: unknown;
    #controller: AbortController | undefined;

    constructor(bridge: Bridge, number: number, method: string, isAlone: boolean) {
        this.bridge = bridge;
        this.number = number;
        this.method = method;
        this.isAlone = isAlone;
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

    /** What the SDK calls it: it can be found by that from then on. */
    get id(): Id {
        return (this.#id ??= this.bridge.register(this, JSON.parse(this.#idText)));
    }

    get isRegistered(): boolean {
        return this.#id !== undefined;
    }

    /** As it came, but for its id. */
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

    /** The arguments of the call of a tool. */
    get args(): object | undefined {
        return this.#args;
    }

    get meta(): Record<string, any> | undefined {
        if (this.#message) return this.#message.params?._meta;
        return (this.#meta ??= this.#metaText === '' ? undefined : JSON.parse(this.#metaText));
    }

    /** What its handler is given: `RequestHandlerExtra` in v1, `ServerContext` in v2. */
    get context(): object {
        return new Proxy({}, this);
    }

    /** As the SDK's: aborted with the client's reason. */
    get signal(): AbortSignal {
        if (this.#controller === undefined) {
            this.#controller = new AbortController();
            if (this.isAborted) this.#controller.abort(this.#reason);
        }
        return this.#controller.signal;
    }

    /** It is answered. What was asked is not kept for as long as its handler may go on. */
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

/** An `AbortController` is made when somebody asks for its signal. */
function addSignal(to: object, call: SdkCall): void {
    Object.defineProperty(to, 'signal', { get: () => call.signal, enumerable: true, configurable: true });
}

/** As v1 has it. */
function fillExtra(extra: object, call: SdkCall): void {
    const { bridge, id, meta } = call;
    const head = bridge.headOf(call);
    addSignal(extra, call);
    Object.assign(extra, {
        sessionId: bridge.sessionId ?? head?.session,
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
        taskStore: undefined,
        taskRequestedTtl: undefined,
        closeSSEStream: undefined,
        closeStandaloneSSEStream: undefined
    });
}

/** As v1 says it. */
function cancelled(): Error {
    return Object.assign(new Error('MCP error -32000: Request was cancelled'), { name: 'McpError', code: -32000 });
}

/** As v2 has it. */
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
    const built = protocol.buildContext!(base, head && { request: requestOf(head), authInfo: head.auth }) as { mcpReq: object };
    addSignal(built.mcpReq, call);
    Object.assign(context, built);
}

/** What v2 takes out of the `_meta` of a request before its handler sees it. */
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

/** @internal As v1 is told of a request. */
export function requestInfoOf(head: Head): object {
    return { headers: Object.fromEntries(new Headers(head.headers)), url: urlOf(head) };
}

/** @internal As v2 is told of it; its body has been read. */
export function requestOf(head: Head): Request {
    return new Request(urlOf(head), { method: head.method, headers: head.headers });
}
