import { McpError } from '../errors';
import { Outbound, type Link } from '../link';
import type { Introduction } from '../context';
import type { SdkCall } from './call';
import { closeSession } from './said';
import { protocolOf, type Id, type Message, type SdkProtocol, type SdkServer, type SdkTransport, type SendOptions } from './shapes';

const INTERNAL = -32603;
/** The id under which the SDK is told of a client that the engine has already answered. */
const INTRODUCTION = 'mcpbolt introduction';

/** The lists that a notification speaks of. */
const CHANGED: Record<string, readonly string[]> = {
    'notifications/tools/list_changed': ['tools/list'],
    'notifications/resources/list_changed': ['resources/list', 'resources/templates/list'],
    'notifications/prompts/list_changed': ['prompts/list']
};

/** @internal What a bridge tells of. */
export interface BridgeEvents {
    /** The server gives another list from now on. */
    changed(methods: readonly string[]): void;
    /** The SDK has answered a request. */
    answered(call: SdkCall, json: string): void;
}

/**
 * @internal The SDK's protocol on the one side, the engine on the other: a `Transport` within the process. The engine
 * answers the handshake and pings, and knows who is connected; the SDK is told so.
 */
export class Bridge implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The revision that the last client speaks. */
    revision = '';
    /** How often lists have changed. */
    changes = 0;
    readonly #server: SdkServer;
    events: BridgeEvents | undefined;
    /** The clients that have opened, by the numbers of their connections. */
    readonly #clients = new Set<number>();
    /** The requests that are not answered, by the ids that the SDK knows. */
    readonly #calls = new Map<Id, SdkCall>();
    /** What the SDK has asked clients, by its ids: the engine's numbers. */
    readonly #asked = new Map<Id, number>();
    /** Known of one server; what has one for each session does not show it. */
    readonly #protocol: SdkProtocol | undefined;
    /** What connecting gave: something for servers with sessions. */
    #session: unknown;
    /** What the SDK was told before it listened. */
    #early: Message[] | undefined;
    #link: Link | undefined;
    #connected: Promise<void> | undefined;
    #isIntroducing = false;
    #lastId = 0;
    /**
     * Clients of a network share one server of the SDK: then the ids of requests, which each client makes up for itself,
     * are replaced by others.
     */
    isShared = false;

    constructor(server: SdkServer) {
        this.#server = server;
        this.#protocol = protocolOf(server);
    }

    /** What the SDK calls a session. */
    get sessionId(): string | undefined {
        return undefined;
    }

    /** Connects the SDK's server, once; one that waits for its client only when there is one. */
    async connect(isClientThere = false): Promise<void> {
        if (this.#connected !== undefined || (this.#protocol === undefined && !isClientThere)) return this.#connected;
        this.#early = [];
        const connected = this.#server.connect(this).then(session => void (this.#session = session));
        this.#connected = this.#protocol ? connected : Promise.resolve();
        if (!this.#protocol) connected.catch(error => this.onerror?.(error));
        await this.#connected;
    }

    get protocol(): SdkProtocol {
        return this.#protocol!;
    }

    #deliver(message: Message): void {
        if (this.#early) this.#early.push(message);
        else this.onmessage?.(message);
    }

    /** The link on which clients are from now on. */
    attach(link: Link): void {
        this.#link = link;
    }

    /** The SDK does not know yet who is there. */
    get isIntroducing(): boolean {
        return this.#isIntroducing;
    }

    /** Tells the SDK of a client, as if it had answered the handshake itself. */
    introduce({ revision, connection = 0, peer, capabilities = {} }: Introduction): void {
        if (this.#clients.has(connection)) return;
        this.#clients.add(connection);
        this.#isIntroducing = true;
        this.revision = revision;
        const clientInfo = peer ?? { name: '', version: '' };
        const params = { protocolVersion: revision, capabilities, clientInfo };
        void this.connect(true);
        this.#deliver({ jsonrpc: '2.0', id: INTRODUCTION, method: 'initialize', params });
        this.notify('notifications/initialized');
    }

    /** A notification of a client's. */
    notify(method: string, params?: object): void {
        this.#deliver({ jsonrpc: '2.0', method, ...(params && { params }) });
    }

    /** A client is gone. */
    leave(connection: number): void {
        this.#clients.delete(connection);
    }

    /** A request that is to be answered, by the SDK or without it. */
    begin(call: SdkCall): void {
        if (this.isShared) call.message.id = ++this.#lastId;
        this.#calls.set(call.message.id!, call);
    }

    /** Hands a request to the SDK. */
    fall(call: SdkCall, message: Message = call.message): void {
        call.hasFallen = true;
        this.#deliver(message);
    }

    /** The client has given a request up. */
    cancel(call: SdkCall, reason: string): void {
        const requestId = call.message.id!;
        this.#calls.delete(requestId);
        const params = reason === '' ? { requestId } : { requestId, reason };
        if (call.hasFallen) this.notify('notifications/cancelled', params);
        call.abort(params.reason);
    }

    /** Answers a request; the SDK is not asked. */
    answer(call: SdkCall, kind: Outbound, text: string, a = 0): void {
        if (call.isOver) return;
        call.end();
        this.#calls.delete(call.message.id!);
        this.#link!.push(kind, call.number, text, a);
    }

    /** No client is there any more, and none will be. */
    end(): void {
        for (const call of this.#calls.values()) call.abort();
        this.#calls.clear();
        this.#clients.clear();
        this.#connected = undefined;
        this.onclose?.();
        closeSession(this.#session);
    }

    async start(): Promise<void> {
        // Who connects listens before it starts.
        const early = this.#early ?? [];
        this.#early = undefined;
        queueMicrotask(() => early.forEach(message => this.#deliver(message)));
    }

    async close(): Promise<void> {
        if (this.#link) this.#link.native.stop();
        else this.onclose?.();
    }

    async send(message: Message, options?: SendOptions): Promise<void> {
        if (message.method === undefined) this.#answered(message);
        else if (message.id === undefined) this.#tell(message.method, message.params, options);
        else this.#ask(message as Message & { id: Id; method: string }, options);
    }

    #answered({ id, result, error }: Message): void {
        if (id === INTRODUCTION) {
            this.#isIntroducing = false;
            return;
        }
        const call = this.#calls.get(id!);
        if (call === undefined) return;
        if (error) {
            const { code, message, data } = error;
            return this.answer(call, Outbound.Error, JSON.stringify({ message, data }), code);
        }
        const json = JSON.stringify(result);
        this.answer(call, Outbound.Object, json);
        this.events?.answered(call, json);
    }

    #tell(method: string, params: any, { relatedRequestId }: SendOptions = {}): void {
        const changed = CHANGED[method];
        if (changed) {
            this.changes++;
            this.events?.changed(changed);
        }
        const asked = method === 'notifications/cancelled' ? this.#asked.get(params?.requestId) : undefined;
        if (asked !== undefined) {
            this.#asked.delete(params.requestId);
            return this.#link!.giveUp(asked, params.reason);
        }
        const link = this.#link;
        const json = params === undefined ? '' : JSON.stringify(params);
        const call = relatedRequestId === undefined ? undefined : this.#calls.get(relatedRequestId);
        if (link && call) {
            if (isProgress(method, params, call)) {
                const { progress, total = NaN, message = '' } = params;
                return link.push(Outbound.Progress, call.number, message, progress, total);
            }
            return link.push(Outbound.Notice, call.number, method + json, method.length);
        }
        // What was said before must not be overtaken. Whoever is not there is told nothing.
        link?.flush();
        for (const client of this.#clients) link?.native.tellClient(client, method, json || undefined);
    }

    #ask({ id, method, params }: Message & { id: Id; method: string }, { relatedRequestId }: SendOptions = {}): void {
        const link = this.#link;
        const call = relatedRequestId === undefined ? undefined : this.#calls.get(relatedRequestId);
        if (link === undefined || (call === undefined && this.#clients.size !== 1))
            throw new McpError('ERR_MCP_CLOSED', `which client is asked? Say relatedRequestId: there are ${this.#clients.size}`);
        link.flush();
        const [client] = this.#clients;
        const wantsProgress = params?._meta?.progressToken !== undefined;
        const json = params && JSON.stringify(wantsProgress ? withoutToken(params) : params);
        const number = link.native.askClient(client ?? 0, call?.number, method, json, wantsProgress);
        this.#asked.set(id, number);
        const settle = (answer: object) => {
            this.#asked.delete(id);
            this.#deliver({ jsonrpc: '2.0', id, ...answer });
        };
        link.waiting.set(number, {
            resolve: result => settle({ result }),
            reject: error => settle({ error: errorOf(error) }),
            onProgress: progress => this.notify('notifications/progress', { progressToken: params._meta.progressToken, ...progress })
        });
    }
}

/** Whether a notification is progress on a call, and nothing besides. */
function isProgress(method: string, params: any, { message }: SdkCall): boolean {
    if (method !== 'notifications/progress' || params.progressToken !== message.params?._meta?.progressToken) return false;
    const { progress, total, message: text } = params;
    for (const key in params) if (!['progressToken', 'progress', 'total', 'message'].includes(key)) return false;
    const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
    return isNumber(progress) && (total === undefined || isNumber(total)) && (text === undefined || (typeof text === 'string' && text !== ''));
}

/** The engine has tokens of its own. */
function withoutToken(params: any): object {
    const { progressToken, ..._meta } = params._meta;
    const { _meta: _, ...rest } = params;
    return Object.keys(_meta).length > 0 ? { ...rest, _meta } : rest;
}

function errorOf(error: unknown): object {
    const { rpcCode, message, data } = error as McpError;
    return { code: rpcCode ?? INTERNAL, message, ...(data !== undefined && { data }) };
}
