/** `serveStdio` of the second generation of the SDK, on the engine. */
import { Bridge } from '../sdk/bridge';
import { Delegated, type Served, type Sides } from '../sdk/delegated';
import { MODERN } from '../sdk/entry';
import { infoOf, limitsVersions } from '../sdk/private';
import { Noted, ownOpening } from '../sdk/proof';
import { NO_REGISTRY, reportOf } from '../sdk/report';
import { introductionOf } from '../sdk/said';
import { servedBy } from '../sdk/served';
import { mcpServerOf, type SdkServer } from '../sdk/shapes';
import * as say from './say';
import { untilGivenBack, whyNotStdio } from './stdin';
import { hold, isUntouched, take } from './stdio';
import { VERSIONS, type Transport } from './taken';

type Era = 'modern' | 'legacy';
type Factory = (context: { era: Era }) => SdkServer | Promise<SdkServer>;

interface Options {
    legacy?: 'serve' | 'reject';
    onerror?: (error: Error) => void;
    /** The transport to use instead of a new one on stdin and stdout. */
    transport?: Transport;
    maxSubscriptions?: number;
}

interface Handle {
    close(): Promise<void>;
}

/** @internal */
export type ServeStdio = (factory: Factory, options?: Options) => Handle;

/** @internal Has the engine do the work of that function, which calls its factory for each era at once. */
export function served(original: ServeStdio): ServeStdio {
    return function serveStdio(factory, options = {}) {
        const { transport, maxSubscriptions } = options;
        // A transport of the program's own is served by the SDK.
        if (whyNotStdio() !== undefined || (transport !== undefined && !isUntouched(transport))) return original(factory, options);
        if (maxSubscriptions !== undefined) {
            say.carried('stdio', 'it limits subscriptions itself');
            return original(factory, options);
        }
        const begun = serve(factory, options).catch(error => {
            // Its own function meets the same error, or reads the messages itself.
            say.carried('stdio', error instanceof Unfit ? error.message : error instanceof Error ? `it cannot be served: ${error.message}` : 'its factory failed');
            return original(factory, options);
        });
        return { close: async () => (await begun).close() };
    };
}

/** The engine cannot serve what a factory made. */
class Unfit extends Error {}

async function serve(factory: Factory, { legacy, onerror, transport }: Options): Promise<Handle> {
    await untilGivenBack();
    const made: SdkServer[] = [];
    try {
        const sideOf = async (era: Era, revision?: string) => {
            const server = await factory({ era });
            made.push(server);
            return sided(server, revision);
        };
        const alone = await sideOf('modern', MODERN);
        const handshake = legacy === 'reject' ? undefined : await sideOf('legacy');
        const sides: Sides = { alone, ...(handshake && { handshake }) };
        const reason = whyNotStdio();
        if (reason !== undefined) throw new Unfit(reason);
        const shown = handshake ?? alone;
        const protocol = shown.mcp!.server;
        const delegated = new Delegated(introductionOf(protocol), sides);
        for (const { bridge } of Object.values(sides) as Served[]) bridge.onerror = error => onerror?.(error);
        const held = await hold(delegated, 2, error => onerror?.(error));
        const handle = { close: () => held.close() };
        if (transport) {
            take(transport, { ...handle, send: (message, options) => shown.bridge.send(message, options) });
            void held.closed.then(() => transport.onclose?.());
        }
        say.served('stdio', infoOf(protocol).name ?? '', reportOf(shown));
        return handle;
    } catch (error) {
        // The SDK's function makes its own.
        for (const server of made) (server as { close?(): Promise<void> }).close?.().catch(() => {});
        throw error;
    }
}

function sided(server: SdkServer, revision?: string): Served {
    const mcp = mcpServerOf(server);
    if (mcp === undefined) throw new Unfit(NO_REGISTRY);
    const method = ownOpening(mcp.server);
    if (method !== undefined) throw new Unfit(`${method} has a handler of the program's own`);
    if (limitsVersions(mcp.server)) throw new Unfit(VERSIONS);
    return servedBy(new Bridge({ server, ...(revision !== undefined && { revision }) }), mcp, new Noted(mcp));
}
