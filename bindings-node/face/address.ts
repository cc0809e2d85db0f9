import { McpError } from './errors';
import type { NativeCredentials } from './native';
import type { ClientOptions } from './options';

/** Credentials that are known beforehand: each with `Authorization`, or a key in a header of its own. */
export type Auth =
    | { type: 'bearer'; token: string }
    | { type: 'basic'; user: string; password: string }
    /** `X-API-Key` by default. */
    | { type: 'apiKey'; key: string; header?: string };

/** What a client brings to a server at an address; what its carrier has no word for is left out. */
export interface ConnectOptions extends ClientOptions {
    /** Further headers of every request, for HTTP and WebSocket; sent to no other origin. */
    headers?: Readonly<Record<string, string>>;
    /** For HTTP and WebSocket; sent to no other origin. */
    auth?: Auth;
    /** The subprotocols that a WebSocket offers, the best first; `mcp` by default. */
    protocols?: readonly string[];
    /** How long it may take until the carrier is there, TLS included, in ms; 30 s by default. */
    connectMs?: number;
    /** Silence on a WebSocket after which the server is pinged, and as long again taken for dead, in ms; 20 s by default. */
    heartbeatMs?: number;
    /** Certificates that are trusted beside those of the system: PEM, one or several. */
    ca?: string | readonly string[];
    /** What is shown to a server that asks for a certificate, in PEM; with `key`. */
    cert?: string;
    /** The private key of `cert`, in PEM. */
    key?: string;
}

/** @internal */
export function credentialsOf(options: ConnectOptions): NativeCredentials {
    const { headers = {}, auth, protocols, connectMs, heartbeatMs, ca = [], cert, key } = options;
    if ((cert === undefined) !== (key === undefined)) throw new McpError('ERR_MCP_MISUSE', 'cert and key belong together');
    return {
        headers: Object.entries(headers).flat(),
        certificates: typeof ca === 'string' ? [ca] : [...ca],
        ...(cert !== undefined && key !== undefined && { certificate: [cert, key] }),
        ...(auth && { auth: words(auth) }),
        ...(protocols && { protocols: [...protocols] }),
        ...(connectMs !== undefined && { connectMs }),
        ...(heartbeatMs !== undefined && { heartbeatMs })
    };
}

function words(auth: Auth): string[] {
    switch (auth.type) {
        case 'bearer':
            return [auth.type, auth.token];
        case 'basic':
            return [auth.type, auth.user, auth.password];
        case 'apiKey':
            return [auth.type, auth.key, ...(auth.header === undefined ? [] : [auth.header])];
        default:
            return [(auth as { type: string }).type, ''];
    }
}
