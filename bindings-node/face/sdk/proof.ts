/**
 * Determines whether the handler of a method is the `McpServer`'s own. A program may replace or wrap a handler, and
 * clients must then get the program's.
 */
import { fileURLToPath } from 'node:url';
import { packageOf, unfit, type Package } from './gate';
import { handlerOf, HANDLERS, promptsOf, REGISTRIES, resourcesOf, templatesOf, toolsOf } from './private';
import type { SdkMcpServer, SdkProtocol } from './shapes';

/** @internal What is known about the handlers of one `McpServer`. */
export interface Proof {
    /** Why none is known; `undefined` if they are. */
    readonly unfit: string | undefined;
    /** Whether requests of a method may bypass the SDK's handler. */
    holds(method: string): boolean;
    /** Whether the method has another handler; `undefined` as long as that is unknown. */
    isOther(method: string): boolean | undefined;
    /** Passes a request to the SDK by `send`. */
    watch(method: string, send: () => void): void;
}

/** The handlers that were set first, by server and method. */
const firsts = new WeakMap<object, Map<string, unknown>>();

/** @internal Remembers which handlers a server has been given first: its class calls this after each change. */
export function noteHandlers(protocol: SdkProtocol): void {
    const known = firsts.get(protocol) ?? new Map<string, unknown>();
    firsts.set(protocol, known);
    for (const method of NOTED) if (!known.has(method)) noted(known, method, handlerOf(protocol, method));
}

function noted(known: Map<string, unknown>, method: string, handler: unknown): void {
    if (handler !== undefined) known.set(method, handler);
}

/** Methods of the SDK's own handlers that the engine answers. */
const OPENING = ['initialize', 'ping'];
const NOTED = [...Object.keys(REGISTRIES), ...OPENING];

/** @internal A method of the handshake that the program answers itself. */
export function ownOpening(protocol: SdkProtocol): string | undefined {
    return OPENING.find(method => handlerOf(protocol, method) !== firsts.get(protocol)?.get(method));
}

/**
 * @internal Knows every handler since its server was made. An `McpServer` sets its handlers before its first entry, and
 * refuses to where there are others: if there are entries, the first handler is its own.
 */
export class Noted implements Proof {
    readonly unfit = undefined;
    /** Whether the program looks at each message. */
    isSeen = false;

    constructor(private readonly server: SdkMcpServer) {}

    holds(method: string): boolean {
        if (this.isSeen) return false;
        const { server } = this.server;
        const handler = handlerOf(server, method);
        return handler !== undefined && handler === firsts.get(server)?.get(method) && this.#hasEntries(method);
    }

    isOther(method: string): boolean {
        return !this.holds(method);
    }

    watch(_: string, send: () => void): void {
        send();
    }

    #hasEntries(method: string): boolean {
        const [group] = method.split('/');
        const of = { tools: [toolsOf], resources: [resourcesOf, templatesOf], prompts: [promptsOf] }[group!] ?? [];
        return of.some(registry => Object.keys(registry(this.server)).length > 0);
    }
}

/**
 * @internal For servers that exist before this package sees them. Only calls reveal their handlers: the first request of
 * each method goes through the SDK, and when a handler reads the registry, everything on the call stack must be the
 * SDK's.
 */
export class Observed implements Proof {
    readonly unfit: string | undefined;
    /** The folder of the SDK. */
    readonly #folder: string = '';
    readonly #proven = new Map<string, unknown>();
    readonly #refused = new Map<string, unknown>();
    /** The methods of the requests that the SDK was passed in this turn of the loop. */
    readonly #begun = new Set<string>();

    constructor(private readonly server: SdkMcpServer) {
        const release = releaseOf(server, 'server', () => server.isConnected());
        this.unfit = whyUnfit(release);
        if (release) this.#folder = release.folder;
    }

    holds(method: string): boolean {
        const handler = this.#proven.get(method);
        return handler !== undefined && handler === this.#handler(method);
    }

    isOther(method: string): boolean | undefined {
        const handler = this.#handler(method);
        if (handler !== undefined && handler === this.#proven.get(method)) return false;
        return handler === undefined || handler === this.#refused.get(method) ? true : undefined;
    }

    /**
     * Observes the request that `send` passes to the SDK, if it is the first of this turn: handlers start in the order
     * of their requests, and read the registry before they await anything.
     */
    watch(method: string, send: () => void): void {
        const registry = (REGISTRIES as Record<string, string>)[method];
        const isFirst = this.#begun.size === 0;
        if (isFirst) setImmediate(() => this.#begun.clear());
        this.#begun.add(method);
        if (this.unfit !== undefined || registry === undefined || !isFirst || this.isOther(method) !== undefined) return send();
        const handler = this.#handler(method);
        const stop = observe(this.server, registry, () => {
            stop();
            const files = callers();
            const isOwn = files.length > 0 && files.every(file => packageOf(file)?.folder === this.#folder);
            (isOwn ? this.#proven : this.#refused).set(method, handler);
        });
        send();
        // Handlers start in a microtask; a handler that has not read the registry by then is not the SDK's.
        setImmediate(() => {
            stop();
            if (this.isOther(method) === undefined) this.#refused.set(method, handler);
        });
    }

    #handler(method: string): unknown {
        return handlerOf(this.server.server, method);
    }
}

/** @internal Why the handlers of a low-level server may not be called; `undefined` if they may. */
export function unfitToCall(protocol: SdkProtocol): string | undefined {
    // Without a handler of that name, this only looks.
    return whyUnfit(releaseOf(protocol, HANDLERS, () => protocol.removeRequestHandler('')));
}

function whyUnfit(release: Package | undefined): string | undefined {
    return release === undefined ? 'its class is in no package' : unfit(release);
}

/** The package of the function that reads a property first when `look` is called. */
function releaseOf(of: object, name: string, look: () => void): Package | undefined {
    let file: string | undefined;
    const stop = observe(of, name, () => (file ??= callers()[0]));
    look();
    stop();
    return file === undefined ? undefined : packageOf(file);
}

/** Calls `seen` whenever a property is read, until the returned function is called. */
function observe(of: object, name: string, seen: () => void): () => void {
    const before = Object.getOwnPropertyDescriptor(of, name)!;
    const { value } = before;
    const stop = () => void Object.defineProperty(of, name, before);
    Object.defineProperty(of, name, {
        configurable: true,
        enumerable: true,
        get: () => {
            seen();
            return value;
        }
    });
    return stop;
}

/** The files of the functions that lead to the reader of an observed property, innermost first. */
function callers(): string[] {
    const { prepareStackTrace, stackTraceLimit } = Error;
    try {
        Error.stackTraceLimit = 30;
        Error.prepareStackTrace = (_, sites) => sites;
        const sites = new Error().stack as unknown as NodeJS.CallSite[];
        // Without this function, the observer and the getter.
        const files = sites.slice(3).filter(site => !site.isAsync()).map(site => site.getFileName() ?? '');
        return files.filter(file => !file.startsWith('node:')).map(file => (file.startsWith('file:') ? fileURLToPath(file) : file));
    } finally {
        Error.prepareStackTrace = prepareStackTrace;
        Error.stackTraceLimit = stackTraceLimit;
    }
}
