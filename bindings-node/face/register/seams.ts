/** Puts the engine where the SDKs' servers meet their transports. */
import { fileURLToPath } from 'node:url';
import { known, packageOf, type Package } from '../sdk/gate';
import { noteHandlers } from '../sdk/proof';
import { protocolOf, type SdkServer, type SdkTransport } from '../sdk/shapes';
import type { ServeStdio } from './entry';
import { joinHttp } from './http';
import { CLASSES, ENTRY, type Join, type Joined, type Replaced } from './modules';
import { uses } from './say';
import { joinStdio } from './stdio';
import { replace, type Connected, type Method } from './taken';

const joined = new WeakSet<object>();
const connections = new WeakMap<object, Connected>();

/** @internal */
export const join: Join = (classes, file) => {
    const entry = entryOf(classes);
    const release = packageOf(file.startsWith('file:') ? fileURLToPath(file) : file);
    const found = CLASSES.filter(name => typeof classes[name] === 'function' && !joined.has(classes[name]));
    if (release === undefined || found.length === 0 || !uses(release)) return;
    if (entry && known(release) === 'accelerated') entry.replace(served(entry.value as ServeStdio));
    for (const name of found) {
        const { prototype } = classes[name] as { prototype: any };
        joined.add(classes[name] as object);
        SEAMS[name](prototype, release);
    }
};

/** The function of v2 that serves stdin and stdout, in a module or among exports. */
function entryOf(found: Joined): Replaced | undefined {
    const entry = found[ENTRY];
    if (typeof entry === 'object') return entry as Replaced;
    return typeof entry === 'function' ? { value: entry, replace: by => void (found[ENTRY] = by) } : undefined;
}

const connectionOf = (transport: object) => connections.get(transport);

// Each is loaded when a program has it serve.
const served = (original: ServeStdio): ServeStdio =>
    function serveStdio(...args) {
        return (require('./entry') as typeof import('./entry')).served(original)(...args);
    };
const http = () => require('../sdk/http') as typeof import('../sdk/http');
const onNode = () => http().StreamableHTTPServerTransport;
const onWeb = () => http().WebStandardStreamableHTTPServerTransport;

/** Joins each class of the SDKs to the engine. */
const SEAMS: Record<(typeof CLASSES)[number], (prototype: any, release: Package) => void> = {
    McpServer: joinServer,
    Server: (prototype, release) => (joinServer(prototype, release), joinHandlers(prototype)),
    StdioServerTransport: (prototype, release) => joinStdio(prototype, release, connectionOf),
    StreamableHTTPServerTransport: (prototype, release) => joinHttp(prototype, release, onNode, connectionOf),
    NodeStreamableHTTPServerTransport: (prototype, release) => joinHttp(prototype, release, onNode, connectionOf),
    WebStandardStreamableHTTPServerTransport: (prototype, release) => joinHttp(prototype, release, onWeb, connectionOf)
};

/** Remembers which transport a server is connected to. */
function joinServer(prototype: { connect: Method }, release: Package): void {
    if (known(release) !== 'accelerated') return;
    const { connect } = prototype;
    replace(prototype, 'connect', function (transport: SdkTransport, ...more) {
        // An `McpServer` connects its `Server`: the outer one counts.
        if (typeof transport === 'object' && transport !== null && !connections.has(transport))
            connections.set(transport, { server: this as SdkServer, isHeard: transport.onmessage !== undefined });
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
