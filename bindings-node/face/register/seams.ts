/** Puts the engine where the SDKs' servers meet their transports. */
import { fileURLToPath } from 'node:url';
import { known, packageOf, type Package } from '../sdk/gate';
import { noteHandlers } from '../sdk/proof';
import { protocolOf, type SdkServer, type SdkTransport } from '../sdk/shapes';
import type { Join } from './modules';
import { uses } from './say';
import { joinStdio } from './stdio';

/** @internal What a transport was connected to. */
export interface Connected {
    server: SdkServer;
    /** The package of the server's class. */
    release: Package;
    /** Whether the program had a listener of its own for its messages. */
    isHeard: boolean;
}

type Method = (this: any, ...args: any[]) => any;

const joined = new WeakSet<object>();
const connections = new WeakMap<object, Connected>();

/** @internal */
export const join: Join = (classes, file) => {
    const { McpServer, Server, StdioServerTransport } = classes as Record<string, { prototype: any } | undefined>;
    const release = packageOf(file.startsWith('file:') ? fileURLToPath(file) : file);
    const found = [McpServer, Server, StdioServerTransport].filter(one => typeof one === 'function' && !joined.has(one));
    if (release === undefined || found.length === 0 || !uses(release)) return;
    for (const one of found) joined.add(one!);
    const isNew = (one: object | undefined) => found.includes(one as never);
    for (const one of [McpServer, Server]) if (isNew(one)) joinServer(one!.prototype, release);
    if (isNew(Server)) joinHandlers(Server!.prototype);
    if (isNew(StdioServerTransport)) joinStdio(StdioServerTransport!.prototype, release, transport => connections.get(transport));
};

/** Remembers which transport a server is connected to. */
function joinServer(prototype: { connect: Method }, release: Package): void {
    if (known(release) !== 'accelerated') return;
    const { connect } = prototype;
    replace(prototype, 'connect', function (transport: SdkTransport, ...more) {
        // An `McpServer` connects its `Server`: the outer one counts.
        if (typeof transport === 'object' && transport !== null && !connections.has(transport))
            connections.set(transport, { server: this as SdkServer, release, isHeard: transport.onmessage !== undefined });
        return connect.call(this, transport, ...more);
    });
}

/** Remembers the handlers that a server is given first. */
function joinHandlers(prototype: { setRequestHandler: Method }): void {
    const { setRequestHandler } = prototype;
    replace(prototype, 'setRequestHandler', function (...args) {
        const result = setRequestHandler.apply(this, args);
        const protocol = protocolOf(this);
        if (protocol) noteHandlers(protocol);
        return result;
    });
}

/** @internal Replaces a method of a class. */
export function replace<Name extends string>(prototype: { [name in Name]: Method }, name: Name, method: Method): void {
    Object.defineProperty(method, 'name', { value: name });
    Object.defineProperty(prototype, name, { value: method, writable: true, configurable: true, enumerable: false });
}
