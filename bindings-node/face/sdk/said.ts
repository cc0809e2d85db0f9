import { protocolOf, type Message, type SdkServer, type SdkTransport } from './shapes';

/** @internal What a server says of itself when a client opens. */
export interface Said {
    serverInfo: { name: string; version: string };
    capabilities: object;
    instructions?: string;
}

/**
 * @internal What a server of the SDK would say of itself now. One that does not show it is asked by a client that leaves
 * again.
 */
export async function introductionOf(server: SdkServer): Promise<Said> {
    const protocol = protocolOf(server);
    if (protocol === undefined) return ask(server);
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

async function ask(server: SdkServer): Promise<Said> {
    const clientInfo = { name: 'mcpbolt', version: '0' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    let connected: Promise<unknown>;
    const said = new Promise<Said>((resolve, reject) => {
        const transport: SdkTransport = {
            start: async () => {
                queueMicrotask(() => transport.onmessage?.({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
            },
            send: async ({ id, result, error }: Message) => {
                if (id !== 0) return;
                if (result) resolve(result);
                else reject(new Error(error?.message));
            },
            close: async () => transport.onclose?.()
        };
        connected = server.connect(transport);
        connected.catch(reject);
    });
    const answer = await said;
    closeSession(await connected!);
    return answer;
}
