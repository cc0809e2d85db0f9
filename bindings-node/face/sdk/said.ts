import { capabilitiesOf, infoOf, instructionsOf } from './private';
import type { SdkProtocol } from './shapes';

/** @internal How a server introduces itself when a client opens a connection. */
export interface Said {
    serverInfo: { name: string; version: string };
    capabilities: object;
    instructions?: string;
}

/** @internal For servers that introduce themselves. */
export const UNSAID: Said = { serverInfo: { name: 'mcpbolt', version: '0' }, capabilities: {} };

/** @internal The SDK server's current introduction; `UNSAID` if it does not expose one, and introduces itself. */
export function introductionOf(protocol: SdkProtocol | undefined): Said {
    if (protocol === undefined) return UNSAID;
    const { name = '', version = '', ...more } = infoOf(protocol);
    const instructions = instructionsOf(protocol);
    return { serverInfo: { name, version, ...more }, capabilities: capabilitiesOf(protocol), ...(instructions && { instructions }) };
}

/** @internal Closes a session that `connect` returned: it would keep the process alive. */
export function closeSession(session: unknown): void {
    const { close } = (session ?? {}) as { close?: () => Promise<void> };
    if (typeof close === 'function') close.call(session).catch(() => {});
}
