import { takeAuth } from '../auth';
import { McpError } from '../errors';
import { Outbound, type Link } from '../link';
import type { Introduction } from '../context';
import { requestInfoOf, requestOf, type Head, type SdkCall } from './call';
import { closeSession } from './said';
import { bindClient, generationOf } from './private';
import { isLeftOut, protocolOf, type Id, type Message, type SdkProtocol, type SdkServer, type SdkTransport, type SendOptions } from './shapes';

const INTERNAL = -32603;
/** The id of the `initialize` request that tells the SDK of a client that the engine has already answered. */
const INTRODUCTION = 'mcpbolt introduction';

/** @internal The callbacks of a bridge. */
export interface BridgeEvents {
    /** The server's lists changed, as the notification says. Returns whether clients have been notified. */
    changed?(notification: string): boolean;
    /** A resource changed. */
    updated?(uri: string): void;
    /** The SDK has answered a request. */
    answered?(call: SdkCall, json: string): void;
}

/** @internal Options of a bridge. */
export interface BridgeOptions {
    /**
     * The server that the bridge connects when it is served or, if `opens`, for its first client. Without one, the
     * caller connects it.
     */
    server?: SdkServer;
    /** The protocol object of a server that the caller connects. */
    protocol?: SdkProtocol;
    generation?: 1 | 2;
    /** Whether the SDK answers the handshake itself. */
    opens?: boolean;
    /** The only revision, one without a handshake, that the server serves. */
    revision?: string;
}

/**
 * @internal An in-process `Transport` between the SDK's protocol and the engine. The engine tracks which clients are
 * connected and, unless `opens`, answers the handshake and pings; the SDK is informed.
 */
export class Bridge implements SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The SDK's session id. */
    sessionId: string | undefined = undefined;
    readonly generation: 1 | 2;
    readonly opens: boolean;
    /** The revision of the last client. */
    revision = '';
    /** How often lists have changed. */
    changes = 0;
    events: BridgeEvents = {};
    /**
     * Whether several clients share one server of the SDK. Their request ids, which each client chooses itself, are
     * then replaced by unique ones.
     */
    isShared = false;
    /** Sends only the answer of a request, and no notifications or requests before it. */
    answersAlone = false;
    readonly #server: SdkServer | undefined;
    /** The protocol object of a server; unknown for a server that has one for each session. */
    readonly #protocol: SdkProtocol | undefined;
    readonly #isModern: boolean;
    /** The clients that have opened, by connection number. */
    readonly #clients = new Set<number>();
    /** The requests that the SDK may refer to, by the id that the SDK knows. */
    readonly #calls = new Map<Id, SdkCall>();
    /** All unanswered requests, by the engine's number. */
    #underWay: (SdkCall | undefined)[] = [];
    /** The SDK's requests to clients: the engine's number by the SDK's id. */
    readonly #asked = new Map<Id, number>();
    /** The return value of `connect`: a session, for servers that have sessions. */
    #session: unknown;
    /** Messages for the SDK that arrived before it was ready. */
    #early: [Message, object | undefined][] | undefined;
    #link: Link | undefined;
    #connected: Promise<void> | undefined;
    #isIntroducing = false;
    #lastId = 0;
    /** The last request of a client without a handshake. */
    #current: SdkCall | undefined;

    constructor({ server, protocol = server && protocolOf(server), generation, opens = false, revision }: BridgeOptions) {
        this.#server = server;
        this.#protocol = protocol;
        this.generation = generation ?? generationOf(this.#protocol);
        this.opens = opens;
        this.#isModern = revision !== undefined;
        if (revision !== undefined) this.#bind(revision);
    }

    /**
     * Fixes the server's revision from the start, and lets it read the client's properties from the current request.
     */
    #bind(revision: string): void {
        this.revision = revision;
        bindClient(this.protocol, revision, name => this.#current?.meta?.[`io.modelcontextprotocol/${name}`]);
    }

    /**
     * Connects the SDK's server, once. With `opens` it waits for its client's handshake, so the call does not await it.
     */
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

    /** Sets the link of the clients from now on, and its calls in progress. */
    attach(link: Link, underWay: (SdkCall | undefined)[]): void {
        this.#link = link;
        this.#underWay = underWay;
    }

    /** Whether no request is under way. */
    get isIdle(): boolean {
        return this.#underWay.every(call => call === undefined || call.isOver);
    }

    /** Whether the SDK has not yet been told of the client. */
    get isIntroducing(): boolean {
        return this.#isIntroducing;
    }

    /** Tells the SDK of a client that has opened, as if the SDK had answered the handshake, unless it did so itself. */
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

    /** Passes a notification of a client to the SDK. */
    notify(method: string, params?: object): void {
        this.#deliver({ jsonrpc: '2.0', method, ...(params && { params }) });
    }

    /** Removes a client that has disconnected. */
    leave(connection: number): void {
        this.#clients.delete(connection);
    }

    /** Sets the request whose client `getClientCapabilities()` describes. */
    begin(call: SdkCall): void {
        if (this.#isModern) this.#current = call;
    }

    /** Registers a request and returns the id by which it can be found. */
    register(call: SdkCall, own: Id): Id {
        const id = this.isShared ? ++this.#lastId : own;
        if (!call.isOver) this.#calls.set(id, call);
        return id;
    }

    /** The HTTP request that brought a call. */
    headOf(call: SdkCall): Head | undefined {
        if (call.isOver) return undefined;
        const text = this.#link!.native.head(call.number);
        if (text === null) return undefined;
        const head: Head = JSON.parse(text);
        head.auth = takeAuth(head.headers);
        // The program has an id of its own for the session.
        if (this.sessionId !== undefined) for (const header of head.headers) if (header[0] === 'mcp-session-id') header[1] = this.sessionId;
        return head;
    }

    /** Closes the event stream of a request; its reader reconnects for the rest. */
    release(id: Id, retryMs: number): void {
        const call = this.#calls.get(id);
        if (call) this.#link?.native.releaseStream(call.number, retryMs);
    }

    /** Passes a request to the SDK. */
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

    /** Handles the cancellation of a request by its client. */
    cancel(call: SdkCall, reason: string): void {
        const fallen = call.hasFallen ? call.id : undefined;
        const why = reason === '' ? undefined : reason;
        this.#forget(call);
        if (fallen !== undefined) this.notify('notifications/cancelled', { requestId: fallen, ...(why && { reason: why }) });
        call.abort(why);
    }

    /** Answers a request without the SDK. */
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

    /** Ends the bridge: all clients have gone, and no further ones come. */
    end(): void {
        for (const call of this.#underWay) if (call?.bridge === this) call.abort();
        this.#calls.clear();
        this.#clients.clear();
        this.#connected = undefined;
        this.onclose?.();
        closeSession(this.#session);
    }

    async start(): Promise<void> {
        // `connect` sets its listeners before it calls `start`.
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
        // Must not overtake earlier messages. Nothing is sent if no client is connected.
        link?.flush();
        for (const client of this.#clients) link?.native.tellClient(client, method, json || undefined);
    }

    #ask({ id, method, params }: Message & { id: Id; method: string }, { relatedRequestId }: SendOptions = {}): void {
        const link = this.#link;
        const call = relatedRequestId === undefined ? undefined : this.#calls.get(relatedRequestId);
        if (link === undefined || (call === undefined && this.#clients.size !== 1))
            throw new McpError('ERR_MCP_CLOSED', `cannot choose among ${this.#clients.size} clients; pass relatedRequestId`);
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
        link.await(number, {
            resolve: result => settle({ result }),
            reject: error => settle({ error: errorOf(error) }),
            onProgress: progress => this.notify('notifications/progress', { progressToken: params._meta.progressToken, ...progress })
        });
    }
}

/** Whether a notification is progress on the call, without additional members. */
function isProgress(method: string, params: any, call: SdkCall): boolean {
    if (method !== 'notifications/progress' || params.progressToken !== call.meta?.progressToken) return false;
    const { progress, total, message: text } = params;
    for (const key in params) if (!['progressToken', 'progress', 'total', 'message'].includes(key)) return false;
    const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
    return isNumber(progress) && (total === undefined || isNumber(total)) && (text === undefined || (typeof text === 'string' && text !== ''));
}

/** The engine uses tokens of its own. */
function withoutToken(params: any): object {
    const { progressToken, ..._meta } = params._meta;
    const { _meta: _, ...rest } = params;
    return Object.keys(_meta).length > 0 ? { ...rest, _meta } : rest;
}

function errorOf(error: unknown): object {
    const { rpcCode, message, data } = error as McpError;
    return { code: rpcCode ?? INTERNAL, message, ...(data !== undefined && { data }) };
}
