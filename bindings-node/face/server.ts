import { isMainThread } from 'node:worker_threads';
import { carryOut } from './carry';
import { Context, readClient } from './context';
import type { RunOptions, RunReport, ServerOptions } from './definitions';
import { guarded, McpError, ProtocolError } from './errors';
import { Link, type Receiver } from './link';
import { native, type NativeLink, type NativeOffer } from './native';
import { Offer } from './offer';
import type { Trace } from './protocol';
import { refuse } from './results';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** A server: what it offers, and the handlers of it. */
export class Server<State = undefined> extends Offer<State> {
    readonly #options: ServerOptions<State>;
    readonly #links = new Set<Link>();

    constructor(name: string, version: string, options: ServerOptions<State> = {}) {
        super(name, version, options);
        this.#options = options;
    }

    /**
     * Serves on stdin and stdout until the client goes away, a signal comes or `close` is called. Meanwhile what else
     * the process prints goes to stderr.
     */
    async run(options: RunOptions = {}): Promise<RunReport> {
        const state = await this.#start();
        const unheard = () => isMainThread && SIGNALS.every(signal => process.listenerCount(signal) === 0);
        const signals = options.signals ?? unheard();
        // The engine, which also hears a signal while the loop is busy, passes it on to the handler it found: that must
        // be this one and not Node's own, which ends the process.
        const stop = () => this.close();
        if (signals) for (const signal of SIGNALS) process.on(signal, stop);
        const report = await new Promise<string>((resolve, reject) => {
            const { graceMs = 5000, trace } = options;
            const connect = (wake: () => void) =>
                guarded(() => native.serveStdio(this.offer, wake, graceMs, signals, trace !== undefined));
            try {
                this.#serve(state, resolve, connect, trace);
            } catch (error) {
                reject(error);
            }
        })
            .then(JSON.parse)
            .finally(() => SIGNALS.forEach(signal => process.off(signal, stop)));
        await this.#options.lifespan?.stop?.(state);
        if (report.error !== undefined) throw new McpError('ERR_MCP_IO', report.error);
        // A handler that never answers must not keep a process that nobody talks to.
        if (report.unanswered > 0) setTimeout(() => process.exit(), 20).unref();
        return report;
    }

    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void {
        for (const link of this.#links) link.native.stop();
    }

    /** @internal A client of this server in the same process. */
    async connect(client: Link, join: (offer: NativeOffer, wake: () => void) => [NativeLink, NativeLink]): Promise<void> {
        const state = await this.#start();
        const link = this.#serve(state, () => this.#options.lifespan?.stop?.(state));
        try {
            const [own, theirs] = join(this.offer, link.wake);
            link.attach(own);
            client.attach(theirs);
        } catch (error) {
            link.abandon();
            throw error;
        }
    }

    async #start(): Promise<State> {
        return (await this.#options.lifespan?.start()) as State;
    }

    #serve(state: State, ended: (report: string) => void, connect?: (wake: () => void) => NativeLink, trace?: Trace): Link {
        const calls: (Context<State> | undefined)[] = [];
        let wasClosed = false;
        const receiver: Receiver = {
            call: (number, target, text, wantsProgress) => {
                const context = new Context(link, number, wantsProgress, state, text);
                calls[number] = context;
                const entry = this.entry(target);
                if (entry) carryOut(entry, text, context, this.#options.onError);
                else refuse(context, new ProtocolError('invalid params', 'it has been removed'), false);
            },
            cancelled: (number, reason) => calls[number]?.cancel(reason),
            initialized: text => this.#options.onInitialized?.(readClient(text)),
            rootsChanged: () => this.#options.onRootsChanged?.(),
            closed: reason => {
                if (!wasClosed) this.#options.onClosed?.(reason);
                wasClosed = true;
            },
            traced: (isOut, text) => trace!(isOut ? 'out' : 'in', text),
            ended: report => {
                this.#links.delete(link);
                ended(report);
            }
        };
        const link: Link = new Link(receiver, connect);
        this.#links.add(link);
        return link;
    }
}
