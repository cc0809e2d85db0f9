import { connectSettings, type ConnectOptionsOf } from './address';
import type { Policy, RunReport } from './definitions';
import { Desk, type ChainMiddleware } from './desk';
import { endpointOf, type ServeOptions } from './endpoint';
import { guarded, McpError } from './errors';
import { Failures } from './failures';
import { Link } from './link';
import type { Logger } from './logger';
import { OAuth } from './login';
import { native, type NativeExternal, type NativeFront, type NativeLink } from './native';
import { settingsJson } from './numbers';
import { childSettings, type SpawnOptionsOf } from './options';
import type { Revision } from './protocol';
import { Server } from './server';
import { areUnheard, holdSignals, Serving, stopOn } from './serving';

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

    constructor(server: string | URL | readonly string[] | Server<any> | Front, options: ExternalOptions = {}) {
        const { name, prefix, opening, revision, timeout, maxTimeout, auth } = options;
        const settings = (this.#settings = settingsJson({ prefix, opening, revision, timeout, maxTimeout }));
        if (prefix !== undefined) guarded(() => native.checkPrefix(prefix));
        this.prefix = prefix;
        if (server instanceof Server || server instanceof Front) {
            this.#within = server;
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

    /** @internal Whether clients of this server are led through that front. */
    leadsTo(front: Front): boolean {
        return this.#within instanceof Front && (this.#within === front || this.#within.leadsTo(front));
    }

    /** @internal The engine's part; `ends` gets what ends servers of this program. */
    async made(desk: Desk, ends: (() => Promise<unknown>)[]): Promise<NativeExternal> {
        const within = this.#within;
        if (within === undefined) return this.#native!;
        if (within instanceof Front) {
            const front = await within.made(desk, ends);
            return guarded(() => native.externalFront(this.name, front, this.#settings));
        }
        let external!: NativeExternal;
        const { stop, ended } = await within.within((entries, wake) => {
            const made = guarded(() => native.externalServer(this.name, entries, this.#settings, wake));
            external = made.external()!;
            return made.link()!;
        });
        ends.push(() => (stop(), ended));
        return external;
    }
}

/**
 * Middleware of the engine that gives the names and URIs of a server a prefix: `find` becomes `library_find`, and `book://list`
 * becomes `book://library/list`.
 */
export class Prefix {
    readonly #prefix: string;

    /** A prefix of ASCII letters, digits, `-` and `_`. */
    constructor(prefix: string) {
        guarded(() => native.checkPrefix(prefix));
        this.#prefix = prefix;
    }

    /** @internal */
    get prefix(): string {
        return this.#prefix;
    }
}

/** Options of a front. */
export interface FrontOptions {
    /** What sees the messages, from the clients to the server. */
    middleware?: readonly (ChainMiddleware | Prefix)[];
    /** What clients may do, and how they are verified: without a `verifier`. */
    policy?: Omit<Policy, 'verifier'>;
    /** How many fronts a request may pass before it is refused as one that goes in a circle; 16 by default. */
    maxHops?: number;
    /** How long each of several servers has to add its part to a list, and to what the front offers, in ms; 5 s by default. */
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
    readonly #middleware: readonly (ChainMiddleware | Prefix)[];
    readonly #options: FrontOptions;
    readonly #failures: Failures;
    readonly #links = new Set<Link>();

    constructor(external: External, options: FrontOptions = {}) {
        if ((options.policy as Policy | undefined)?.verifier)
            throw new McpError('ERR_MCP_MISUSE', 'a front has no policy.verifier of the program; use jwt, keys or resource');
        if (options.patience !== undefined && !(options.patience >= 0 && options.patience < 2 ** 32))
            throw new McpError('ERR_MCP_MISUSE', `patience: a time in ms is a number from 0, not ${options.patience}`);
        this.#externals = [external];
        this.#options = options;
        this.#middleware = [...(options.middleware ?? [])];
        this.#failures = new Failures(options.onError, options.logger);
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
    leadsTo(front: Front): boolean {
        return this.#externals.some(external => external.leadsTo(front));
    }

    /**
     * Serves on stdin and stdout by default, or at an address, as `Server.run` does: until `close` is called, a signal arrives
     * or, on stdio, the client disconnects.
     */
    async run(address: string | URL = 'stdio:', options: ServeOptions = {}): Promise<RunReport> {
        return (await this.#serveAt(address, options, true)).ended;
    }

    /** Starts to serve at an address, as `Server.serve` does. */
    serve(address: string | URL, options: ServeOptions = {}): Promise<Serving> {
        return this.#serveAt(address, options, false);
    }

    /** Closes every address gracefully: calls in flight may still be answered. */
    close(): void {
        for (const link of this.#links) link.native.stop();
    }

    async #serveAt(address: string | URL, options: ServeOptions, ownsProcess: boolean): Promise<Serving> {
        const { signals = areUnheard(), signal, trace, ...rest } = options;
        const endpoint = endpointOf(rest);
        const { front, end } = await this.assembled();
        const unhear = signals ? holdSignals() : () => {};
        let link!: Link;
        let over!: (report: string) => void;
        const report = new Promise<string>(resolve => (over = resolve));
        const told = new Promise<{ opened?: string; report?: string }>((tell, fail) => {
            const connect = (wake: () => void): NativeLink =>
                guarded(() => native.serveFront(front, String(address), endpoint, signals, ownsProcess, wake));
            try {
                link = new Link({ opened: text => tell({ opened: JSON.parse(text) }), ended: text => (over(text), tell({ report: text })) }, connect, `front of ${this.name}`);
                this.#links.add(link);
            } catch (error) {
                fail(error);
            }
        });
        const forget = stopOn(signal, () => link?.native.stop());
        const ended = report
            .finally(() => (unhear(), forget(), this.#links.delete(link)))
            .then(async text => {
                await end();
                const { error, ...said } = JSON.parse(text || '{}') as RunReport & { error?: string };
                if (error !== undefined) throw new McpError('ERR_MCP_IO', error);
                return { ...said, unanswered: 0 };
            });
        try {
            const { opened } = await told;
            if (opened === undefined) await ended;
            return new Serving(opened ?? '', ended, link);
        } catch (error) {
            if (!link) (unhear(), forget(), await end());
            throw error;
        }
    }

    /** @internal The engine's front, with what ends the servers and the middleware of this program. */
    async assembled(): Promise<{ front: NativeFront; end: () => Promise<void> }> {
        const [desk, ends] = [new Desk(), [] as (() => Promise<unknown>)[]];
        const end = async () => {
            desk.close();
            for (const end of ends.reverse()) await end();
        };
        try {
            return { front: await this.made(desk, ends), end };
        } catch (error) {
            await end();
            throw error;
        }
    }

    /** @internal */
    async made(desk: Desk, ends: (() => Promise<unknown>)[]): Promise<NativeFront> {
        const externals: NativeExternal[] = [];
        for (const external of this.#externals) externals.push(await external.made(desk, ends));
        const { policy, maxHops = 16, patience } = this.#options;
        const audit = policy?.audit;
        const settings = settingsJson({ name: this.name, version: '0', policy });
        const seats = this.#middleware.map(one => ({
            ...(one instanceof Prefix && { prefix: one.prefix }),
            seesRequests: !(one instanceof Prefix) && (one.request ?? one.response) !== undefined,
            seesNotifications: !(one instanceof Prefix) && one.notification !== undefined
        }));
        const told = audit && ((event: string) => this.#failures.heed('policy.audit', () => audit(JSON.parse(event))));
        const front = guarded(() => new native.Front(externals, seats, desk.native, settings, told, maxHops, patience));
        const own = this.#middleware.filter((one): one is ChainMiddleware => !(one instanceof Prefix));
        desk.sit(front.seats(), own, this.#failures);
        return front;
    }
}
