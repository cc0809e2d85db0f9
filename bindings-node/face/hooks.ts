import type { ChainDirection, ChainMessage, ChainMiddleware, ChainNext } from './chainmiddleware';
import { guarded, McpError, ProtocolError, revive, ToolError, type Failure } from './errors';
import type { Failures } from './failures';
import { HookClock } from './hookclock';
import { native, type NativeHandoffs, type NativePassing } from './native';
import { writeJson } from './numbers';

/** @internal Middleware of a front. */
export interface Running {
    middleware: ChainMiddleware;
    /** What it is called in errors. */
    name: string;
    /** How long a hook may take, in ms. */
    hookTimeout: number;
    failures: Failures;
}

const OTHER = { to_server: 'to_client', to_client: 'to_server' } as const;
const FAILED = 'the middleware failed unexpectedly';

/** A request that middleware handles. */
class Handling {
    readonly #runner: HookRunner;
    readonly #running: Running;
    readonly #row: NativePassing;
    readonly #clock: HookClock;
    readonly #abort = new AbortController();
    #answer: { resolve: (message: ChainMessage) => void; reject: (error: unknown) => void } | undefined;
    #failure: unknown;
    /** The response as it came. */
    #raw: string | undefined;

    constructor(runner: HookRunner, running: Running, row: NativePassing) {
        this.#runner = runner;
        this.#running = running;
        this.#row = row;
        this.#clock = new HookClock(running.hookTimeout, () => this.#late());
    }

    async run(): Promise<void> {
        const { text } = this.#row;
        const { middleware } = this.#running;
        try {
            const message: ChainMessage = JSON.parse(text!);
            const next = this.#next(message => this.#passed(message), this.#row.direction as ChainDirection);
            this.#settle(await (middleware.request ? middleware.request(message, next) : next(message)));
        } catch (error) {
            this.#fail(error);
        } finally {
            this.#end();
        }
    }

    #end(): void {
        this.#clock.stop();
        this.#runner.done(this.#row);
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

    #passed(message: ChainMessage): Promise<ChainMessage> {
        const response = this.#pass(message);
        // A hook that does not await it must not end the process.
        response.catch(() => {});
        return response;
    }

    async #pass(message: ChainMessage): Promise<ChainMessage> {
        const { middleware, number, text } = this.#row;
        const came: ChainMessage = JSON.parse(text!);
        if (message.method !== undefined && message.method !== came.method)
            throw new McpError('ERR_MCP_MISUSE', `the method of a request stays as it is: ${came.method}, not ${message.method}`);
        guarded(() => this.#runner.native.pass(middleware, number, changed(came.params ?? {}, message.params ?? {})));
        this.#clock.stop();
        const response = await new Promise<ChainMessage>((resolve, reject) => (this.#answer = { resolve, reject }));
        return this.#running.middleware.response ? this.#shown(response, message) : response;
    }

    /** What the middleware's `response` makes of a response. */
    async #shown(response: ChainMessage, request: ChainMessage): Promise<ChainMessage> {
        let passed: ChainMessage | undefined;
        const pass = async (message: ChainMessage) => {
            once(passed);
            return (passed = message);
        };
        await this.#running.middleware.response!(response, this.#next(pass, OTHER[this.#row.direction as ChainDirection], request));
        if (passed === undefined) throw new ProtocolError('internal', 'the response was not passed on');
        return passed;
    }

    answered(raw: string): void {
        this.#raw = raw;
        this.#clock.go();
        this.#answer?.resolve(JSON.parse(raw));
    }

    failed(failure: Failure): void {
        this.#failure = revive(failure);
        this.#clock.go();
        this.#answer?.reject(this.#failure);
    }

    gone(): void {
        this.#giveUp(new McpError('ERR_MCP_CANCELLED', 'the request was cancelled'));
    }

    #late(): void {
        const why = late(this.#running);
        this.#refuse(undefined, 'internal', why.message, undefined);
        this.#giveUp(why);
        this.#running.failures.report(why, 'the middleware');
    }

    #giveUp(why: McpError): void {
        this.#end();
        this.#abort.abort(why);
        this.#answer?.reject(why);
    }

    #settle(response: ChainMessage | undefined): void {
        const { middleware, number } = this.#row;
        const { result, error } = response ?? {};
        const came: ChainMessage | undefined = this.#raw === undefined ? undefined : JSON.parse(this.#raw);
        if (error !== undefined) return this.#refuse(error.code, '', error.message, error.data);
        if (result === null || typeof result !== 'object')
            throw new McpError('ERR_MCP_MISUSE', '`request` of middleware returns a response with `result` or `error`, as `await next(message)` gives it');
        const text = came?.result === undefined ? objectJson(result) : changed(came.result, result);
        guarded(() => this.#runner.native.settle(middleware, number, text));
    }

    #refuse(code: number | undefined, kind: string, message: string, data: unknown): void {
        const { middleware, number } = this.#row;
        const json = data === undefined ? undefined : writeJson(data);
        guarded(() => this.#runner.native.refuse(middleware, number, code, kind, String(message), json));
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
        const { middleware, number } = this.#row;
        if (this.#failure !== undefined && error === this.#failure) return this.#runner.native.settle(middleware, number);
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
        this.#running.failures.report(error, 'the middleware');
        this.#refuse(undefined, 'internal', FAILED, undefined);
    }
}

/** @internal Runs the middleware of chains, which sees the messages in the order in which they came. */
export class HookRunner {
    readonly native: NativeHandoffs;
    readonly #middleware = new Map<number, Running>();
    readonly #handling = new Map<string, Handling>();
    readonly #kept: unknown[] = [];

    constructor() {
        const weak = new WeakRef(this);
        this.native = guarded(() => new native.Handoffs(() => weak.deref()?.drain()));
    }

    /** Notes which middleware has which number. */
    add(numbers: readonly number[], middleware: readonly Running[]): void {
        numbers.forEach((number, at) => this.#middleware.set(number, middleware[at]!));
    }

    /** Keeps a callback of the engine as long as the chain runs: see `weakly`. */
    keep(callback: unknown): void {
        this.#kept.push(callback);
    }

    drain(): void {
        const rows = this.native.drain();
        for (const row of rows) this.#take(row);
        if (rows.length > 0) setImmediate(() => this.drain());
    }

    #take(row: NativePassing): void {
        const { kind, middleware, number, text } = row;
        const known = this.#handling.get(keyOf(row));
        switch (kind) {
            case 'request': {
                const handling = new Handling(this, this.#middleware.get(middleware)!, row);
                this.#handling.set(keyOf(row), handling);
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
                return void setImmediate(() => this.native.reached(middleware, number));
        }
    }

    async #noticed({ middleware, number, text, direction }: NativePassing): Promise<void> {
        const running = this.#middleware.get(middleware)!;
        const abort = new AbortController();
        const drop = () => this.native.letGo(middleware, number, false);
        const clock = new HookClock(running.hookTimeout, () => {
            const why = late(running);
            abort.abort(why);
            drop();
            running.failures.report(why, 'the middleware');
        });
        let passed: ChainMessage | undefined;
        const pass = async (message: ChainMessage) => {
            once(passed);
            passed = message;
            const came: ChainMessage = JSON.parse(text!);
            const method = message.method === came.method ? undefined : message.method;
            const params = changed(came.params ?? {}, message.params ?? {});
            guarded(() => this.native.letGo(middleware, number, true, method, params));
            clock.stop();
            return message;
        };
        const next: ChainNext = Object.assign(pass, { direction: direction as ChainDirection, signal: abort.signal });
        try {
            await running.middleware.notification!(JSON.parse(text!), next);
        } catch (error) {
            if (error !== abort.signal.reason || !abort.signal.aborted) running.failures.report(error, 'the middleware');
        }
        clock.stop();
        drop();
    }

    /** A request is answered, or is not waited for any more. */
    done(row: NativePassing): void {
        this.#handling.delete(keyOf(row));
    }

    /** Ends it: what waits is refused. */
    close(): void {
        this.native.close();
        for (const handling of [...this.#handling.values()]) handling.gone();
        this.#middleware.clear();
    }
}

function keyOf({ middleware, number }: NativePassing): string {
    return `${middleware} ${number}`;
}

function late({ name, hookTimeout }: Running): McpError {
    return new McpError('ERR_MCP_TIMEOUT', `the middleware ${name} did not finish within ${hookTimeout / 1000} s`);
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
