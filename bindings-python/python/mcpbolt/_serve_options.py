"""`ServeOptions`: who may connect to a server over the network, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from . import _core
from ._content import Wire
from ._options import Options, options


@dataclass(frozen=True, slots=True, repr=False)
class SharedStore(Options):
    """A Redis or Valkey by which processes of one server accept each other's sessions, also after a restart, go on with each other's
    streams, know each other's tasks, and count the rates and quotas of a `Policy` together. All have the same address, prefix and keys.

    While the store cannot be reached, sessions go on, and each process counts rates and quotas by itself. Requests with DPoP proofs,
    ending a session, and resuming a stream at another process are answered with status 503, and questions for tasks of other processes as
    by an overloaded server.

    Args:
        url: Its address: `"redis://:PASSWORD@HOST:6379/0"`, `rediss:` for TLS, `redis+unix:///PATH`, or some nodes of a cluster:
            `"redis+cluster://HOST:6379,HOST:6379"`. `repr` omits it.
        keys: The path of a file that other users must not be able to read: a key of 64 hexadecimal digits on each line, of which
            the first names, the second seals, and further ones open.
        prefix: What all names in the store begin with, `"mcpbolt:"` by default: it tells servers apart that share no sessions.
        ca: The path of a file of certificate authorities in PEM that are trusted in place of the system's.
    """

    url: str
    keys: str | PathLike[str]
    prefix: str | None = None
    ca: str | PathLike[str] | None = None

    def __repr__(self) -> str:
        return f"SharedStore(…, keys={self.keys!r}, prefix={self.prefix!r}, ca={self.ca!r})"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions(Options):
    """The access rules of a server on the network, and its limits. Arguments left out take the engine's
    defaults, which suit a server for programs on the same machine.

    Args:
        hosts: The host names, without ports, that requests may be addressed to. The `Host` header is checked against
            them, which stops DNS rebinding. `"*"` allows any. By default the names of this machine. The name in the
            address that is served is always allowed.
        origins: The full origins whose web pages may send requests: `"https://example.com"`, or
            `"http://localhost:*"` for any port. `"*"` allows any origin. By default the origins of this machine, on
            any port. Pages of the server's own origin are always allowed; if `hosts` is `"*"`, only when that origin
            is `https`, an IP address or `localhost`. Every request of any other page is refused with 403.
        anonymous: Whether unauthenticated clients on other machines are served. Without it, a server whose policy
            checks no credentials, and that has no `tls_clients`, listens only on loopback addresses: `run` raises a
            `PermissionError` for any other. It does not apply to an ASGI application, which has no address.
        cors: Whether pages of the allowed origins may also read the answers, and use `fetch`; off by default.
        max_message_bytes: The longest message that is accepted; 16 MiB by default.
        header_timeout: Seconds within which all headers of a request must arrive.
        stall_timeout: Seconds within which the body of a request must arrive, and for which a client may read
            nothing of the data that waits for it.
        comment_interval: Seconds of silence on an event stream after which a comment is sent to keep it open.
        sse: Whether clients of 2024-11-05 are also served, on their two endpoints.
        trusted_proxies: Addresses and networks (`"10.0.0.0/8"`) of proxies whose `Forwarded` or `X-Forwarded-For`
            header is trusted. A request from one of them counts for the last forwarded address that is not a trusted
            proxy. None by default: each request counts for the address that it comes from.
        max_sessions: Sessions at a time (revisions before 2026-07-28), 10,000 by default. When there is no room, the
            oldest session with an unfinished handshake ends; if there is none, the longest unused session of the
            client that has the most.
        max_sessions_per_peer: Sessions of one client, identified by its principal, otherwise by its address; by default
            three quarters of `max_sessions`.
        session_ttl: Seconds that an unused session is kept.
        action_ttl: Seconds that an action continues after its stream broke off, for a client that comes back; 30 by
            default; with 0 the action ends with its connection.
        replay_bytes: Bytes of messages that a session keeps for clients that resume a stream.
        websocket: Whether clients may upgrade to a WebSocket at an `http:` address.
        heartbeat: Seconds of silence on a WebSocket after which its client is pinged. A client that stays silent for as
            long again is considered dead. On `tcp:` and `unix:` the client gets a `ping` request, if its revision has
            one; on HTTP/2, a ping frame.
        tls: The PEM files of the certificate (with its chain) and of its private key, for `https:` and `wss:`.
        tls_clients: A PEM file of CA certificates, to one of which the certificate of each client must chain
            (mutual TLS); by default clients are not asked for a certificate.
        threads: How many dedicated threads wait for sockets. By default one thread at a time does, which is best
            until one processor is not enough for the traffic.
        max_connections: Connections at a time, 65,536 by default. A further one replaces the oldest that has not
            finished its handshake; if there is none, the new one is closed at once.
        max_connections_per_peer: Connections of one address (IPv6: one /64 network); by default three quarters of
            `max_connections`. Unix sockets and trusted proxies are exempt.
        store: Where processes of this server share its sessions, over HTTP in revisions before 2026-07-28, and the rates, quotas and
            proofs of its policy; by default each has its own.
    """

    hosts: Sequence[str] | None = None
    origins: Sequence[str] | None = None
    anonymous: bool | None = None
    cors: bool | None = None
    max_message_bytes: int | None = None
    header_timeout: float | None = None
    stall_timeout: float | None = None
    comment_interval: float | None = None
    sse: bool | None = None
    trusted_proxies: Sequence[str] | None = None
    max_sessions: int | None = None
    max_sessions_per_peer: int | None = None
    session_ttl: float | None = None
    action_ttl: float | None = None
    replay_bytes: int | None = None
    websocket: bool | None = None
    heartbeat: float | None = None
    tls: tuple[str | PathLike[str], str | PathLike[str]] | None = None
    tls_clients: str | PathLike[str] | None = None
    threads: int | None = None
    max_connections: int | None = None
    max_connections_per_peer: int | None = None
    store: SharedStore | None = None

    def __post_init__(self) -> None:
        for names in (self.hosts, self.origins, self.trusted_proxies):
            if isinstance(names, str):
                raise TypeError(f"a list of names, not one string: [{names!r}]")

    def wire(self) -> Wire:
        fields = self._fields()
        clients = fields.pop("tls_clients")
        if self.tls is not None:
            certificate, key = self.tls
            fields["tls"] = options(certificate=certificate, key=key, clients=clients)
        return options(**fields)


def check_on_stdio(options: ServeOptions | None) -> None:
    """Refuses options that have no meaning on stdin and stdout, and would be missed."""
    if options is not None:
        _core.check_options("stdio:", _core.to_json(options.wire()))


def serve_options(options: ServeOptions | None, grace: float) -> str:
    """Options of a server on the network, as the engine reads them."""
    return _core.to_json({**(options.wire() if options else {}), "grace": grace})
