import type { Bridge } from './bridge';
import type { Served } from './delegated';
import { Fast } from './fast';
import { generationOf } from './private';
import type { Proof } from './proof';
import type { SdkMcpServer } from './shapes';

/** @internal How an `McpServer` is served: what the engine calls itself, unless its release is unfit for that. */
export function servedBy(bridge: Bridge, mcp: SdkMcpServer, proof: Proof): Served {
    if (proof.unfit !== undefined) return { bridge, mcp, proof };
    return { bridge, mcp, proof, fast: new Fast(mcp, generationOf(mcp.server), proof) };
}
