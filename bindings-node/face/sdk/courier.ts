import { randomUUID } from 'node:crypto';
import type { SdkCall } from './call';
import { promptsOf, resourcesOf, toolsOf } from './private';
import type { Id, SdkMcpServer } from './shapes';

/** @internal The methods whose results couriers deliver. */
export type Kind = 'tools/call' | 'resources/read' | 'prompts/get';

/** `open` returns the given result once; if the SDK calls again, `again` runs the callback anew. */
interface Parcel {
    open?: (() => unknown) | undefined;
    again: (context: object) => unknown;
}

/**
 * @internal Lets the SDK check and send a result as if it had called the handler itself: a hidden tool, resource or
 * prompt with a random name returns the result of another one.
 */
export class Couriers {
    readonly #parcels = new Map<Id, Parcel>();
    /** The params that address the courier of each kind. */
    readonly #addresses = new Map<Kind, object>();

    constructor(private readonly server: SdkMcpServer) {}

    bring(kind: Kind, call: SdkCall, open: () => unknown, again: (context: object) => unknown): void {
        let address = this.#addresses.get(kind);
        if (address === undefined) this.#addresses.set(kind, (address = this.#hire(kind)));
        const { id, meta, message } = call;
        this.#parcels.set(id, { open, again });
        call.onEnd = () => this.#parcels.delete(id);
        call.bridge.fall(call, { ...message, params: { ...address, ...(meta && { _meta: meta }) } });
    }

    #hire(kind: Kind): object {
        const open = (id: Id, context: object) => {
            const parcel = this.#parcels.get(id)!;
            const { open } = parcel;
            parcel.open = undefined;
            return open ? open() : parcel.again(context);
        };
        const inFirst = (extra: any) => open(extra.requestId, extra);
        const inSecond = async (_: unknown, context: any) => open(context.mcpReq.id, context);
        const place = (registry: object, name: string, value: object) =>
            Object.defineProperty(registry, name, { value: { enabled: true, ...value }, enumerable: false });
        const name = `mcpbolt-courier-${randomUUID()}`;
        switch (kind) {
            case 'tools/call':
                place(toolsOf(this.server), name, { handler: inFirst, executor: inSecond });
                return { name };
            case 'resources/read':
                place(resourcesOf(this.server), `${name}:`, { readCallback: inSecond });
                return { uri: `${name}:` };
            case 'prompts/get':
                place(promptsOf(this.server), name, { handler: inSecond });
                return { name };
        }
    }
}
