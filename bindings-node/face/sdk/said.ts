import type { SdkProtocol } from './shapes';

/** @internal What a server says of itself when a client opens. */
export interface Said {
    serverInfo: { name: string; version: string };
    capabilities: object;
    instructions?: string;
}

/** @internal Of one that says it itself. */
export const UNSAID: Said = { serverInfo: { name: 'mcpbolt', version: '0' }, capabilities: {} };

/** @internal What a server of the SDK would say of itself now; one that does not show it says it itself. */
export function introductionOf(protocol: SdkProtocol | undefined): Said {
    if (protocol === undefined) return UNSAID;
    const { _serverInfo, _instructions: instructions } = protocol;
    const { name = '', version = '', ...more } = _serverInfo ?? {};
    const capabilities = protocol.getCapabilities?.() ?? protocol._capabilities ?? {};
    return { serverInfo: { name, version, ...more }, capabilities, ...(instructions && { instructions }) };
}

/** @internal Ends a session, where `connect` gave one: it would keep the process alive. */
export function closeSession(session: unknown): void {
    const { close } = (session ?? {}) as { close?: () => Promise<void> };
    if (typeof close === 'function') close.call(session).catch(() => {});
}
