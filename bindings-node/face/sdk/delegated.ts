import type { Introduction } from '../context';
import type { Link } from '../link';
import { Server, type Attending } from '../server';
import type { Bridge } from './bridge';
import { SdkCall } from './call';
import type { Direct } from './direct';
import type { Fast } from './fast';
import { templatesOf } from './private';
import type { Proof } from './proof';
import type { Said } from './said';
import type { Message, SdkMcpServer } from './shapes';

/** @internal Methods of lists that the engine can answer from a copy. */
export const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];

/** @internal The lists that each notification reports as changed. */
export const CHANGED: Record<string, readonly string[]> = {
    'notifications/tools/list_changed': ['tools/list'],
    'notifications/resources/list_changed': ['resources/list', 'resources/templates/list'],
    'notifications/prompts/list_changed': ['prompts/list']
};

/** @internal A server of the SDK, and how it is served. */
export interface Served {
    bridge: Bridge;
    mcp?: SdkMcpServer | undefined;
    proof?: Proof | undefined;
    fast?: Fast | undefined;
    /** For a low-level `Server`. */
    direct?: Direct | undefined;
    /** Called when a client has disconnected. */
    left?: () => void;
}

/** @internal The servers for clients that open with a handshake, and for requests without one (`alone`). */
export interface Sides {
    handshake?: Served;
    alone?: Served;
}

/** @internal The `Server` that represents a server of the SDK. */
export class Delegated extends Server {
    readonly #sides: Sides;
    readonly #all: Served[];
    /** Called when stdin has ended; calls in flight may still be answered. */
    inputEnded: () => void = () => {};

    constructor({ serverInfo, capabilities, instructions }: Said, sides: Sides) {
        const { handshake, alone } = sides;
        const all = [handshake, alone].filter(side => side !== undefined);
        super(serverInfo.name, serverInfo.version, {
            delegate: {
                capabilities,
                eras: !alone ? 'handshake' : handshake ? 'both' : 'stateless',
                opens: all.some(({ bridge }) => bridge.opens)
            },
            implementation: serverInfo,
            // Where clients listen by a request, the engine sends the notifications.
            ...(alone && { listChanges: true, subscriptions: true }),
            lifespan: { start: async () => void (await Promise.all(all.map(({ bridge }) => !bridge.opens && bridge.connect()))) },
            ...(instructions && { instructions })
        });
        this.#sides = sides;
        this.#all = all;
        for (const side of all) {
            side.bridge.events = {
                changed: notification => this.change(notification),
                updated: uri => alone && this.entries.resourceUpdated(uri),
                answered: (call, json) => keep(this, side, call, json)
            };
        }
        // Only the SDK knows which resources exist, so clients may listen to any URI.
        if (alone) this.entries.template(JSON.stringify({ uri: '{+uri}', name: 'any' }), false);
        this.#number();
    }

    /**
     * Handles a list change. Returns whether the engine notifies all clients: it does if requests without a handshake
     * are served.
     */
    change(notification: string): boolean {
        for (const method of CHANGED[notification] ?? []) this.entries.forget(method);
        if (notification === 'notifications/tools/list_changed') this.#number();
        if (this.#sides.alone === undefined) return false;
        this.entries.listChanged(notification);
        return true;
    }

    /** Has the SDK asked for every list again. */
    forgetLists(): void {
        for (const method of LISTS) this.entries.forget(method);
    }

    /** Numbers the tools that both sides have in common; tools of one side only are called by name. */
    #number(): void {
        const [first, ...others] = this.#all.map(({ fast }) => fast?.number());
        if (first === undefined) return;
        const [names, numbers] = first;
        const isCommon = (name: string, at: number) => others.every(other => other?.[0][at] === name && other[1][at] === numbers[at]);
        const common = names.map(isCommon);
        this.entries.numberTools(
            names.filter((_, at) => common[at]),
            numbers.filter((_, at) => common[at])
        );
    }

    /** @internal */
    protected override attend(link: () => Link): Attending {
        const { handshake, alone } = this.#sides;
        const calls: (SdkCall | undefined)[] = [];
        const of = (isAlone: boolean): Served => {
            const side = (isAlone ? alone : handshake) ?? this.#all[0]!;
            side.bridge.attach(link(), calls);
            return side;
        };
        const begin = (side: Served, call: SdkCall, isServed: boolean) => {
            if (!isServed) this.#fall(side, call);
        };
        return {
            request: (text, number) => {
                const message = JSON.parse(text) as Message;
                const isAlone = alone !== undefined && message.params?._meta?.[VERSION] !== undefined;
                const side = of(isAlone);
                const { bridge, fast, direct } = side;
                const call = (calls[number] = SdkCall.whole(bridge, number, message, isAlone));
                bridge.begin(call);
                begin(side, call, !bridge.isIntroducing && (fast ?? direct)?.serve(call) === true);
            },
            invoke: (number, tool, args, id, meta, isAlone) => {
                const side = of(isAlone);
                const { bridge } = side;
                const fast = side.fast!;
                const call = (calls[number] = SdkCall.ofTool(bridge, number, isAlone, fast.nameOf(tool), args, id, meta));
                bridge.begin(call);
                begin(side, call, !bridge.isIntroducing && fast.invoke(call, tool));
            },
            cancelled: (reason, number) => {
                const call = calls[number];
                if (call && !call.isOver) call.bridge.cancel(call, reason);
            },
            initialized: text => {
                const said: Introduction | null = JSON.parse(text);
                if (said) of(false).bridge.introduce(said);
            },
            rootsChanged: () => of(false).bridge.notify('notifications/roots/list_changed'),
            notification: text => {
                const { method, params } = JSON.parse(text);
                of(false).bridge.notify(method, params);
            },
            left: text => {
                const [, said] = JSON.parse(text) as [unknown, Introduction | null];
                const { bridge, left } = of(false);
                if (said?.connection !== undefined) bridge.leave(said.connection);
                left?.();
            },
            inputEnded: () => this.inputEnded(),
            end: () => this.#all.forEach(({ bridge }) => bridge.end()),
            underWay: () => calls.filter(call => call && !call.isOver).length
        };
    }

    /** Passes a request to the SDK, and observes its handler if that is not yet known. */
    #fall({ bridge, proof }: Served, call: SdkCall): void {
        const begin = () => bridge.fall(call);
        if (proof) proof.watch(call.method, begin);
        else begin();
    }
}

const VERSION = 'io.modelcontextprotocol/protocolVersion';

/** Lets the engine answer a list from a copy until the SDK reports a change. */
function keep(server: Delegated, { bridge, mcp, proof }: Served, call: SdkCall, json: string): void {
    const { method } = call;
    if (mcp === undefined || !LISTS.includes(method) || !proof?.holds(method)) return;
    if (call.message.params?.cursor !== undefined || call.changes !== bridge.changes) return;
    if (method === 'resources/list' && listsByCallback(mcp)) return;
    const kept = call.isAlone ? withoutStamps(json) : json;
    if (kept !== undefined) server.entries.keep(method, bridge.revision, kept);
}

/** Removes the members that the engine adds to every result from 2026-07-28 on; `undefined` if there are others. */
function withoutStamps(json: string): string | undefined {
    const { resultType, _meta = {}, ...result } = JSON.parse(json);
    const { 'io.modelcontextprotocol/serverInfo': _, ...meta } = _meta;
    return resultType === 'complete' && Object.keys(meta).length === 0 ? JSON.stringify(result) : undefined;
}

/** @internal Whether a template lists its resources by a callback, so that each list may differ. */
export function listsByCallback(mcp: SdkMcpServer): boolean {
    return Object.values(templatesOf(mcp)).some(({ resourceTemplate }) => resourceTemplate?.listCallback);
}
