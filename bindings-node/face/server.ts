import { carryOut } from './carry';
import { External, giveUp } from './chain';
import { clientOf, Context, type Introduction } from './context';
import type { RunOptions, RunReport, ServerOptions } from './definitions';
import { endpointOf, type EndpointOptions, type ServeOptions } from './endpoint';
import { guarded, McpError, ProtocolError, revive, type Failure } from './errors';
import type { Handler } from './handler';
import { Link, type Receiver } from './link';
import { Endpoint } from './mount';
import { Mounted, mountReceiver } from './mounted';
import { native, type NativeLink, type NativeMount, type NativeEntries } from './native';
import { Entries } from './entries';
import { Kind, WORDS, type Entry } from './entry';
import { Prefix } from './prefix';
import { ServerFront } from './serverfront';
import { States } from './states';
import { DIRECTIONS, type ClientInfo, type Trace } from './protocol';
import { refuse } from './results';
import { areUnheard, GRACE, holdSignals, Serving, stopOn } from './serving';
import { telemetry, type Telemetry } from './telemetry';
import { runAt, type RunAtOptions } from './workers';

const STDIO = 'stdio:';

/** @internal A link that serves. */
export interface Begun {
    link: Link;
    /** Resolves to the address once the server listens. */
    opened: Promise<string>;
    ended: Promise<RunReport>;
    stop: () => void;
}

/** Callbacks for what happens to a link after it was started. */
interface Told {
    opened?: (address: string) => void;
    ended: (report: RunReport) => void;
}

/** @internal The callbacks for a server's clients, and the hooks for when they have gone. */
export interface Attending
    extends Pick<Receiver, 'call' | 'request' | 'invoke' | 'cancelled' | 'initialized' | 'rootsChanged' | 'left' | 'notification' | 'inputEnded'> {
    /** Called when the last client has gone. */
    end?(): void;
    /** How many calls have not ended. */
    underWay(): number;
}

/** An MCP server: its tools, resources and prompts, and ways to serve them. */
export class Server<State = undefined> extends Entries<State> {
    readonly #options: ServerOptions<State>;
    readonly #telemetry: Telemetry | undefined;
    readonly #links = new Set<Link>();
    /** Links whose lifespans begin. */
    #starts = 0;
    #own: Endpoint | undefined;
    #front: ServerFront | undefined;
    /** The prefixes of external servers. */
    readonly #prefixes: Prefix[] = [];

    constructor(name: string, version: string, options: ServerOptions<State> = {}) {
        super(name, version, options);
        this.#options = options;
        this.#telemetry = options.telemetry ? telemetry() : undefined;
    }

    /**
     * Offers all that another server offers, now and later. Tools and prompts get names with the prefix, `PREFIX_NAME`; resources and
     * templates get the prefix as the first segment of their URI, `memo://PREFIX/path`.
     *
     * Of a `Server`, a URI without `://` stays as it is, and an empty prefix changes nothing; skills are within a folder of that name.
     * Its middleware, hooks, completers, lifespan and `onError` count for what it offers; its settings do not, such as its
     * instructions and its limits, and neither do its methods of extensions. Throws `ERR_MCP_MISUSE` if the prefix is not a name, one
     * server is within the other, the other one has a policy, which would not count, or external servers, or it has a lifespan and
     * this server runs already; `ERR_MCP_DUPLICATE` if a name or URI is taken.
     *
     * An `External` is mounted before the server is served, and has no prefix of its own. Calls of what it offers go to it as they do from a
     * `Front`, with its `rules`; middleware and hooks of this server do not see them, its policy counts for them, by the names that
     * clients see. Lists that clients get are those of all; one that fails or is late is left out, and named in their `_meta`,
     * as `dev.mcpbolt/partial`. Throws `ERR_MCP_MISUSE` if the prefix could be confused, the server was served before, or it speaks the
     * action dialect or a profile; `ERR_MCP_DUPLICATE` if a name of the server begins with the prefix.
     */
    override mount(prefix: string, server: Entries<any> | External): this {
        if (server instanceof External) return this.#mountExternal(prefix, server);
        if (server instanceof Server && server.#front)
            throw new McpError('ERR_MCP_MISUSE', `mount: server ${server.title} has external servers, which would not be offered here; mount them in ${this.title}`);
        return super.mount(prefix, server);
    }

    #mountExternal(prefix: string, external: External): this {
        const misuse = (why: string) => new McpError('ERR_MCP_MISUSE', `mount: ${why}`);
        const { actions, profile = 'official' } = this.#options;
        if (actions) throw misuse(`server ${this.title} speaks the action dialect, which has no external servers`);
        if (profile !== 'official') throw misuse(`server ${this.title} speaks the profile ${profile}, which has no external servers`);
        if (this.isServing) throw misuse(`server ${this.title} runs already: mount external servers before`);
        if (this.isMounted) throw misuse(`server ${this.title} is mounted in another one, where external servers would not be offered; mount them there`);
        if (external.leadsTo(this)) throw misuse(`the external server "${external.name}" leads to ${this.title} itself; mount the servers behind it`);
        const under = external.under(prefix);
        const names = new Prefix(prefix);
        for (const entry of this.offered()) checkApart(this.title, names, entry);
        const front = this.#front ?? new ServerFront(this);
        front.join(under);
        this.#front = front;
        this.#prefixes.push(names);
        return this;
    }

    /** @internal The front that stands for this server, if external servers are mounted in it. */
    get front(): ServerFront | undefined {
        return this.#front;
    }

    /** @internal */
    protected override checkName(entry: Pick<Entry, 'kind' | 'key'>): void {
        for (const prefix of this.#prefixes) checkApart(this.title, prefix, entry);
    }

    /**
     * Serves on stdin and stdout by default, or at an address such as `http://127.0.0.1:8000/mcp` (see `serve`). Runs
     * until `close` is called, a signal arrives or, on stdio, the client disconnects. On stdio, everything else that
     * the process prints to stdout goes to stderr.
     *
     * This is the only function of this package that ends the process, so that a handler that never returns does not
     * keep it alive:
     * - 20 ms after the promise resolves, if calls are unanswered;
     * - with status 1, if a handler still blocks this thread when the grace period after a disconnect or a signal is
     *   over;
     * - at once, on a second signal.
     */
    async run(options?: RunOptions): Promise<RunReport>;
    async run(address: string | URL, options?: RunAtOptions): Promise<RunReport>;
    async run(address: string | URL | RunOptions = {}, options: RunAtOptions = {}): Promise<RunReport> {
        const isAddress = typeof address === 'string' || address instanceof URL;
        const report = await (isAddress ? this.#run(address, options) : this.#run(STDIO, address));
        // A handler that never answers must not keep the process alive after its client has gone.
        if (report.unanswered > 0) setTimeout(() => process.exit(), 20).unref();
        return report;
    }

    /**
     * Starts to serve at an address: `http://host:port/path`, which also accepts WebSocket; `unix:/path`; or
     * `tcp:host:port`. Resolves once the server listens. Sockets run on threads of the engine. The server runs until it
     * is closed, even if nothing refers to the returned object.
     */
    serve(address: string | URL, options: ServeOptions = {}): Promise<Serving> {
        return this.#serveAt(address, options, false);
    }

    #run(address: string | URL, options: RunAtOptions): Promise<RunReport> {
        if (this.#front) return this.#front.run(address, options);
        return runAt(this.title, address, options, this.#links, async (own, isWorker) => {
            if (String(address) !== STDIO) return this.#serveAt(address, own, true, isWorker);
            guarded(() => native.checkOptions(STDIO, endpointOf(own)));
            const { ended, link } = await this.serveStdio(own.grace, own);
            return { address: STDIO, ended, close: () => (link.native.stop(), ended) };
        });
    }

    async #serveAt(address: string | URL, options: ServeOptions, ownsProcess: boolean, isWorker = false): Promise<Serving> {
        if (this.#front) return this.#front.serveAt(address, options, ownsProcess);
        const endpoint = endpointOf(options);
        const { opened, ended, link } = await this.#begin(options, (wake, signals, isTraced) =>
            native.serveAddress(this.entries, String(address), endpoint, { signals, ownsProcess, isWorker, isTraced }, wake)
        );
        return new Serving(await Promise.race([opened, ended.then(() => '')]), ended, link, this.failures);
    }

    /**
     * Creates an endpoint to mount in an existing HTTP server: one of `node:http`, or any framework that passes
     * web-standard `Request`s. The endpoint has its own sessions.
     */
    endpoint(options: EndpointOptions = {}): Endpoint {
        const { trace } = options;
        const make = async () => {
            if (this.#front) return this.#front.mounted(options);
            let mount!: NativeMount;
            const connect = (wake: () => void, _: boolean, isTraced: boolean) => {
                mount = native.mount(this.entries, endpointOf(options), isTraced, wake);
                return mount.link()!;
            };
            const receiver = mountReceiver(() => mounted);
            const { link, stop, ended } = await this.#begin({ signals: false, ...(trace && { trace }) }, connect, receiver);
            link.keepAlive(false);
            ended.catch(error => this.failures.report(error, 'the endpoint'));
            const mounted = new Mounted(mount, isBusy => link.keepAlive(isBusy));
            return { mounted, stop };
        };
        return new Endpoint(make, this.failures);
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

    /**
     * @internal Serves stdin and stdout, without ending the process. With `null` as the grace period, calls in flight
     * may take as long as the process lives.
     */
    serveStdio(grace: number | null = GRACE, options: RunOptions = { signals: false }): Promise<Begun> {
        return this.#begin(options, (wake, signals, trace) => native.serveStdio(this.entries, wake, grace, signals, trace));
    }

    /** Runs one link from `lifespan.start` to `lifespan.stop`. */
    async #begin(
        { signals = areUnheard(), signal, trace }: Pick<ServeOptions, 'signal' | 'signals' | 'trace'>,
        connect: (wake: () => void, signals: boolean, trace: boolean) => NativeLink,
        more: Receiver = {}
    ): Promise<Begun> {
        const state = await this.#start();
        this.#starts--;
        let tell!: Told;
        const opened = new Promise<string>(opened => (tell = { opened, ended: () => {} }));
        const report = new Promise<RunReport & { error?: string }>(ended => (tell.ended = ended));
        let link!: Link;
        const stop = () => link.native.stop();
        const unhear = signals ? holdSignals() : () => {};
        const open = (wake: () => void) => guarded(() => connect(wake, signals, trace !== undefined));
        try {
            link = this.#serve(state, tell, open, trace, more);
        } catch (error) {
            unhear();
            return giveUp(() => state.end(), error);
        }
        const forget = stopOn(signal, stop);
        const ended = report
            .finally(() => (unhear(), forget()))
            .then(async ({ error, ...report }) => {
                if (error !== undefined) return giveUp(() => state.end(), new McpError('ERR_MCP_IO', error));
                await state.end();
                return report;
            });
        return { link, opened, ended, stop };
    }

    /** @internal Runs it within this process, as the end of a chain. */
    async within(connect: (entries: NativeEntries, wake: () => void) => NativeLink): Promise<Begun> {
        const begun = await this.#begin({ signals: false }, wake => connect(this.entries, wake));
        // What it is the end of keeps the process alive.
        begun.link.keepAlive(false);
        const stop = () => {
            begun.link.keepAlive(true);
            begun.stop();
        };
        return { ...begun, stop };
    }

    /** Closes every connection gracefully: calls in flight may still be answered. */
    close(): void {
        if (this.#front) return this.#front.close();
        for (const link of this.#links) link.native.stop();
    }

    /** @internal Connects a client in the same process. */
    async connect(client: Link, join: (entries: NativeEntries, wake: () => void) => [NativeLink, NativeLink]): Promise<void> {
        const state = await this.#start();
        this.#starts--;
        const ended = () => state.end().catch(error => this.failures.report(error, 'lifespan.stop'));
        const link = this.#serve(state, { ended });
        try {
            const [own, theirs] = join(this.entries, link.wake);
            link.attach(own);
            client.attach(theirs);
            client.twin = link;
        } catch (error) {
            link.abandon();
            this.#links.delete(link);
            return giveUp(() => state.end(), error);
        }
    }

    /** @internal */
    protected override get isServing(): boolean {
        return this.#links.size + this.#starts > 0;
    }

    /** Begins the lifespans; the caller counts down `#starts` as it serves. */
    async #start(): Promise<States> {
        this.#starts++;
        try {
            const inner = this.inner();
            for (const server of inner) server.checkHooks();
            return await States.start([this, ...inner]);
        } catch (error) {
            this.#starts--;
            throw error;
        }
    }

    #left(text: string): void {
        const [reason, client] = JSON.parse(text) as [Failure, Introduction | null];
        this.failures.heed('onClosed', () => this.#options.onClosed?.(revive(reason), known(client)));
    }

    /** @internal The callbacks that serve this server's clients. */
    protected attend(link: () => Link, states: States): Attending {
        const state = states.of(this) as State;
        const calls: (Context<State> | undefined)[] = [];
        return {
            call: (number, target, text, wantsProgress, isAside, span) => {
                const entry = this.entry(target);
                const owner = entry?.kind === Kind.Completion ? entry.ownerOf!(JSON.parse(text)) : entry?.owner;
                const own = owner === undefined ? state : (states.of(owner) as State);
                const context = new Context(link(), number, wantsProgress, own, isAside ? undefined : text);
                calls[number] = context;
                const enter = span && this.#telemetry!.begun(span);
                if (entry) return carryOut(entry, text, context, enter);
                context.settle();
                refuse(context, new ProtocolError('invalid params', 'it was removed from the server'), false);
            },
            cancelled: (reason, number) => calls[number]?.cancel(reason),
            initialized: text => this.failures.heed('onInitialized', () => this.#options.onInitialized?.(clientOf(JSON.parse(text)))),
            rootsChanged: text => this.failures.heed('onRootsChanged', () => this.#options.onRootsChanged?.(known(JSON.parse(text)))),
            left: text => this.#left(text),
            underWay: () => calls.filter(context => context?.isUnderWay).length
        };
    }

    #serve(
        state: States,
        { opened, ended }: Told,
        connect?: (wake: () => void) => NativeLink,
        trace?: Trace,
        more?: Receiver
    ): Link {
        const { end, underWay, ...attending } = this.attend(() => link, state);
        const receiver: Receiver = {
            ...more,
            ...attending,
            traced: (text, _, direction) => trace!(DIRECTIONS[direction]!, text),
            opened: address => opened?.(JSON.parse(address)),
            ended: report => {
                this.#links.delete(link);
                const unanswered = underWay();
                end?.();
                ended({ unanswered, ...JSON.parse(report || '{}') });
            }
        };
        const link: Link = new Link(receiver, connect, `server ${this.title}`);
        link.integers = this.#options.integers ?? 'number';
        this.#links.add(link);
        return link;
    }
}

/** Checks that a name of a server is not one of an external server under that prefix. */
function checkApart(server: string, prefix: Prefix, { kind, key }: Pick<Entry, 'kind' | 'key'>): void {
    const isUri = kind === Kind.Resource || kind === Kind.Template;
    if (kind > Kind.Prompt || (isUri && !key.includes('://')) || prefix.local(kind, key) === undefined) return;
    throw new McpError(
        'ERR_MCP_DUPLICATE',
        `server ${server} has the ${WORDS[kind]} ${key}, whose name is one of the external server under the prefix ${prefix.prefix}; rename it, or mount under another prefix`
    );
}

/** Converts a client's introduction, if the client introduced itself. */
function known(said: Introduction | null): ClientInfo | undefined {
    return said === null ? undefined : clientOf(said);
}
