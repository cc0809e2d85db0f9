import type { Trace } from './protocol';
/** Bounds of each connection; what is not said has a default that suits servers on a network. */
export interface ConnectionLimits {
    /** Most bytes of one message; 16 MiB by default. */
    messageBytes?: number;
    /** How deep its arrays and objects may be nested. */
    depth?: number;
    /** Most requests of one client in flight; further ones are refused as overload. */
    inFlight?: number;
    /** Silence after which a client is asked for a sign of life, in ms. */
    keepaliveMs?: number;
    /** Silence after which its connection ends, in ms. */
    idleMs?: number;
}
/** How a server is reached by HTTP, of whatever it is a part. */
export interface EndpointOptions {
    /**
     * The names, without port, that requests may be addressed to, and that pages may come from: what another name says
     * in `Host` or `Origin` is refused, which stops DNS rebinding. `localhost`, `127.0.0.1` and `[::1]` by default; `*`
     * stands for any. The name in the address that is served comes to them by itself.
     */
    hosts?: readonly string[];
    /** Further origins, whole (`https://example.com`), whose pages may ask. */
    origins?: readonly string[];
    /**
     * Whether browsers let these pages, and those of `hosts`, read the answers (CORS); without it they may only ask,
     * which is the default.
     */
    cors?: boolean;
    limits?: ConnectionLimits;
    /** Whether clients of 2024-11-05 are served, too, who open a stream at the same path first; they are by default. */
    sse?: boolean;
    /** Sessions of revisions before 2026-07-28 at a time; the longest unused gives way. 10,000 by default. */
    maxSessions?: number;
    /** How long a session is kept that its client does not use, in ms; half an hour by default. */
    sessionTtlMs?: number;
    /**
     * How long an action goes on whose stream broke off, for a client that comes back for the rest, in ms; 30 s by
     * default. At 0 it ends with its connection.
     */
    actionTtlMs?: number;
    /** Bytes of messages that a session keeps for a client that comes back for them; 256 KiB by default. */
    replayBytes?: number;
    /** Silence on a stream of events after which a comment keeps it open, in ms; 15 s by default. */
    commentMs?: number;
    /** How long what is in flight may still take when the server ends, in ms; 5000 by default. */
    graceMs?: number;
    /** Shown each message. */
    trace?: Trace;
}
/** How a server is served on an address; what its carrier has no word for is left out. */
export interface ServeOptions extends EndpointOptions {
    /**
     * Files in PEM, for `https:` and `wss:`: the certificate with those that vouch for it, and its key; with `clients`
     * also the certificates of which one has to vouch for that of each client (mutual TLS).
     */
    tls?: {
        certificate: string;
        key: string;
        clients?: string;
    };
    /** Whether clients may go on as WebSockets at the same path; they may by default. */
    websocket?: boolean;
    /** Silence on a WebSocket after which the client is pinged, and as long again taken for dead, in ms; 20 s by default. */
    heartbeatMs?: number;
    /** Threads of the engine's that drive sockets; one by default. */
    threads?: number;
    /** Connections at a time; further ones wait to be taken. 65,536 by default. */
    maxConnections?: number;
    /** How long the headers of a request may take, in ms; 30 s by default. */
    headerMs?: number;
    /** Ends the server in good order when it aborts, as `close` does. */
    signal?: AbortSignal;
    /** Take SIGTERM, SIGINT and SIGHUP while the server runs; by default when nobody listens for them. */
    signals?: boolean;
}
