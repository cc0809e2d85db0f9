import { McpError } from './errors';
import type { NativeCredentials } from './native';
import type { ClientOptions } from './options';

/** Static credentials, sent in `Authorization` or, for an API key, in a header of its own. */
export type Auth =
    | { type: 'bearer'; token: string }
    | { type: 'basic'; user: string; password: string }
    /** `X-API-Key` by default. */
    | { type: 'apiKey'; key: string; header?: string };

/** Options of a connection to an address. Options that do not apply to its transport are ignored. */
export interface ConnectOptions extends ClientOptions {
    /** Additional headers of every request, for HTTP and WebSocket; never sent to another origin. */
    headers?: Readonly<Record<string, string>>;
    /** Credentials for HTTP and WebSocket; never sent to another origin. */
    auth?: Auth;
    /** The subprotocols that a WebSocket offers, preferred first; `mcp` by default. */
    protocols?: readonly string[];
    /** Time limit for the transport to connect, TLS included, in ms; 30 s by default. */
    connectMs?: number;
    /**
     * Origins, such as `https://mcp.example.com`, to which a message may be redirected. By default messages are sent to
     * the origin of the address only: a redirect to any other origin fails the call. Credentials, headers and the
     * certificate are never sent to another origin.
     */
    redirectOrigins?: readonly string[];
    /**
     * Silence on a WebSocket after which the server is pinged, in ms; 20 s by default. After as long again without an
     * answer it is considered dead.
     */
    heartbeatMs?: number;
    /** CA certificates to trust in addition to the system's: PEM, one or several. */
    ca?: string | readonly string[];
    /** The client certificate for a server that asks for one, in PEM; requires `key`. */
    cert?: string;
    /** The private key of `cert`, in PEM. */
    key?: string;
}

/** @internal */
export function credentialsOf(options: ConnectOptions): NativeCredentials {
    const { headers = {}, auth, protocols, connectMs, heartbeatMs, redirectOrigins, ca = [], cert, key } = options;
    if ((cert === undefined) !== (key === undefined)) throw new McpError('ERR_MCP_MISUSE', 'cert and key belong together');
    return {
        headers: Object.entries(headers).flat(),
        certificates: typeof ca === 'string' ? [ca] : [...ca],
        ...(cert !== undefined && key !== undefined && { certificate: [cert, key] }),
        ...(auth && { auth: words(auth) }),
        ...(protocols && { protocols: [...protocols] }),
        ...(connectMs !== undefined && { connectMs }),
        ...(redirectOrigins && { redirectOrigins: [...redirectOrigins] }),
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
