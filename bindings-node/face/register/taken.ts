/** Shared parts of the transports that the engine takes over. */
import { known, type Package } from '../sdk/gate';
import { generationOf, limitsVersions } from '../sdk/private';
import { ownOpening } from '../sdk/proof';
import { NO_REGISTRY } from '../sdk/report';
import { mcpServerOf, protocolOf, type SdkServer, type SdkTransport } from '../sdk/shapes';

/** @internal A transport of an SDK. */
export type Transport = SdkTransport & { [name: string]: any };

/** @internal What a transport was connected to. */
export interface Connected {
    server: SdkServer;
    /** Whether the program had a listener of its own for its messages. */
    isHeard: boolean;
}

/** @internal A method of a class. */
export type Method = (this: any, ...args: any[]) => any;

/** @internal Replaces a method of a class. */
export function replace<Name extends string>(prototype: { [name in Name]: Method }, name: Name, method: Method): void {
    Object.defineProperty(method, 'name', { value: name });
    Object.defineProperty(prototype, name, { value: method, writable: true, configurable: true, enumerable: false });
}

/** @internal Why a server with revisions of its own choice is not the engine's. */
export const VERSIONS = 'it chooses its protocol versions itself';

/** @internal Why the SDK's sessions answer the messages; `undefined` if the engine can. `send` is the class's own method. */
export function whyCarried(transport: Transport, release: Package, connected: Connected | undefined, send: unknown): string | undefined {
    if (known(release) !== 'accelerated') return `${release.name} ${release.version} is not accelerated`;
    if (connected === undefined) return 'the program reads the messages itself';
    const protocol = protocolOf(connected.server);
    if (protocol === undefined || (generationOf(protocol) === 2 && mcpServerOf(connected.server) === undefined)) return NO_REGISTRY;
    if (connected.isHeard || transport.send !== send) return 'the program sees each message';
    if (limitsVersions(protocol)) return VERSIONS;
    const method = ownOpening(protocol);
    return method && `${method} has a handler of the program's own`;
}

/** @internal Calls `seen` when the program begins to look at the messages of a transport. */
export function whenSeen(transport: Transport, seen: () => void): void {
    for (const name of ['onmessage', 'send']) {
        let value = transport[name];
        Object.defineProperty(transport, name, {
            configurable: true,
            enumerable: name === 'onmessage',
            get: () => value,
            set: next => {
                value = next;
                seen();
            }
        });
    }
}
