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

/** @internal What handlers of v1 are given: `RequestHandlerExtra`. */
export function extraOf(call: SdkCall): object {
    const { bridge, message } = call;
    const { id, params } = message;
    return {
        get signal() {
            return call.signal;
        },
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
    };
}

/** As v1 says it. */
function cancelled(): Error {
    return Object.assign(new Error('MCP error -32000: Request was cancelled'), { name: 'McpError', code: -32000 });
}

/** @internal What handlers of v2 are given: `ServerContext`. */
export function contextOf(call: SdkCall): object {
    const { bridge, message } = call;
    const { id, method, params } = message;
    const { protocol } = bridge;
    const context = protocol.buildContext!({
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
    // Most handlers never look at it.
    Object.defineProperty(context.mcpReq, 'signal', { get: () => call.signal, enumerable: true, configurable: true });
    return context;
}
