/** The SDKs' transports over Streamable HTTP, on the engine. */
import { known, type Package } from '../sdk/gate';
import type { StreamableHTTPServerTransport, StreamableHTTPServerTransportOptions, WebStandardStreamableHTTPServerTransport } from '../sdk/http';
import { generationOf, httpOptionsOf, infoOf, limitsVersions, promptsOf, resourcesOf, setSessionId, templatesOf, toolsOf, webOf } from '../sdk/private';
import { reportOf } from '../sdk/report';
import { leaveToSdk } from '../sdk/served';
import { mcpServerOf, protocolOf, type SdkMcpServer } from '../sdk/shapes';
import * as say from './say';
import { replace, VERSIONS, whenSeen, whyCarried, type Connected, type Method, type Transport } from './taken';

type Own = typeof StreamableHTTPServerTransport | typeof WebStandardStreamableHTTPServerTransport;
type Carrier = InstanceType<Own> & { handleRequest: Method };

const carriers = new WeakMap<object, Carrier>();
const kept = new WeakSet<object>();

/** @internal Has the engine do the work of a class of transports, by the class of this package that has the same methods. */
export function joinHttp(prototype: Transport, release: Package, own: () => Own, connectionOf: (transport: object) => Connected | undefined): void {
    const { start } = prototype;
    const delegate = (name: string) => {
        const method = prototype[name] as Method | undefined;
        if (method === undefined) return undefined;
        replace(prototype, name, function (this: Transport, ...args) {
            const carrier = carriers.get(this) as Transport | undefined;
            if (carrier === undefined) return method.apply(this, args);
            // One that came later is not checked here, and nothing passes it.
            const mcp = mcpServerOf(connectionOf(this)!.server);
            if (name === 'handleRequest' && mcp && wantsScopes(mcp)) throw new Error('mcpbolt: a part that wants scopes was added to a server that serves; add it before, or run the program with MCPBOLT=off');
            return carrier[name]?.(...args);
        });
        return prototype[name];
    };
    const send = delegate('send');
    for (const name of ['handleRequest', 'close', 'closeSSEStream', 'closeStandaloneSSEStream']) delegate(name);
    replace(prototype, 'start', async function (this: Transport) {
        // The SDK's own words.
        if (carriers.has(this)) throw new Error('Transport already started');
        const connected = connectionOf(this);
        const reason = known(release) === 'carried' ? `release ${release.version} is carried on stdin and stdout only` : obstacle(this, connected);
        if (reason !== undefined) {
            // The transport within this one is started by it, and says nothing more.
            if (!kept.has(this)) say.kept('http', reason);
            kept.add(webOf(this));
            return start.call(this);
        }
        const why = whyCarried(this, release, connected, send);
        const carrier = carrierOf(this, new (own())(options(this)) as Carrier, connected!);
        if (why === undefined) carrier.accelerate(connected!.server);
        carriers.set(this, carrier);
        await carrier.start();
        if (why !== undefined) return say.carried('http', why);
        const { served } = carrier;
        whenSeen(this, () => {
            leaveToSdk(served!);
            carrier.forgetLists();
        });
        say.served('http', infoOf(protocolOf(connected!.server)!).name ?? '', reportOf(served!));
    });
}

const SCOPES = 'it asks for scopes itself';

/** Whether a part of a server wants scopes, which the SDK's transport checks. */
function wantsScopes(server: SdkMcpServer): boolean {
    const registries = [toolsOf, resourcesOf, templatesOf, promptsOf].map(of => Object.values(of(server)));
    return registries.some(entries => entries.some(({ scopeChallenge }) => scopeChallenge !== undefined));
}

/** Why the engine cannot serve a transport; `undefined` if it can. */
function obstacle(transport: Transport, connected: Connected | undefined): string | undefined {
    const { sessionIdGenerator, isJson, eventStore, checksHosts, challenges } = httpOptionsOf(transport);
    if (sessionIdGenerator === undefined) return 'it has no sessions';
    if (eventStore !== undefined) return 'it keeps events for clients that resume';
    if (isJson) return 'it answers with JSON only';
    if (checksHosts) return 'it checks hosts and origins itself';
    const mcp = connected && mcpServerOf(connected.server);
    if (challenges && (mcp === undefined || wantsScopes(mcp))) return SCOPES;
    if (connected === undefined) return 'the program reads the messages itself';
    const protocol = protocolOf(connected.server);
    return protocol && limitsVersions(protocol) ? VERSIONS : undefined;
}

function options(transport: Transport): StreamableHTTPServerTransportOptions {
    const { sessionIdGenerator, onsessioninitialized, onsessionclosed, retryInterval, keepAliveMs, maxRequestBodySize } = httpOptionsOf(transport);
    return {
        sessionIdGenerator,
        // A program without checks of its own has none, or has them in front of this.
        allowedOrigins: ['*'],
        onsessioninitialized: id => {
            setSessionId(transport, id);
            return onsessioninitialized?.(id);
        },
        ...(onsessionclosed && { onsessionclosed }),
        ...(retryInterval !== undefined && { retryInterval }),
        ...(keepAliveMs !== undefined && { keepAliveMs }),
        ...(maxRequestBodySize !== undefined && { maxRequestBodySize })
    };
}

/** Has one transport do what another one is asked to. */
function carrierOf(transport: Transport, carrier: Carrier, { server }: Connected): Carrier {
    if (generationOf(protocolOf(server)) === 2) carrier.setSupportedProtocolVersions([]);
    carrier.onmessage = (message, extra) => transport.onmessage?.(message, extra);
    carrier.onerror = error => transport.onerror?.(error);
    carrier.onclose = () => transport.onclose?.();
    return carrier;
}
