import { takeAuth } from '../auth';
import { McpError } from '../errors';
import { Outbound, type Link } from '../link';
import type { Introduction } from '../context';
import { requestInfoOf, requestOf, type Head, type SdkCall } from './call';
import { closeSession } from './said';
import { generationOf, isLeftOut, protocolOf, type Id, type Message, type SdkProtocol, type SdkServer, type SdkTransport, type SendOptions } from './shapes';

const INTERNAL = -32603;
/** The id under which the SDK is told of a client that the engine has already answered. */
const INTRODUCTION = 'mcpbolt introduction';

/** @internal What a bridge tells of. */
export interface BridgeEvents {
    /** The server gives other lists from now on, as this notification says. Whether clients have been told. */
    changed?(notification: string): boolean;
    /** A resource is another from now on. */
    updated?(uri: string): void;
    /** The SDK has answered a request. */
    answered?(call: SdkCall, json: string): void;
}

/** @internal What a bridge is between. */
export interface BridgeOptions {
    /** It is connected by the bridge, when it is served or, if it opens itself, by its first client; otherwise by somebody else. */
    server?: SdkServer;
    generation?: 1 | 2;
    /** The SDK answers the handshake itself. */
    opens?: boolean;
    /** The one revision without a handshake that it speaks. */
    revision?: string;
}

/**
 * @internal The SDK's protocol on the one side, the engine on the other: a `Transport` within the process. The engine
 * knows who is connected and, unless the SDK is to, answers the handshake and pings; the SDK is told so.
 */
export class Bridge implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** What the SDK calls a session. */
    sessionId: string | undefined = undefined;
    readonly generation: 1 | 2;
    readonly opens: boolean;
    /** The revision that the last client speaks. */
    revision = '';
    /** How often lists have changed. */
    changes = 0;
    events: BridgeEvents = {};
    /**
     * Clients of a network share one server of the SDK: then the ids of requests, which each client makes up for itself,
     * are replaced by others.
     */
    isShared = false;
    /** Nothing is said on behalf of a request but its answer. */
    answersAlone = false;
    readonly #server: SdkServer | undefined;
    /** Known of one server; what has one for each session does not show it. */
    readonly #protocol: SdkProtocol | undefined;
    readonly #isModern: boolean;
    /** The clients that have opened, by the numbers of their connections. */
    readonly #clients = new Set<number>();
    /** The requests that the SDK may speak of, by the ids that it knows. */
    readonly #calls = new Map<Id, SdkCall>();
    /** All that are not answered, by the engine's numbers. */
    #underWay: (SdkCall | undefined)[] = [];
    /** What the SDK has asked clients, by its ids: the engine's numbers. */
    readonly #asked = new Map<Id, number>();
    /** What connecting gave: something for servers with sessions. */
    #session: unknown;
    /** What the SDK was told before it listened. */
    #early: [Message, object | undefined][] | undefined;
    #link: Link | undefined;
    #connected: Promise<void> | undefined;
    #isIntroducing = false;
    #lastId = 0;
    /** The last request of a client without a handshake. */
    #current: SdkCall | undefined;

    constructor({ server, generation, opens = false, revision }: BridgeOptions) {
        this.#server = server;
        this.#protocol = server && protocolOf(server);
        this.generation = generation ?? generationOf(this.#protocol);
        this.opens = opens;
        this.#isModern = revision !== undefined;
        if (revision !== undefined) this.#bind(revision);
    }

    /** The server is one of that revision from its beginning, and knows of each request who sends it. */
    #bind(revision: string): void {
        this.revision = revision;
        const said = (name: string) => this.#current?.meta?.[`io.modelcontextprotocol/${name}`];
        Object.defineProperties(this.protocol, {
            _negotiatedProtocolVersion: { value: revision, writable: true, configurable: true, enumerable: true },
            _clientCapabilities: { get: () => said('clientCapabilities'), set: () => {}, configurable: true, enumerable: true },
            _clientVersion: { get: () => said('clientInfo'), set: () => {}, configurable: true, enumerable: true }
        });
    }

    /** Connects the SDK's server, once. One that opens itself waits for what its client says: it is not waited for. */
    async connect(): Promise<void> {
        if (this.#connected !== undefined || this.#server === undefined) return this.#connected;
        this.#early = [];
        const connected = this.#server.connect(this).then(session => void (this.#session = session));
        this.#connected = this.opens ? connected.catch(error => this.onerror?.(error)) : connected;
        if (!this.opens) await connected;
    }

    get protocol(): SdkProtocol {
        return this.#protocol!;
    }

    #deliver(message: Message, extra?: object): void {
        if (this.opens) void this.connect();
        if (this.#early) this.#early.push([message, extra]);
        else this.onmessage?.(message, extra);
    }

    /** The link on which clients are from now on, and what is under way on it. */
    attach(link: Link, underWay: (SdkCall | undefined)[]): void {
        this.#link = link;
        this.#underWay = underWay;
    }

    /** The SDK does not know yet who is there. */
    get isIntroducing(): boolean {
        return this.#isIntroducing;
    }

    /** A client has opened: tells the SDK, as if it had answered the handshake itself, unless it has. */
    introduce({ revision, connection = 0, peer, capabilities = {} }: Introduction): void {
        if (this.#clients.has(connection)) return;
        this.#clients.add(connection);
        this.revision = revision;
        if (!this.opens) {
            this.#isIntroducing = true;
            const clientInfo = peer ?? { name: '', version: '' };
            const params = { protocolVersion: revision, capabilities, clientInfo };
            this.#deliver({ jsonrpc: '2.0', id: INTRODUCTION, method: 'initialize', params });
        }
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

    /** Who asks now is who `getClientCapabilities()` tells of. */
    begin(call: SdkCall): void {
        if (this.#isModern) this.#current = call;
    }

    /** From now on a request is found by the id that this gives. */
    register(call: SdkCall, own: Id): Id {
        const id = this.isShared ? ++this.#lastId : own;
        if (!call.isOver) this.#calls.set(id, call);
        return id;
    }

    /** What brought a request, over HTTP. */
    headOf(call: SdkCall): Head | undefined {
        if (call.isOver) return undefined;
        const text = this.#link!.native.head(call.number);
        if (text === null) return undefined;
        const head: Head = JSON.parse(text);
        head.auth = takeAuth(head.headers);
        return head;
    }

    /** Has who reads the stream of a request come back for the rest. */
    release(id: Id, retryMs: number): void {
        const call = this.#calls.get(id);
        if (call) this.#link?.native.releaseStream(call.number, retryMs);
    }

    /** Hands a request to the SDK. */
    fall(call: SdkCall, message: Message = call.message): void {
        call.hasFallen = true;
        this.#deliver(message, this.#extraOf(call));
    }

    #extraOf(call: SdkCall): object | undefined {
        const head = this.headOf(call);
        const classification = this.#isModern ? { classification: { era: 'modern', revision: this.revision } } : undefined;
        if (head === undefined) return classification;
        const authInfo = head.auth;
        if (this.generation === 1) return { authInfo, requestInfo: requestInfoOf(head) };
        return { ...classification, request: requestOf(head), ...(authInfo !== undefined && { authInfo }) };
    }

    /** The client has given a request up. */
    cancel(call: SdkCall, reason: string): void {
        const fallen = call.hasFallen ? call.id : undefined;
        const why = reason === '' ? undefined : reason;
        this.#forget(call);
        if (fallen !== undefined) this.notify('notifications/cancelled', { requestId: fallen, ...(why && { reason: why }) });
        call.abort(why);
    }

    /** Answers a request; the SDK is not asked. */
    answer(call: SdkCall, kind: Outbound, text: string, a = 0): void {
        if (call.isOver) return;
        this.#forget(call);
        call.end();
        this.#link!.push(kind, call.number, text, a);
    }

    #forget(call: SdkCall): void {
        if (call.isRegistered) this.#calls.delete(call.id);
        if (this.#underWay[call.number] === call) this.#underWay[call.number] = undefined;
    }

    /** No client is there any more, and none will be. */
    end(): void {
        for (const call of this.#underWay) if (call?.bridge === this) call.abort();
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
        queueMicrotask(() => early.forEach(([message, extra]) => this.#deliver(message, extra)));
    }

    async close(): Promise<void> {
        if (this.#link) this.#link.native.stop();
        else this.onclose?.();
    }

    async send(message: Message, options?: SendOptions): Promise<void> {
        if (this.answersAlone && isLeftOut(message, options)) return;
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
        this.events.answered?.(call, json);
    }

    #tell(method: string, params: any, { relatedRequestId }: SendOptions = {}): void {
        if (method.endsWith('/list_changed')) {
            this.changes++;
            if (this.events.changed?.(method)) return;
        } else if (method === 'notifications/resources/updated') this.events.updated?.(params?.uri);
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
function isProgress(method: string, params: any, call: SdkCall): boolean {
    if (method !== 'notifications/progress' || params.progressToken !== call.meta?.progressToken) return false;
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
