/**
 * Determines whether the handler of a method is the `McpServer`'s own. A program may replace or wrap a handler, and
 * clients must then get the program's. Only calls reveal this: the first request of each method goes through the SDK,
 * and the call stack is checked when a handler reads the registry.
 */
import type { SdkMcpServer } from './shapes';

type Registry = '_registeredTools' | '_registeredResources' | '_registeredResourceTemplates' | '_registeredPrompts';

/** The registry that the handler of a method reads first. */
const REGISTRIES: Record<string, Registry> = {
    'tools/list': '_registeredTools',
    'tools/call': '_registeredTools',
    'resources/list': '_registeredResources',
    'resources/templates/list': '_registeredResourceTemplates',
    'resources/read': '_registeredResources',
    'prompts/list': '_registeredPrompts',
    'prompts/get': '_registeredPrompts'
};

/**
 * The functions from the one that reads the registry to the bottom of the stack, for each generation of the SDK. A
 * wrapped handler adds functions, and another build of the SDK has different ones; both are left to the SDK.
 */
const STACKS = {
    1: { usual: '- - -', 'tools/call': '- wrappedHandler - -' },
    2: { usual: '- stored - -', asking: '- stored _invokeInputRequiredCapableHandler - -' }
};

/** Methods whose handlers may ask the client in rounds, in v2. */
const ASKING = ['tools/call', 'resources/read', 'prompts/get'];

function expected(generation: 1 | 2, method: string): string {
    if (generation === 1) return method === 'tools/call' ? STACKS[1]['tools/call'] : STACKS[1].usual;
    return ASKING.includes(method) ? STACKS[2].asking : STACKS[2].usual;
}

/** @internal What is known about the handlers of one `McpServer`. */
export class Proof {
    /** The file that contains the methods of `McpServer`. */
    readonly #file: string | undefined;
    readonly #proven = new Map<string, unknown>();
    readonly #refused = new Map<string, unknown>();
    /** The methods of the requests that the SDK was passed in this turn of the loop. */
    readonly #begun = new Set<string>();

    constructor(private readonly server: SdkMcpServer, private readonly generation: 1 | 2) {
        let file: string | undefined;
        const stop = observe(server, 'server', () => (file ??= callers()[0]?.getFileName() ?? undefined));
        server.isConnected();
        stop();
        this.#file = file;
    }

    /** Whether requests of a method may bypass the SDK's handler. */
    holds(method: string): boolean {
        const handler = this.#proven.get(method);
        return handler !== undefined && handler === this.#handler(method);
    }

    /** Whether the method has another handler; `undefined` as long as that is unknown. */
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
        const registry = REGISTRIES[method];
        const isFirst = this.#begun.size === 0;
        if (isFirst) setImmediate(() => this.#begun.clear());
        this.#begun.add(method);
        if (registry === undefined || !isFirst || this.isOther(method) !== undefined) return send();
        const handler = this.#handler(method);
        const refuse = () => this.#refused.set(method, handler);
        const stop = observe(this.server, registry, () => {
            stop();
            const sites = callers();
            const isOwn = namesOf(sites) === expected(this.generation, method) && sites[0]?.getFileName() === this.#file;
            if (isOwn) this.#proven.set(method, handler);
            else refuse();
        });
        send();
        // Handlers start in a microtask; a handler that has not read the registry by then is not the SDK's.
        setImmediate(() => {
            stop();
            if (this.isOther(method) === undefined) refuse();
        });
    }

    #handler(method: string): unknown {
        return this.server.server._requestHandlers?.get(method);
    }
}

/** Calls `seen` whenever a property is read, until the returned function is called. */
function observe<T extends object>(of: T, name: keyof T, seen: () => void): () => void {
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

/** The call sites that lead to the reader of an observed property, innermost first. */
function callers(): NodeJS.CallSite[] {
    const { prepareStackTrace, stackTraceLimit } = Error;
    try {
        Error.stackTraceLimit = 30;
        Error.prepareStackTrace = (_, sites) => sites;
        const sites = new Error().stack as unknown as NodeJS.CallSite[];
        // Without this function, the observer and the getter.
        return sites.slice(3).filter(site => !isOfNode(site));
    } finally {
        Error.prepareStackTrace = prepareStackTrace;
        Error.stackTraceLimit = stackTraceLimit;
    }
}

function isOfNode(site: NodeJS.CallSite): boolean {
    return site.getFileName()?.startsWith('node:') === true || site.isAsync();
}

function namesOf(sites: NodeJS.CallSite[]): string {
    return sites.map(site => site.getFunctionName() || '-').join(' ');
}
