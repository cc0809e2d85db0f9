import { settingsJson } from './numbers';
import type { Trace } from './protocol';

/** Options of a server on HTTP, whether mounted or at an address. */
export interface EndpointOptions {
    /**
     * Host names, without port, that requests may be addressed to. Any other `Host` is refused, which stops DNS
     * rebinding. `localhost`, `127.0.0.1` and `[::1]` by default; `*` allows any. The name in the served address is
     * always allowed.
     */
    hosts?: readonly string[];
    /**
     * Origins whose pages may send requests, in full: `https://example.com`, or `http://localhost:*` for any port; `*`
     * allows any. By default the origins of this machine, on any port. A page of the server's own origin is always
     * allowed; where `hosts` is `*`, only if its origin is `https`, an address or `localhost`. Every request of any
     * other page is refused with 403.
     */
    origins?: readonly string[];
    /** Lets pages of the allowed origins read the answers (CORS). Off by default: they can only send requests. */
    cors?: boolean;
    /** Maximum size of one message in bytes; 16 MiB by default. */
    maxMessageBytes?: number;
    /** Maximum nesting depth of a message's arrays and objects. */
    maxDepth?: number;
    /** Maximum number of requests that one client may have in flight; further ones are refused as overload. */
    maxIncoming?: number;
    /** Silence after which a client is pinged, in ms. */
    keepaliveInterval?: number;
    /** Time without traffic or requests in flight after which a connection is closed, in ms. */
    idleTimeout?: number;
    /** Also serves clients of 2024-11-05 (HTTP with SSE), which open a stream at the same path first; on by default. */
    sse?: boolean;
    /**
     * Addresses and networks (`10.0.0.0/8`) of proxies whose `Forwarded` or `X-Forwarded-For` header is trusted. A
     * request from such a proxy counts for the last forwarded address that is not a trusted proxy. None by default:
     * each request counts for the address that it comes from.
     */
    trustedProxies?: readonly string[];
    /**
     * Maximum number of sessions of revisions before 2026-07-28; 10,000 by default. When there is no room, the oldest
     * session without a finished handshake ends; otherwise the least recently used session of the client that has most.
     */
    maxSessions?: number;
    /**
     * Maximum number of sessions of one client, identified by its principal or else by its address; three quarters of
     * `maxSessions` by default.
     */
    maxSessionsPerPeer?: number;
    /** How long an unused session is kept, in ms; half an hour by default. */
    sessionTtl?: number;
    /**
     * How long an action continues after its stream broke off, so that the client can resume it, in ms; 30 s by
     * default. At 0 the action ends with its connection.
     */
    actionTtl?: number;
    /** Bytes of messages that a session keeps for a client that resumes its stream; 256 KiB by default. */
    replayBytes?: number;
    /** Silence on an event stream after which a comment keeps it open, in ms; 15 s by default. */
    commentInterval?: number;
    /** How long calls in flight may still take when the server shuts down, in ms; 5000 by default. */
    grace?: number;
    /**
     * A Redis or Valkey by which processes of one server accept each other's sessions, also after a restart, go on with each other's
     * streams, know each other's tasks, and count the rates and quotas of a `policy` together. For addresses of HTTP alone. All have the same `url`, such as
     * `redis://:PASSWORD@HOST:6379/0` (`rediss:` for TLS, `redis+unix:///PATH`, `redis+cluster://HOST:6379,HOST:6379` for some nodes of a
     * cluster), `prefix` and keys.
     * `keys` is the path of a file, which other users must not be able to read: a key of 64 hexadecimal digits on each line, of which the
     * first names, the second seals, and further ones open. The `prefix` of all names, `mcpbolt:` by default, tells servers apart that share no
     * sessions. `ca` is the path of a file of certificate authorities in PEM that are trusted in place of the system's.
     *
     * While the store cannot be reached, sessions go on, and each process counts rates and quotas by itself. Requests with DPoP proofs, ending
     * a session, and resuming a stream at another process are answered with status 503, and questions for tasks of other processes as by an
     * overloaded server.
     */
    store?: { url: string; keys: string; prefix?: string; ca?: string };
    /** Called with each message. */
    trace?: Trace;
}

/** Options of a server at an address. Options that do not apply to its transport are ignored, but `store` is an error there. */
export interface ServeOptions extends EndpointOptions {
    /**
     * Paths of PEM files, for `https:` and `wss:`: the certificate with its chain, and its key. `clients` is a file of
     * CA certificates: each client must then present a certificate signed by one of them (mutual TLS).
     */
    tls?: { certificate: string; key: string; clients?: string };
    /** Lets clients upgrade to WebSocket at the same path; on by default. */
    websocket?: boolean;
    /**
     * Silence on a WebSocket after which the client is pinged, in ms; 20 s by default. A client that stays silent for
     * as long again is considered dead. On `tcp:` and `unix:` the client gets a `ping` request, if its revision has
     * one; on HTTP/2, a ping frame.
     */
    heartbeat?: number;
    /**
     * Serves clients without credentials beyond this machine. Otherwise a server whose policy checks no credentials and
     * that has no `tls.clients` may listen on loopback addresses only; any other address is an error.
     */
    anonymous?: boolean;
    /** Number of engine threads that drive sockets; one by default. */
    threads?: number;
    /**
     * Maximum number of connections; 65,536 by default. A further one replaces the oldest that has not finished its
     * handshake; if there is none, it is closed at once.
     */
    maxConnections?: number;
    /**
     * Maximum number of connections from one address (IPv6: one /64 network); three quarters of `maxConnections` by
     * default. Clients on Unix sockets and trusted proxies are exempt.
     */
    maxConnectionsPerPeer?: number;
    /** How long a client may take to send the headers of a request, in ms; 30 s by default. */
    headerTimeout?: number;
    /** Shuts the server down gracefully when it aborts, as `close` does. */
    signal?: AbortSignal;
    /** Handle SIGTERM, SIGINT and SIGHUP while the server runs; by default if nothing else listens for them. */
    signals?: boolean;
}

/** @internal The engine's part of the options, as JSON. */
export function endpointOf({ signal, signals, ...rest }: ServeOptions): string {
    return settingsJson(rest);
}
