import { guarded, McpError, ProtocolError, revive, ToolError, type Failure } from './errors';
import type { Failures } from './failures';
import { native, type NativeDesk, type NativePassing } from './native';
import { writeJson } from './numbers';

/** A message of JSON-RPC: a request, a response or a notification. */
export interface ChainMessage {
    jsonrpc?: '2.0';
    /** The id that the sender gave a request. Requests of several senders may have the same. */
    id?: string | number;
    method?: string;
    params?: any;
    /** The result of a response. */
    result?: any;
    /** The error of a response. */
    error?: { code: number; message: string; data?: unknown };
}

/** Which way a message goes. */
export type ChainDirection = 'to_server' | 'to_client';

/** Passes a message on; a message is passed on once at most. For a request, resolves to the response. */
export interface ChainNext {
    (message: ChainMessage): Promise<ChainMessage>;
    readonly direction: ChainDirection;
    /** The revision in which the sender of a request speaks, also for its response. */
    readonly revision?: string;
    /** The verified sender of a request; absent if nobody verified it. */
    readonly principal?: string;
    /** For a response, the request that it answers, as it was passed on. */
    readonly request?: ChainMessage;
    /** Aborts when the sender cancels the request. */
    readonly signal: AbortSignal;
}

/**
 * A part of a chain that sees its messages, in both directions: `next.direction` says in which. A hook that is not there
 * costs nothing. What is passed on unchanged goes on byte for byte. Reports of progress and cancellations are not shown, as
 * each side has its own.
 *
 * An exception in a hook is an error for the sender of the request: a `ProtocolError`, a `ToolError` or an error of a peer with
 * its message, any other one without, and reported.
 */
export interface ChainMiddleware {
    /**
     * Handles a request. Returns the response, which `await next(message)` gives, or one of its own. `next` gives an error of
     * the other side as a response with `error`, and rejects with an `McpError` if there is no response: the server cannot be
     * reached, or does not answer in time. Left to itself, that becomes an error that names the server.
     */
    request?(message: ChainMessage, next: ChainNext): ChainMessage | Promise<ChainMessage>;
    /** Handles a response to a request that this middleware passed on, before `request` gets it. What is given to `next` is passed on. */
    response?(message: ChainMessage, next: ChainNext): unknown;
    /** Handles a notification. One that is not given to `next` is dropped. Messages that come while this waits may overtake it. */
    notification?(message: ChainMessage, next: ChainNext): unknown;
}

interface Seat {
    middleware: ChainMiddleware;
    failures: Failures;
}

const OTHER = { to_server: 'to_client', to_client: 'to_server' } as const;
const FAILED = 'the middleware failed unexpectedly';

/** A request that middleware handles. */
class Handling {
    readonly #desk: Desk;
    readonly #seat: Seat;
    readonly #row: NativePassing;
    readonly #abort = new AbortController();
    #answer: { resolve: (message: ChainMessage) => void; reject: (error: unknown) => void } | undefined;
    #failure: unknown;
    /** The response as it came. */
    #raw: string | undefined;

    constructor(desk: Desk, seat: Seat, row: NativePassing) {
        this.#desk = desk;
        this.#seat = seat;
        this.#row = row;
    }

    async run(): Promise<void> {
        const { seat, number, text } = this.#row;
        const { middleware } = this.#seat;
        try {
            const message: ChainMessage = JSON.parse(text!);
            const next = this.#next(message => this.#pass(message), this.#row.direction as ChainDirection);
            this.#settle(await (middleware.request ? middleware.request(message, next) : next(message)));
        } catch (error) {
            this.#fail(error);
        } finally {
            this.#desk.done(seat, number);
        }
    }

    #next(pass: (message: ChainMessage) => Promise<ChainMessage>, direction: ChainDirection, request?: ChainMessage): ChainNext {
        const { revision, principal } = this.#row;
        return Object.assign(pass, {
            ...{ direction, signal: this.#abort.signal },
            ...(revision !== undefined && { revision }),
            ...(principal !== undefined && { principal }),
            ...(request !== undefined && { request })
        });
    }

    async #pass(message: ChainMessage): Promise<ChainMessage> {
        const { seat, number, text } = this.#row;
        const came: ChainMessage = JSON.parse(text!);
        if (message.method !== undefined && message.method !== came.method)
            throw new McpError('ERR_MCP_MISUSE', `the method of a request stays as it is: ${came.method}, not ${message.method}`);
        guarded(() => this.#desk.native.pass(seat, number, changed(came.params ?? {}, message.params ?? {})));
        const response = await new Promise<ChainMessage>((resolve, reject) => (this.#answer = { resolve, reject }));
        return this.#seat.middleware.response ? this.#shown(response, message) : response;
    }

    /** What the middleware's `response` makes of a response. */
    async #shown(response: ChainMessage, request: ChainMessage): Promise<ChainMessage> {
        let passed: ChainMessage | undefined;
        const pass = async (message: ChainMessage) => {
            once(passed);
            return (passed = message);
        };
        await this.#seat.middleware.response!(response, this.#next(pass, OTHER[this.#row.direction as ChainDirection], request));
        if (passed === undefined) throw new ProtocolError('internal', 'the response was not passed on');
        return passed;
    }

    answered(raw: string): void {
        this.#raw = raw;
        this.#answer?.resolve(JSON.parse(raw));
    }

    failed(failure: Failure): void {
        this.#failure = revive(failure);
        this.#answer?.reject(this.#failure);
    }

    gone(): void {
        this.#abort.abort(new McpError('ERR_MCP_CANCELLED', 'the request was cancelled'));
        this.#answer?.reject(this.#abort.signal.reason);
    }

    #settle(response: ChainMessage | undefined): void {
        const { seat, number } = this.#row;
        const { result, error } = response ?? {};
        const came: ChainMessage | undefined = this.#raw === undefined ? undefined : JSON.parse(this.#raw);
        if (error !== undefined) return this.#refuse(error.code, '', error.message, error.data);
        if (result === null || typeof result !== 'object')
            throw new McpError('ERR_MCP_MISUSE', '`request` of middleware returns a response with `result` or `error`, as `await next(message)` gives it');
        const text = came?.result === undefined ? objectJson(result) : changed(came.result, result);
        guarded(() => this.#desk.native.settle(seat, number, text));
    }

    #refuse(code: number | undefined, kind: string, message: string, data: unknown): void {
        const { seat, number } = this.#row;
        const json = data === undefined ? undefined : writeJson(data);
        guarded(() => this.#desk.native.refuse(seat, number, code, kind, String(message), json));
    }

    #fail(error: unknown): void {
        try {
            this.#tell(error);
        } catch (unsendable) {
            // Such as its data, which may be no JSON.
            this.#conceal(unsendable);
        }
    }

    /** Answers with the error that an exception stands for. */
    #tell(error: unknown): void {
        const { seat, number } = this.#row;
        if (this.#failure !== undefined && error === this.#failure) return this.#desk.native.settle(seat, number);
        if (this.#abort.signal.aborted && error === this.#abort.signal.reason) return;
        if (error instanceof ProtocolError) {
            const code = typeof error.kind === 'number' ? error.kind : undefined;
            return this.#refuse(code, String(error.kind), error.message, error.data);
        }
        if (error instanceof McpError && error.rpcCode !== undefined) return this.#refuse(error.rpcCode, '', error.message, error.data);
        if (error instanceof ToolError) return this.#refuse(undefined, 'internal', error.message, undefined);
        this.#conceal(error);
    }

    /** Reports an exception whose text is not for the sender. */
    #conceal(error: unknown): void {
        this.#seat.failures.report(error, 'the middleware');
        this.#refuse(undefined, 'internal', FAILED, undefined);
    }
}

/** @internal Takes the messages that middleware is to see, in the order in which they came. */
export class Desk {
    readonly native: NativeDesk;
    readonly #seats = new Map<number, Seat>();
    readonly #handling = new Map<string, Handling>();

    constructor() {
        const weak = new WeakRef(this);
        this.native = guarded(() => new native.Desk(() => weak.deref()?.drain()));
    }

    /** Notes which middleware has which seat. */
    sit(numbers: readonly number[], middleware: readonly ChainMiddleware[], failures: Failures): void {
        numbers.forEach((number, at) => this.#seats.set(number, { middleware: middleware[at]!, failures }));
    }

    drain(): void {
        const rows = this.native.drain();
        for (const row of rows) this.#take(row);
        if (rows.length > 0) setImmediate(() => this.drain());
    }

    #take(row: NativePassing): void {
        const { kind, seat, number, text } = row;
        const known = this.#handling.get(`${seat} ${number}`);
        switch (kind) {
            case 'request': {
                const handling = new Handling(this, this.#seats.get(seat)!, row);
                this.#handling.set(`${seat} ${number}`, handling);
                return void handling.run();
            }
            case 'response':
                return known?.answered(text!);
            case 'failure':
                return known?.failed(JSON.parse(text!));
            case 'gone':
                return known?.gone();
            case 'notification':
                return void this.#noticed(row);
            default:
                // Behind what was begun before, as far as that does not wait.
                return void setImmediate(() => this.native.reached(seat, number));
        }
    }

    async #noticed({ seat, number, text, direction }: NativePassing): Promise<void> {
        const { middleware, failures } = this.#seats.get(seat)!;
        let passed: ChainMessage | undefined;
        const pass = async (message: ChainMessage) => {
            once(passed);
            passed = message;
            const came: ChainMessage = JSON.parse(text!);
            const method = message.method === came.method ? undefined : message.method;
            const params = changed(came.params ?? {}, message.params ?? {});
            guarded(() => this.native.letGo(seat, number, true, method, params));
            return message;
        };
        const next: ChainNext = Object.assign(pass, { direction: direction as ChainDirection, signal: new AbortController().signal });
        try {
            await middleware.notification!(JSON.parse(text!), next);
        } catch (error) {
            failures.report(error, 'the middleware');
        }
        this.native.letGo(seat, number, false);
    }

    /** A request is answered. */
    done(seat: number, number: number): void {
        this.#handling.delete(`${seat} ${number}`);
    }

    /** Ends it: what waits is refused. */
    close(): void {
        this.native.close();
        for (const handling of this.#handling.values()) handling.gone();
        this.#handling.clear();
        this.#seats.clear();
    }
}

function once(passed: unknown): void {
    if (passed !== undefined) throw new McpError('ERR_MCP_MISUSE', 'the message was passed on before; a message is passed on once at most');
}

function objectJson(value: unknown): string {
    const json = writeJson(value);
    if (json === undefined || !json.startsWith('{')) throw new McpError('ERR_MCP_MISUSE', 'params and results are objects');
    return json;
}

/** The JSON of an object; `undefined` if it says the same as what came, which is then passed on byte for byte. */
function changed(before: unknown, after: unknown): string | undefined {
    const json = objectJson(after);
    return json === writeJson(before) ? undefined : json;
}
