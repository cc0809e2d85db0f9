import { McpError } from './errors';
import { OAuth } from './login';
import { settingsJson } from './numbers';
import type { ClientOptionsOf } from './options';

/** Static credentials, sent in `Authorization` or, for an API key, in a header of its own. */
export type Auth =
    | { type: 'bearer'; token: string }
    | { type: 'basic'; user: string; password: string }
    /** `X-API-Key` by default. */
    | { type: 'apiKey'; key: string; header?: string };

/** Options of a connection to an address. Options that do not apply to its transport are ignored. */
export interface ConnectOptionsOf<Client> extends ClientOptionsOf<Client> {
    /** Additional headers of every request, for HTTP and WebSocket; never sent to another origin. */
    headers?: Readonly<Record<string, string>>;
    /** Credentials for HTTP and WebSocket, or a login for HTTP; never sent to another origin. */
    auth?: Auth | OAuth;
    /** The subprotocols that a WebSocket offers, preferred first; `mcp` by default. */
    protocols?: readonly string[];
    /** Time limit for the transport to connect, TLS included, in ms; 30 s by default. */
    connectTimeout?: number;
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
    heartbeat?: number;
    /** CA certificates to trust in addition to the system's: PEM, one or several. */
    ca?: string | readonly string[];
    /** The client certificate for a server that asks for one, in PEM; requires `key`. */
    cert?: string;
    /** The private key of `cert`, in PEM. */
    key?: string;
}

/** @internal The engine's part of the options, as JSON. */
export function connectSettings(options: ConnectOptionsOf<any>): string {
    const { headers = {}, auth, protocols, connectTimeout, heartbeat, redirectOrigins, ca = [], cert, key } = options;
    if ((cert === undefined) !== (key === undefined)) throw new McpError('ERR_MCP_MISUSE', 'cert and key belong together');
    return settingsJson({
        ...{ headers: Object.entries(headers), auth: auth instanceof OAuth ? undefined : auth, protocols, connectTimeout, heartbeat, redirectOrigins },
        rootCertificates: [ca].flat().map(text => ({ text })),
        ...(cert !== undefined && { certificate: [{ text: cert }, { text: key }] })
    });
}
