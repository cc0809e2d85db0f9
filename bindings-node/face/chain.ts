import { connectSettings, type ConnectOptionsOf } from './address';
import { auditing } from './audit';
import type { Policy, RunReport } from './definitions';
import type { ChainMiddleware } from './chainmiddleware';
import { endpointOf, type EndpointOptions, type ServeOptions } from './endpoint';
import { guarded, McpError } from './errors';
import { Failures } from './failures';
import type { Handler } from './handler';
import { checkLimit } from './hookclock';
import { weakly } from './kept';
import { Link, type Receiver } from './link';
import type { Logger } from './logger';
import { OAuth } from './login';
import { Endpoint } from './mount';
import { Mounted, mountReceiver } from './mounted';
import { native, type NativeExternal, type NativeFront, type NativeLink, type NativeMount } from './native';
import { settingsJson } from './numbers';
import { childSettings, type SpawnOptionsOf } from './options';
import { DIRECTIONS, type Revision, type Trace } from './protocol';
import type { EngineMiddleware, Prefix, Rule } from './rules';
import { HookRunner } from './hooks';
import { Entries } from './entries';
import type { Server } from './server';
import { areUnheard, holdSignals, Serving, stopOn } from './serving';
import { telemetry } from './telemetry';
import { checkVerifier, Verifying } from './verifier';
import { runAt, type RunAtOptions } from './workers';

/** Options of a server at the end of a chain. Those that do not apply to it are ignored. */
export interface ExternalOptions
    extends Pick<ConnectOptionsOf<any>, 'headers' | 'auth' | 'protocols' | 'connectTimeout' | 'redirectOrigins' | 'heartbeat' | 'ca' | 'cert' | 'key'>,
        Pick<SpawnOptionsOf<any>, 'cwd' | 'env' | 'closeTimeout'> {
    /** The name that stands in errors. By default that of the server, without arguments, paths and queries. */
    name?: string;
    /**
     * What clients see before the names and URIs of the server: `find` becomes `library_find`, and `book://list` becomes
     * `book://library/list`. Servers that are joined to one front need one each; one of them may do without.
     */
    prefix?: string;
    /**
     * Which clients share a connection to the server, and thus its process if it is a command: with `session` none, each session has
     * one of its own, which is the default; with `principal` the sessions of a verified client; with `shared` all.
     *
     * Where clients share a connection, a question of the server and a log message reach a client only if nobody else has a call under
     * way, and tasks of revisions before 2026-07-28 are not offered. With `shared`, a server of these revisions is told that its clients
     * can answer no questions.
     */
    isolation?: 'session' | 'principal' | 'shared';
    /**
     * The most connections at a time, and thus processes if it is a command; 10,000 by default, and 256 for commands. A client that
     * would need another one gets an error of an overloaded server.
     */
    maxConnections?: number;
    /**
     * Middleware of the engine for this server alone, behind that of the front. The first sees requests first, all by the
     * server's own names.
     */
    rules?: readonly Rule[];
    /** The stderr of children. */
    stderr?: 'inherit' | 'ignore';
    /** How connections open; by default in the era of the client, so that nothing needs to be translated, and else in the other one. */
    opening?: 'probe' | 'handshake' | 'stateless';
    /** The only revision to speak with the server; any by default. */
    revision?: Revision;
    /** How long a request waits for its answer, in ms, which reports of progress restart; 60 s by default. */
    timeout?: number;
    /** How long a request waits in all, in ms. */
    maxTimeout?: number;
}

/**
 * A server that a chain ends at: an address, the words of a command line, a `Server` of this program, which runs while the
 * front is served, or another `Front`. A front connects to it when clients need it, and again when a connection was lost.
 */
export class External {
    /** The name that stands in errors. */
    readonly name: string;
    /** @internal */
    readonly prefix: string | undefined;
    readonly #within: Server<any> | Front | undefined;
    readonly #native: NativeExternal | undefined;
    readonly #settings: string;
    readonly #rules: readonly EngineMiddleware[];
    readonly #given: readonly [server: string | URL | readonly string[] | Server<any> | Front, options: ExternalOptions];

    constructor(server: string | URL | readonly string[] | Server<any> | Front, options: ExternalOptions = {}) {
        const { name, prefix, isolation, maxConnections, opening, revision, timeout, maxTimeout, auth, rules = [] } = options;
        const settings = (this.#settings = settingsJson({ prefix, isolation, maxConnections, opening, revision, timeout, maxTimeout }));
        guarded(() => native.checkExternal(settings));
        if (!rules.every(isEngines)) throw new McpError('ERR_MCP_MISUSE', 'the rules of an External are middleware of the engine; give middleware of the program to the Front');
        this.#rules = [...rules];
        this.#given = [server, options];
        this.prefix = prefix;
        if (server instanceof Entries || server instanceof Front) {
            this.#within = server as Server<any> | Front;
            this.name = name ?? (server instanceof Front ? server.name : server.title);
            return;
        }
        const words = typeof server === 'string' || server instanceof URL ? guarded(() => native.commandOf(String(server))) : server;
        this.#native = guarded(() => {
            if (!words) return native.externalAt(name, String(server), connectSettings(options), auth instanceof OAuth ? auth.native : undefined, settings);
            if (words.length === 0) throw new McpError('ERR_MCP_MISUSE', 'the command is empty');
            return native.externalCommand(name, childSettings(words[0]!, words.slice(1), options), settings);
        });
        this.name = this.#native.title();
    }

    /** @internal The same server with a prefix. */
    under(prefix: string): External {
        const [server, options] = this.#given;
        if (this.prefix !== undefined) throw new McpError('ERR_MCP_MISUSE', `mount: the external server "${this.name}" has a prefix of its own, ${this.prefix}; leave it out`);
        return new External(server, { ...options, name: this.name, prefix });
    }

    /** @internal Whether clients of this server are led to the target. */
    leadsTo(target: Front | Server<any>): boolean {
        const within = this.#within;
        if (within === undefined || within === target) return within !== undefined;
        const front = within instanceof Front ? within : within.front;
        return front !== undefined && (front === target || front.leadsTo(target));
    }

    /** @internal The engine's part; `ends` gets what ends servers of this program. */
    async made(runner: HookRunner, ends: Ends, failures: Failures): Promise<NativeExternal> {
        const external = await this.reached(runner, ends);
        if (this.#rules.length === 0) return external;
        return external.ruled(this.#rules.map(rule => rule.made(failures, runner)));
    }

    /** @internal The engine's part without rules. */
    protected async reached(runner: HookRunner, ends: Ends): Promise<NativeExternal> {
        const within = this.#within;
        if (within === undefined) return this.#native!;
        if (within instanceof Front || within.front) {
            const front = await (within instanceof Front ? within : within.front!).made(runner, ends);
            return guarded(() => native.externalFront(this.name, front, this.#settings));
        }
        return begunWithin(within, this.name, this.#settings, false, ends);
    }
}

/** @internal What ends the servers of this program at the ends of a chain; resolves to how many calls they left unanswered. */
export type Ends = (() => Promise<number>)[];

/** @internal A server of this program as the end of a chain, which runs until `ends` are called. */
export async function begunWithin(server: Server<any>, name: string, settings: string, isOwn: boolean, ends: Ends): Promise<NativeExternal> {
    let external!: NativeExternal;
    let isEnding = false;
    const begun = await server.within((entries, wake) => {
        const made = guarded(() => native.externalServer(name, entries, settings, isOwn, wake));
        external = made.external()!;
        return made.link()!;
    });
    // A server that the program closes by itself ends before what it is the end of, which does not await it.
    const failed = (error: unknown) => {
        if (isEnding) throw error;
        server.failures.report(error, 'lifespan.stop');
        return 0;
    };
    const left = begun.ended.then(({ unanswered }) => unanswered, failed);
    ends.push(() => {
        isEnding = true;
        begun.stop();
        return left;
    });
    return external;
}

/** Whether middleware is the engine's. */
function isEngines(one: object): one is EngineMiddleware {
    return 'made' in one;
}

/** Options of a front. */
export interface FrontOptions {
    /** What sees the messages, from the clients to the server: middleware of the program and of the engine. */
    middleware?: readonly (ChainMiddleware | Prefix | Rule)[];
    /**
     * How long a hook of middleware may take, in ms, without the time in which it waits for the answer that `next` gives; 60 s by
     * default, `Infinity` for no limit. Then the sender of the request gets an error that names the middleware, `next.signal` aborts, and
     * what the hook returns later is ignored. A notification is dropped.
     */
    hookTimeout?: number;
    /** What clients may do, and how they are verified. */
    policy?: Policy;
    /** How many fronts a request may pass before it is refused as one that goes in a circle; 16 by default. */
    maxHops?: number;
    /**
     * Makes spans and metrics of all requests and sessions, of clients and to servers, with the program's OpenTelemetry, as for a `Server`.
     * Each request then waits until JavaScript has begun its spans, so that the server is told of the right one.
     */
    telemetry?: boolean;
    /** How long each of several servers has to add its part to a list, to what the front offers and to a stream of changes, in ms; 5 s by default. */
    patience?: number;
    /** Called with each unexpected exception of middleware, and what failed. Without it and a logger, they are printed to stderr. */
    onError?: (error: unknown, what: string) => unknown;
    /** Gets the exceptions, too. */
    logger?: Logger;
}

/**
 * A server towards its clients that passes their requests on to an `External`, or to several that are joined, through middleware. Each side speaks its own
 * revision. Messages that no middleware of the program sees are passed on by the engine as the bytes that came, without
 * JavaScript.
 */
export class Front {
    #externals: readonly External[];
    readonly #middleware: readonly (ChainMiddleware | EngineMiddleware)[];
    readonly #options: FrontOptions;
    /** @internal */
    readonly failures: Failures;
    readonly #links = new Set<Link>();
    #own: Endpoint | undefined;

    constructor(external: External, options: FrontOptions = {}) {
        checkLimit('hookTimeout', options.hookTimeout ?? Infinity);
        if (options.patience !== undefined && !(options.patience >= 0 && options.patience < 2 ** 32))
            throw new McpError('ERR_MCP_MISUSE', `patience: a time in ms is a number from 0, not ${options.patience}`);
        this.#externals = [external];
        this.#options = options;
        this.#middleware = [...(options.middleware ?? [])];
        this.failures = new Failures(options.onError, options.logger);
        if (options.telemetry) telemetry();
        checkVerifier(options.policy ?? {});
    }

    /** The name of the first server. */
    get name(): string {
        return this.#externals[0]!.name;
    }

    /**
     * Adds another server, before the front is served. Returns the front.
     *
     * Clients see the tools, prompts and resources of all: lists are merged, and each call goes to the server whose `prefix` its
     * name has, or else to the one without a prefix. A server that fails, or that is late, is left out of lists and named in their
     * `_meta`, as `dev.mcpbolt/partial`. An error is thrown if two servers have the same name, no prefix, or prefixes that could make
     * the same names: one is the other, in either case, or is the other and `_` and more.
     */
    join(external: External): this {
        if (external.leadsTo(this))
            throw new McpError('ERR_MCP_MISUSE', `the server "${external.name}" leads to this front itself; join the servers behind it`);
        const joined = [...this.#externals, external];
        guarded(() => native.checkJoined(joined.map(({ name, prefix }) => ({ name, ...(prefix !== undefined && { prefix }) }))));
        this.#externals = joined;
        return this;
    }

    /** @internal */
    leadsTo(target: Front | Server<any>): boolean {
        return this.#externals.some(external => external.leadsTo(target));
    }

    /**
     * Serves on stdin and stdout by default, or at an address, as `Server.run` does: until `close` is called, a signal arrives
     * or, on stdio, the client disconnects.
     */
    run(address: string | URL = 'stdio:', options: RunAtOptions = {}): Promise<RunReport> {
        return runAt(this.name, address, options, this.#links, (own, isWorker) => this.serveAt(address, own, true, isWorker));
    }

    /** Starts to serve at an address, as `Server.serve` does. */
    serve(address: string | URL, options: ServeOptions = {}): Promise<Serving> {
        return this.serveAt(address, options, false);
    }

    /**
     * Creates an endpoint to mount in an existing HTTP server, as `Server.endpoint` does. The endpoint has its own sessions.
     * Servers of this program at the end of the chain run as long as it is open.
     */
    endpoint(options: EndpointOptions = {}): Endpoint {
        return new Endpoint(() => this.mounted(options), this.failures);
    }

    /** Creates a request handler for `node:http`, express and similar frameworks, on an endpoint of its own. */
    handler(options?: EndpointOptions): Handler {
        return this.endpoint(options).handler;
    }

    /** Serves a web-standard `Request`, on an endpoint with default options; `endpoint` takes options. */
    fetch(request: Request): Promise<Response> {
        this.#own ??= this.endpoint();
        return this.#own.fetch(request);
    }

    /** Closes every address and endpoint gracefully: calls in flight may still be answered. */
    close(): void {
        for (const link of this.#links) link.native.stop();
    }

    /** @internal Serves; with `ownsProcess`, the process exists only to serve. */
    async serveAt(address: string | URL, options: ServeOptions, ownsProcess: boolean, isWorker = false): Promise<Serving> {
        const { signals = areUnheard(), signal, trace, ...rest } = options;
        const endpoint = endpointOf(rest);
        const unhear = signals ? holdSignals() : () => {};
        let tell!: (opened: string) => void;
        const opened = new Promise<string>(resolve => (tell = resolve));
        const connect = (front: NativeFront, wake: () => void): NativeLink =>
            native.serveFront(front, String(address), endpoint, { signals, ownsProcess, isWorker, isTraced: trace !== undefined }, wake);
        const begun = await this.#begin(connect, { opened: text => tell(JSON.parse(text)) }, trace).catch(error => {
            unhear();
            throw error;
        });
        const { link } = begun;
        const forget = stopOn(signal, () => link.native.stop());
        const ended = begun.ended.finally(() => (unhear(), forget()));
        return new Serving(await Promise.race([opened, ended.then(() => '')]), ended, link, this.failures);
    }

    /** @internal What an endpoint needs. */
    async mounted({ trace, ...options }: EndpointOptions): Promise<{ mounted: Mounted; stop: () => void }> {
        let mount!: NativeMount;
        const connect = (front: NativeFront, wake: () => void) => {
            mount = native.mountFront(front, endpointOf(options), trace !== undefined, wake);
            return mount.link()!;
        };
        const { link, ended } = await this.#begin(connect, mountReceiver(() => mounted), trace);
        link.keepAlive(false);
        ended.catch(error => this.failures.report(error, 'the endpoint'));
        const mounted = new Mounted(mount, isBusy => link.keepAlive(isBusy));
        return { mounted, stop: () => link.native.stop() };
    }

    /** Serves by `connect`. When the link has ended, so do the servers and the middleware of this program. */
    async #begin(connect: (front: NativeFront, wake: () => void) => NativeLink, receiver: Receiver, trace?: Trace): Promise<{ link: Link; ended: Promise<RunReport> }> {
        const { front, end } = await this.assembled();
        let over!: (report: string) => void;
        const report = new Promise<string>(resolve => (over = resolve));
        const traced: Receiver = trace ? { traced: (text, _, direction) => trace(DIRECTIONS[direction]!, text) } : {};
        let link: Link;
        try {
            link = new Link({ ...receiver, ...traced, ended: over }, wake => guarded(() => connect(front, wake)), `front of ${this.name}`);
        } catch (error) {
            return giveUp(end, error);
        }
        this.#links.add(link);
        const ended = report.then(async text => {
            this.#links.delete(link);
            const { error, ...said } = JSON.parse(text || '{}') as RunReport & { error?: string };
            if (error !== undefined) return giveUp(end, new McpError('ERR_MCP_IO', error));
            return { ...said, unanswered: await end() };
        });
        return { link, ended };
    }

    /** @internal The engine's front, with what ends the servers and the middleware of this program; `ends` are those of the servers. */
    async assembled(): Promise<{ front: NativeFront; end: () => Promise<number>; ends: Ends }> {
        const [runner, ends]: [HookRunner, Ends] = [new HookRunner(), []];
        const end = () => {
            runner.close();
            return endAll(ends);
        };
        try {
            return { front: await this.made(runner, ends), end, ends };
        } catch (error) {
            return giveUp(end, error);
        }
    }

    /** @internal The servers that are joined. */
    protected async ends(runner: HookRunner, ends: Ends): Promise<NativeExternal[]> {
        const externals: NativeExternal[] = [];
        for (const external of this.#externals) externals.push(await external.made(runner, ends, this.failures));
        return externals;
    }

    /** @internal */
    async made(runner: HookRunner, ends: Ends): Promise<NativeFront> {
        const externals = await this.ends(runner, ends);
        const { policy, maxHops = 16, patience, hookTimeout = 60_000, telemetry: isObserved } = this.#options;
        const settings = settingsJson({ name: this.name, version: '0', policy });
        const told = policy && auditing(policy, this.failures);
        const verifying = policy && Verifying.of(policy, this.failures);
        const verify = verifying && weakly(verifying.ask);
        const parts = this.#middleware.map(one => {
            if (isEngines(one)) return one.made(this.failures, runner);
            return { requests: (one.request ?? one.response) !== undefined, notifications: one.notification !== undefined };
        });
        const limits = { maxHops, ...(patience !== undefined && { patience }) };
        const observer = isObserved ? telemetry().native : undefined;
        const front: NativeFront = guarded(() => new native.Front(externals, parts, runner.native, settings, told, verify, limits, observer));
        const running = this.#middleware.flatMap((middleware, at) =>
            isEngines(middleware) ? [] : [{ middleware, name: nameOf(middleware, at), hookTimeout, failures: this.failures }]
        );
        if (verifying) {
            verifying.native = front;
            runner.keep(verifying.ask);
        }
        runner.add(front.middleware(), running);
        return front;
    }
}

/** @internal Ends servers once, those behind others last; all, then rejects with the first failure. */
export async function endAll(ends: Ends): Promise<number> {
    let unanswered = 0;
    const failed: unknown[] = [];
    for (const end of ends.splice(0).reverse())
        try {
            unanswered += await end();
        } catch (error) {
            failed.push(error);
        }
    if (failed.length > 0) throw failed[0];
    return unanswered;
}

/** @internal Ends what has begun of a front that cannot be served, then rejects with the reason. */
export function giveUp(end: () => Promise<unknown>, why: unknown): Promise<never> {
    const reject = () => Promise.reject(why);
    return end().then(reject, reject);
}

/** What middleware is called in errors: by its class, or by where it stands. */
function nameOf(middleware: ChainMiddleware, at: number): string {
    const { name } = middleware.constructor ?? {};
    return !name || name === 'Object' ? `at index ${at}` : name;
}
