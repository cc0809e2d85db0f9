import { carryOut, print } from './carry';
import { clientOf, Context, type Introduction } from './context';
import type { ClientInfo, RunOptions, RunReport, ServerOptions } from './definitions';
import { endpointOf, type EndpointOptions, type ServeOptions } from './endpoint';
import { guarded, McpError, ProtocolError, revive, type Failure } from './errors';
import type { Handler } from './handler';
import { Link, type Receiver } from './link';
import { Endpoint } from './mount';
import { Mounted } from './mounted';
import { native, type NativeLink, type NativeMount, type NativeOffer } from './native';
import { Offer } from './offer';
import type { Trace } from './protocol';
import { refuse } from './results';
import { areUnheard, holdSignals, Serving, stopOn } from './serving';

const STDIO = 'stdio:';

interface Begun {
    link: Link;
    /** Where it listens, once it does. */
    opened: Promise<string>;
    ended: Promise<RunReport>;
    stop: () => void;
}

/** Told of what becomes of what was begun. */
interface Told {
    opened?: (address: string) => void;
    ended: (report: RunReport) => void;
}

/** @internal What is told of clients, and asked when they are gone. */
export interface Attending
    extends Pick<Receiver, 'call' | 'request' | 'invoke' | 'cancelled' | 'initialized' | 'rootsChanged' | 'left' | 'notification'> {
    /** Nobody is there any more. */
    end?(): void;
    /** How many calls have not ended. */
    underWay(): number;
}

/** A server: what it offers, and the handlers of it. */
export class Server<State = undefined> extends Offer<State> {
    readonly #options: ServerOptions<State>;
    readonly #links = new Set<Link>();
    #own: Endpoint | undefined;

    constructor(name: string, version: string, options: ServerOptions<State> = {}) {
        super(name, version, options);
        this.#options = options;
    }

    /**
     * Serves until `close` is called, a signal comes or, on stdin and stdout, the client goes away: there, by default,
     * or on an address, as `http://127.0.0.1:8000/mcp`; see `serve`. While it serves stdout, what else the process
     * prints goes to stderr.
     */
    async run(options?: RunOptions): Promise<RunReport>;
    async run(address: string | URL, options?: ServeOptions): Promise<RunReport>;
    async run(address: string | URL | RunOptions = {}, options: ServeOptions & RunOptions = {}): Promise<RunReport> {
        const isAddress = typeof address === 'string' || address instanceof URL;
        const report = await (isAddress && String(address) !== STDIO
            ? this.serve(address, options).then(serving => serving.ended)
            : this.#runStdio(isAddress ? options : address));
        // A handler that never answers must not keep a process that nobody talks to.
        if (report.unanswered > 0) setTimeout(() => process.exit(), 20).unref();
        return report;
    }

    /**
     * Begins to serve on an address: `http://host:port/path`, where WebSocket is spoken, too; `unix:/path`;
     * `tcp:host:port`. Resolves once it listens. All of it happens on threads of the engine's.
     */
    async serve(address: string | URL, options: ServeOptions = {}): Promise<Serving> {
        const endpoint = endpointOf(options);
        const { opened, ended, link } = await this.#begin(options, (wake, signals, trace) =>
            native.serveAddress(this.offer, String(address), endpoint, signals, trace, wake)
        );
        return new Serving(await Promise.race([opened, ended.then(() => '')]), ended, link);
    }

    /**
     * An endpoint within somebody else's HTTP server, `node:http`'s or any that hands on requests of the web's
     * standards. It has its own sessions.
     */
    endpoint(options: EndpointOptions = {}): Endpoint {
        const { trace } = options;
        const make = async () => {
            let mount!: NativeMount;
            const connect = (wake: () => void, _: boolean, isTraced: boolean) => {
                mount = native.mount(this.offer, endpointOf(options), isTraced, wake);
                return mount.link()!;
            };
            const receiver: Receiver = {
                head: (number, status, text) => mounted.head(number, status, text),
                piece: (number, text, isLast) => mounted.piece(number, text, isLast)
            };
            const { link, stop } = await this.#begin({ signals: false, ...(trace && { trace }) }, connect, receiver);
            link.keepAlive(false);
            const mounted = new Mounted(mount, isBusy => link.keepAlive(isBusy));
            return { mounted, stop };
        };
        return new Endpoint(make, this.#options.onError ?? print);
    }

    /** Serves requests of `node:http`, of express and the like: an endpoint of its own. */
    handler(options?: EndpointOptions): Handler {
        return this.endpoint(options).handler;
    }

    /** Serves a request of the web's standards, on an endpoint without options; `endpoint` takes some. */
    fetch(request: Request): Promise<Response> {
        this.#own ??= this.endpoint();
        return this.#own.fetch(request);
    }

    async #runStdio(options: RunOptions): Promise<RunReport> {
        const { graceMs = 5000 } = options;
        const begun = await this.#begin(options, (wake, signals, trace) =>
            native.serveStdio(this.offer, wake, graceMs, signals, trace)
        );
        return begun.ended;
    }

    /** From before the first call until after the last. */
    async #begin(
        { signals = areUnheard(), signal, trace }: Pick<ServeOptions, 'signal' | 'signals' | 'trace'>,
        connect: (wake: () => void, signals: boolean, trace: boolean) => NativeLink,
        more: Receiver = {}
    ): Promise<Begun> {
        const state = await this.#start();
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
            return this.#giveUp(state, error);
        }
        const forget = stopOn(signal, stop);
        const ended = report
            .finally(() => (unhear(), forget()))
            .then(async ({ error, ...report }) => {
                await this.#end(state);
                if (error !== undefined) throw new McpError('ERR_MCP_IO', error);
                return report;
            });
        return { link, opened, ended, stop };
    }

    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void {
        for (const link of this.#links) link.native.stop();
    }

    /** @internal A client of this server in the same process. */
    async connect(client: Link, join: (offer: NativeOffer, wake: () => void) => [NativeLink, NativeLink]): Promise<void> {
        const state = await this.#start();
        const link = this.#serve(state, { ended: () => this.#end(state) });
        try {
            const [own, theirs] = join(this.offer, link.wake);
            link.attach(own);
            client.attach(theirs);
        } catch (error) {
            link.abandon();
            this.#links.delete(link);
            return this.#giveUp(state, error);
        }
    }

    async #start(): Promise<State> {
        return (await this.#options.lifespan?.start()) as State;
    }

    async #end(state: State): Promise<void> {
        await this.#options.lifespan?.stop?.(state);
    }

    /** What has started for nothing ends; why is thrown. */
    #giveUp(state: State, why: unknown): Promise<never> {
        return this.#end(state).then(
            () => Promise.reject(why),
            () => Promise.reject(why)
        );
    }

    #left(text: string): void {
        const [reason, client] = JSON.parse(text) as [Failure, Introduction | null];
        this.#options.onClosed?.(revive(reason), known(client));
    }

    /** @internal What is done for its clients. */
    protected attend(link: () => Link, state: State): Attending {
        const calls: (Context<State> | undefined)[] = [];
        return {
            call: (number, target, text, wantsProgress) => {
                const context = new Context(link(), number, wantsProgress, state, text);
                calls[number] = context;
                const entry = this.entry(target);
                if (entry) carryOut(entry, text, context, this.#options.onError);
                else refuse(context, new ProtocolError('invalid params', 'it has been removed'), false);
            },
            cancelled: (number, reason) => calls[number]?.cancel(reason),
            initialized: text => this.#options.onInitialized?.(clientOf(JSON.parse(text))),
            rootsChanged: text => this.#options.onRootsChanged?.(known(JSON.parse(text))),
            left: text => this.#left(text),
            underWay: () => calls.filter(context => context?.isUnderWay).length
        };
    }

    #serve(
        state: State,
        { opened, ended }: Told,
        connect?: (wake: () => void) => NativeLink,
        trace?: Trace,
        more?: Receiver
    ): Link {
        const { end, underWay, ...attending } = this.attend(() => link, state);
        const receiver: Receiver = {
            ...more,
            ...attending,
            traced: (isOut, text) => trace!(isOut ? 'out' : 'in', text),
            opened: address => opened?.(JSON.parse(address)),
            ended: report => {
                this.#links.delete(link);
                const unanswered = underWay();
                end?.();
                ended({ unanswered, ...JSON.parse(report || '{}') });
            }
        };
        const link: Link = new Link(receiver, connect);
        link.integers = this.#options.integers ?? 'number';
        this.#links.add(link);
        return link;
    }
}

/** What a client said of itself when it connected, if it did. */
function known(said: Introduction | null): ClientInfo | undefined {
    return said === null ? undefined : clientOf(said);
}
