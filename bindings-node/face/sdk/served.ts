import type { Bridge } from './bridge';
import type { Served } from './delegated';
import { Direct } from './direct';
import { Fast } from './fast';
import { generationOf } from './private';
import { Noted, type Proof } from './proof';
import { mcpServerOf, protocolOf, type SdkMcpServer, type SdkServer } from './shapes';

/** @internal How an `McpServer` is served: what the engine calls itself, unless its release is unfit for that. */
export function servedBy(bridge: Bridge, mcp: SdkMcpServer, proof: Proof): Served {
    if (proof.unfit !== undefined) return { bridge, mcp, proof };
    return { bridge, mcp, proof, fast: new Fast(mcp, generationOf(mcp.server), proof) };
}

/** @internal How a server is served whose handlers are known since it was made. */
export function servedSince(bridge: Bridge, server: SdkServer): Served {
    const mcp = mcpServerOf(server);
    return mcp ? servedBy(bridge, mcp, new Noted(mcp)) : { bridge, direct: new Direct(protocolOf(server)!) };
}

/** @internal Leaves every request to the SDK, since the program looks at each message. */
export function leaveToSdk({ proof, direct }: Served): void {
    if (proof instanceof Noted) proof.isSeen = true;
    if (direct) direct.isSeen = true;
}
