import type { Bridge } from './bridge';
import type { Message } from './shapes';

/** @internal A request of a client that the SDK's server has to answer. */
export class SdkCall {
    readonly bridge: Bridge;
    /** The engine's number of it. */
    readonly number: number;
    readonly message: Message & { method: string };
    /** How often the lists had changed when it came. */
    readonly changes: number;
    /** The SDK's protocol has it. */
    hasFallen = false;
    /** Called once it is answered or given up. */
    onEnd: (() => void) | undefined;
    #isOver = false;
    #isAborted = false;
    #reason: unknown;
    #controller: AbortController | undefined;

    constructor(bridge: Bridge, number: number, message: Message) {
        this.bridge = bridge;
        this.number = number;
        this.message = message as Message & { method: string };
        this.changes = bridge.changes;
    }

    /** As the SDK's: aborted with the client's reason. */
    get signal(): AbortSignal {
        if (this.#controller === undefined) {
            this.#controller = new AbortController();
            if (this.#isAborted) this.#controller.abort(this.#reason);
        }
        return this.#controller.signal;
    }

    get isAborted(): boolean {
        return this.#isAborted;
    }

    /** Nothing that is given back matters any more. */
    get isOver(): boolean {
        return this.#isOver;
    }

    /** It is answered. */
    end(): void {
        this.#isOver = true;
        this.onEnd?.();
    }

    abort(reason?: unknown): void {
        this.end();
        this.#isAborted = true;
        this.#reason = reason;
        this.#controller?.abort(reason);
    }
}

/**
 * A context as its handler sees it. Most never look at it, and an object with a getter costs more than all the rest of a
 * call: so it is filled when it is first touched in any way.
 */
abstract class Unfilled implements ProxyHandler<any> {
    protected readonly call: SdkCall;
    #isFilled = false;

    constructor(call: SdkCall) {
        this.call = call;
    }

    protected abstract fill(context: any): void;

    #filled(context: any): any {
        if (!this.#isFilled) {
            this.#isFilled = true;
            this.fill(context);
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

/** @internal What handlers of v1 are given: `RequestHandlerExtra`. */
export function extraOf(call: SdkCall): object {
    return new Proxy({}, new UnfilledExtra(call));
}

class UnfilledExtra extends Unfilled {
    protected fill(extra: object): void {
        const { call } = this;
        const { bridge, message } = call;
        const { id, params } = message;
        addSignal(extra, call);
        Object.assign(extra, {
            sessionId: bridge.sessionId,
            _meta: params?._meta,
            sendNotification: async (notification: object) => {
                if (!call.isAborted) await bridge.protocol.notification(notification, { relatedRequestId: id });
            },
            sendRequest: async (request: object, schema: object, options?: object) => {
                if (call.isAborted) throw cancelled();
                return bridge.protocol.request(request, schema, { ...options, relatedRequestId: id });
            },
            authInfo: undefined,
            requestId: id,
            requestInfo: undefined,
            taskId: undefined,
            taskStore: undefined,
            taskRequestedTtl: undefined,
            closeSSEStream: undefined,
            closeStandaloneSSEStream: undefined
        });
    }
}

/** As v1 says it. */
function cancelled(): Error {
    return Object.assign(new Error('MCP error -32000: Request was cancelled'), { name: 'McpError', code: -32000 });
}

/** @internal What handlers of v2 are given: `ServerContext`. */
export function contextOf(call: SdkCall): object {
    return new Proxy({}, new UnfilledContext(call));
}

class UnfilledContext extends Unfilled {
    protected fill(context: object): void {
        const { call } = this;
        const { bridge, message } = call;
        const { id, method, params } = message;
        const { protocol } = bridge;
        const built = protocol.buildContext!({
            sessionId: bridge.sessionId,
            mcpReq: {
                id,
                method,
                _meta: params?._meta,
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
            http: undefined
        }) as { mcpReq: object };
        addSignal(built.mcpReq, call);
        Object.assign(context, built);
    }
}
