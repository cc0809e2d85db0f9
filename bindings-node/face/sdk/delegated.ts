import type { Introduction } from '../context';
import type { Link } from '../link';
import { Server, type Attending } from '../server';
import type { Bridge } from './bridge';
import { SdkCall } from './call';
import type { Fast } from './fast';
import type { Proof } from './proof';
import type { Said } from './said';
import type { Message, SdkMcpServer } from './shapes';

/** @internal Lists, and what says that one cannot be kept. */
export const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];

/** @internal The lists that a notification speaks of. */
export const CHANGED: Record<string, readonly string[]> = {
    'notifications/tools/list_changed': ['tools/list'],
    'notifications/resources/list_changed': ['resources/list', 'resources/templates/list'],
    'notifications/prompts/list_changed': ['prompts/list']
};

/** @internal A server of the SDK's, and how it is served. */
export interface Served {
    bridge: Bridge;
    mcp?: SdkMcpServer | undefined;
    proof?: Proof | undefined;
    fast?: Fast | undefined;
    /** Told that a client has gone. */
    left?: () => void;
}

/** @internal Who serves clients that open with a handshake, and who requests that stand alone. */
export interface Sides {
    handshake?: Served;
    alone?: Served;
}

/** @internal The server of ours that stands in for the SDK's. */
export class Delegated extends Server {
    readonly #sides: Sides;
    readonly #all: Served[];

    constructor({ serverInfo, capabilities, instructions }: Said, sides: Sides) {
        const { handshake, alone } = sides;
        const all = [handshake, alone].filter(side => side !== undefined);
        super(serverInfo.name, serverInfo.version, {
            delegate: {
                implementation: JSON.stringify(serverInfo),
                capabilities: JSON.stringify(capabilities),
                eras: !alone ? 'handshake' : handshake ? 'both' : 'stateless',
                opens: all.some(({ bridge }) => bridge.opens)
            },
            // What a client listens to is the engine's to tell, where it asks by a request.
            ...(alone && { listChanges: true, subscriptions: true }),
            lifespan: { start: async () => void (await Promise.all(all.map(({ bridge }) => !bridge.opens && bridge.connect()))) },
            ...(instructions && { instructions })
        });
        this.#sides = sides;
        this.#all = all;
        for (const side of all) {
            side.bridge.events = {
                changed: notification => this.change(notification),
                updated: uri => alone && this.offer.resourceUpdated(uri),
                answered: (call, json) => keep(this, side, call, json)
            };
        }
        // Which resources there are is the SDK's to say: a client may listen to any.
        if (alone) this.offer.template(JSON.stringify({ uri: '{+uri}', name: 'any' }));
        this.#number();
    }

    /** Lists are others from now on. Whether the engine tells all clients of it: it does where some listen. */
    change(notification: string): boolean {
        for (const method of CHANGED[notification] ?? []) this.offer.forget(method);
        if (notification === 'notifications/tools/list_changed') this.#number();
        if (this.#sides.alone === undefined) return false;
        this.offer.tell(notification);
        return true;
    }

    /** Both sides are made by one program, and their tools are the same; those of one alone are called by name. */
    #number(): void {
        const [first, ...others] = this.#all.map(({ fast }) => fast?.number());
        if (first === undefined) return;
        const [names, numbers] = first;
        const isCommon = (name: string, at: number) => others.every(other => other?.[0][at] === name && other[1][at] === numbers[at]);
        const common = names.map(isCommon);
        this.offer.numberTools(
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
            request: (number, text) => {
                const message = JSON.parse(text) as Message;
                const isAlone = alone !== undefined && message.params?._meta?.[VERSION] !== undefined;
                const side = of(isAlone);
                const { bridge, fast } = side;
                const call = (calls[number] = SdkCall.whole(bridge, number, message, isAlone));
                bridge.begin(call);
                begin(side, call, !bridge.isIntroducing && fast?.serve(call) === true);
            },
            invoke: (number, tool, args, id, meta, isAlone) => {
                const side = of(isAlone);
                const { bridge } = side;
                const fast = side.fast!;
                const call = (calls[number] = SdkCall.ofTool(bridge, number, isAlone, fast.nameOf(tool), args, id, meta));
                bridge.begin(call);
                begin(side, call, !bridge.isIntroducing && fast.invoke(call, tool));
            },
            cancelled: (number, reason) => {
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
            end: () => this.#all.forEach(({ bridge }) => bridge.end()),
            underWay: () => calls.filter(call => call && !call.isOver).length
        };
    }

    /** Leaves a request to the SDK, and looks how it goes about it where that is not known yet. */
    #fall({ bridge, proof }: Served, call: SdkCall): void {
        const begin = () => bridge.fall(call);
        if (proof) proof.watch(call.method, begin);
        else begin();
    }
}

const VERSION = 'io.modelcontextprotocol/protocolVersion';

/** Lists stay what they are until the SDK tells that they are not. */
function keep(server: Delegated, { bridge, mcp, proof }: Served, call: SdkCall, json: string): void {
    const { method } = call;
    if (mcp === undefined || !LISTS.includes(method) || !proof?.holds(method)) return;
    if (call.message.params?.cursor !== undefined || call.changes !== bridge.changes) return;
    if (method === 'resources/list' && listsByCallback(mcp)) return;
    const kept = call.isAlone ? withoutStamps(json) : json;
    if (kept !== undefined) server.offer.keep(method, bridge.revision, kept);
}

/** Without what the engine says of every result from 2026-07-28 on; nothing if there is more. */
function withoutStamps(json: string): string | undefined {
    const { resultType, _meta = {}, ...result } = JSON.parse(json);
    const { 'io.modelcontextprotocol/serverInfo': _, ...meta } = _meta;
    return resultType === 'complete' && Object.keys(meta).length === 0 ? JSON.stringify(result) : undefined;
}

/** @internal Whether a template says which resources there are, each time anew. */
export function listsByCallback(mcp: SdkMcpServer): boolean {
    return Object.values(mcp._registeredResourceTemplates).some(({ resourceTemplate }) => resourceTemplate?.listCallback);
}
