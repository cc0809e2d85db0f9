import { Client, type ConnectOptions, type SpawnOptions } from './client';
import { guarded, McpError } from './errors';
import { OAuth } from './login';
import { native, type NativeLedger } from './native';
import { settingsJson } from './numbers';

/** Counters of a pool: how many there are now, and how many there were. */
export interface PoolCounts {
    /** Connections that nobody has. */
    idle: number;
    /** Connections that somebody has. */
    inUse: number;
    /** Connections that are being opened. */
    opening: number;
    /** Callers that wait. */
    waiting: number;
    /** Connections that were opened. */
    opened: number;
    /** Times that a connection was there already. */
    reused: number;
    /** Connections that could not be opened. */
    failed: number;
    /** Connections closed because nobody had used them for long, or another target needed their place. */
    closedIdle: number;
    /** Connections that broke, or were not fit for another caller. */
    dropped: number;
    /** Callers that waited in vain. */
    timedOut: number;
}

/** Bounds of a pool. Times are in ms. */
export interface PoolOptions {
    /** The most connections to one target; 10 by default. */
    maxConnections?: number;
    /** The most connections in all; 100 by default. Beyond it, the connection to another target that has been idle for longest is closed. */
    maxTotal?: number;
    /**
     * How many callers may have the same connection at a time: 1 by default, so that what a server asks or notifies belongs to
     * one caller. Raise it where servers only answer.
     */
    sharing?: number;
    /** How long a caller waits for a connection; 30 s by default. */
    waitTimeout?: number;
    /** The most callers that wait; 1,000 by default. Further ones are refused at once. */
    maxWaiting?: number;
    /** How long a connection may be idle before it is closed; 60 s by default. */
    idleTimeout?: number;
}

/** What a pool connects to: an address, or the words of a command line. */
export type PoolTarget = string | URL | readonly string[];

/** Options of a connection of a pool: those of `Client.connect` or, for a command, of `Client.spawn`. */
export type PoolClientOptions = ConnectOptions & SpawnOptions;

const COUNTS = ['idle', 'inUse', 'opening', 'waiting', 'opened', 'reused', 'failed', 'closedIdle', 'dropped', 'timedOut'] as const;

interface Place {
    what: string;
    id: number;
}

/**
 * Clients of servers, used again by later callers. A caller gets a connection that nobody has, else a new one, else it waits
 * for its turn. The connection is its own until it is given back. Connections are used again for the same server with the same
 * options only: other credentials, headers or revisions make other connections. One that has broken leaves the pool, and so does
 * one that is given back with subscriptions or a log level.
 */
export class Pool implements AsyncDisposable {
    readonly #ledger: NativeLedger;
    readonly #clients = new Map<number, Client>();
    /** The callers' own objects of connections that they have. */
    readonly #leases = new Map<Client, number>();
    readonly #waiting = new Map<number, { resolve: (place: Place) => void; reject: (error: unknown) => void }>();
    readonly #ending = new Set<Promise<unknown>>();
    /** Numbers for options that are compared by identity. */
    readonly #objects = new WeakMap<object, number>();
    #lastObject = 0;
    #timer: { timer: NodeJS.Timeout; at: number } | undefined;
    #isClosed = false;

    constructor(options: PoolOptions = {}) {
        this.#ledger = guarded(() => new native.Ledger(settingsJson(options)));
    }

    /** The counters at this moment. */
    get counts(): PoolCounts {
        const counts = this.#ledger.counts();
        return Object.fromEntries(COUNTS.map((name, at) => [name, counts[at]])) as unknown as PoolCounts;
    }

    /**
     * Calls a function with a connected client, which is given back afterwards.
     *
     * Rejects with `ERR_MCP_TIMEOUT` if all connections were in use for `waitTimeout`, with `ERR_MCP_OVERLOADED` if too many
     * callers wait already, and with `ERR_MCP_CLOSED` if the pool is closed.
     */
    use<Result>(target: PoolTarget, act: (client: Client) => Result | Promise<Result>): Promise<Result>;
    use<Result>(target: PoolTarget, options: PoolClientOptions, act: (client: Client) => Result | Promise<Result>): Promise<Result>;
    async use<Result>(
        target: PoolTarget,
        options: PoolClientOptions | ((client: Client) => Result | Promise<Result>),
        act?: (client: Client) => Result | Promise<Result>
    ): Promise<Result> {
        const [given, run] = typeof options === 'function' ? [{}, options] : [options, act!];
        const client = await this.acquire(target, given);
        try {
            return await run(client);
        } finally {
            this.release(client);
        }
    }

    /** Gets a connected client, to be given back by `release`. Rejects as `use` does. */
    async acquire(target: PoolTarget, options: PoolClientOptions = {}): Promise<Client> {
        const key = this.#key(target, options);
        for (;;) {
            const { what, id } = await this.#granted(key);
            if (what === 'open') return this.#open(id, target, options);
            const client = this.#clients.get(id);
            // It broke while nobody had it, or was discarded while the grant was on its way.
            if (client === undefined || client.closed) this.#lose(id);
            // Somebody else who has it subscribed, or set a log level.
            else if (!isFit(client)) this.#ledger.giveBack(id, false);
            else return this.#lent(id, client);
            this.#settle();
        }
    }

    /**
     * Gives a client back; a second time has no effect. With `discard`, closes the connection instead, as one whose state is
     * not known any more.
     */
    release(client: Client, { discard = false }: { discard?: boolean } = {}): void {
        const id = this.#leases.get(client);
        // It was given back or discarded, or the pool is closed.
        if (id === undefined) return;
        this.#leases.delete(client);
        if (discard || client.closed) this.#lose(id);
        else this.#ledger.giveBack(id, isFit(client));
        this.#settle();
    }

    /** Closes all connections, also those in use. Callers that wait, or come later, are refused. */
    async close(): Promise<void> {
        this.#isClosed = true;
        this.#ledger.closeAll();
        this.#settle();
        await Promise.all(this.#ending);
    }

    async [Symbol.asyncDispose](): Promise<void> {
        await this.close();
    }

    async #granted(key: string): Promise<Place> {
        if (this.#isClosed) throw closed();
        const { what, id } = this.#ledger.ask(key);
        if (what === 'refused') throw new McpError('ERR_MCP_OVERLOADED', 'too many callers wait for a connection of the pool');
        const granted = what === 'wait' ? new Promise<Place>((resolve, reject) => this.#waiting.set(id, { resolve, reject })) : { what, id };
        this.#settle();
        return granted;
    }

    async #open(id: number, target: PoolTarget, options: PoolClientOptions): Promise<Client> {
        let client: Client;
        try {
            const isCommand = typeof target !== 'string' && !(target instanceof URL);
            if (isCommand && target.length === 0) throw new McpError('ERR_MCP_MISUSE', 'the command is empty');
            client = await (isCommand ? Client.spawn(target[0]!, target.slice(1), options) : Client.connect(target, options));
        } catch (error) {
            this.#ledger.lost(id);
            this.#settle();
            throw error;
        }
        if (this.#isClosed) {
            await client.close();
            throw closed();
        }
        this.#clients.set(id, client);
        const lent = this.#lent(id, client);
        this.#ledger.opened(id);
        this.#settle();
        return lent;
    }

    /** An object of a caller's own for a connection, which tells its `release` from those of callers before and after. */
    #lent(id: number, client: Client): Client {
        const lent: Client = new Proxy(client, {
            get(target, name) {
                const value = Reflect.get(target, name, target);
                if (typeof value !== 'function' || name === 'constructor') return value;
                return (...given: unknown[]) => {
                    const result = value.apply(target, given);
                    return result === target ? lent : result;
                };
            }
        });
        this.#leases.set(lent, id);
        return lent;
    }

    #lose(id: number): void {
        this.#ledger.lost(id);
        this.#forget(id);
    }

    #forget(id: number): void {
        const client = this.#clients.get(id);
        if (client === undefined) return;
        this.#clients.delete(id);
        for (const [lent, of] of this.#leases) if (of === id) this.#leases.delete(lent);
        const ending = client.close().finally(() => this.#ending.delete(ending));
        this.#ending.add(ending);
    }

    /** Carries out what the ledger has decided. */
    #settle(): void {
        const { granted, expired, closing } = this.#ledger.changes();
        for (const { ticket, what, id } of granted) this.#take(ticket)?.resolve({ what, id });
        const late = () => new McpError('ERR_MCP_TIMEOUT', 'all connections of the pool were in use for as long as a caller waits');
        for (const ticket of expired) this.#take(ticket)?.reject(this.#isClosed ? closed() : late());
        for (const id of closing) this.#forget(id);
        this.#watch();
    }

    #take(ticket: number) {
        const waiting = this.#waiting.get(ticket);
        this.#waiting.delete(ticket);
        return waiting;
    }

    /** Sees to it that the time is looked at when the ledger has something to do. */
    #watch(): void {
        const due = this.#ledger.due();
        const at = due == null ? Infinity : performance.now() + due;
        // It looks anew then.
        if (this.#timer && this.#timer.at <= at && due != null) return;
        clearTimeout(this.#timer?.timer);
        this.#timer = undefined;
        if (due == null) return;
        const look = () => {
            this.#timer = undefined;
            this.#ledger.advance();
            this.#settle();
        };
        const timer = setTimeout(look, Math.min(Math.ceil(due), 2 ** 31 - 1));
        // Idle connections keep the process alive no longer than they would by themselves.
        if (this.#waiting.size === 0) timer.unref();
        this.#timer = { timer, at };
    }

    /** What tells connections apart: server, credentials, revision, and every other option. */
    #key(target: PoolTarget, options: PoolClientOptions): string {
        const told = (name: string, value: unknown) =>
            typeof value === 'function' || value instanceof OAuth ? [name, this.#numbered(value)] : value;
        const sorted = Object.entries(options).filter(([, value]) => value !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
        return JSON.stringify([target instanceof URL ? String(target) : target, sorted], told);
    }

    #numbered(object: object): number {
        const known = this.#objects.get(object) ?? ++this.#lastObject;
        this.#objects.set(object, known);
        return known;
    }
}

/** Whether nothing of a caller is left at the server: neither subscriptions nor a log level. */
function isFit(client: Client): boolean {
    return !client.requests.hasLevel && !client.link.native.hasSubscriptions();
}

function closed(): McpError {
    return new McpError('ERR_MCP_CLOSED', 'the pool is closed');
}
