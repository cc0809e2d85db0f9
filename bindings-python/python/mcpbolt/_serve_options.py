"""How a server on the network is reached."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike


class ServeOptions:
    """Who may reach a server on the network, and its bounds. What is not said is as the engine has it: the
    defaults are those of a server for programs of the same machine.

    Args:
        hosts: The names, without ports, that requests may be addressed to and pages may come from: `Host`
            and `Origin` are held against them, which stops DNS rebinding. `"*"` stands for any. By default
            those of this machine. The name of the address is always one of them.
        origins: Further origins, whole (`"https://example.com"`), whose pages may ask.
        cors: Whether those pages may read the answers, too, and ask with `fetch`; no by default.
        max_message_bytes: The longest message that is taken; 16 MiB by default.
        header_timeout: Seconds that all headers of a request may take.
        stall_timeout: Seconds that the body of a request may take, and that a client may take nothing of what
            waits for it.
        comment_interval: Seconds of silence on a stream of events after which a comment keeps it open.
        sse: Whether clients of 2024-11-05 are served, too, with their two endpoints.
        max_sessions: Sessions at a time (revisions before 2026-07-28); the longest unused gives way.
        session_ttl: Seconds that a session is kept that no client has anything to do with.
        action_ttl: Seconds that an action goes on whose stream broke off, for a client that comes back; 30 by default,
            at 0 it ends with its connection.
        replay_bytes: Bytes of messages that a session keeps for clients that come back for them.
        websocket: Whether clients may go on as WebSockets at an `http:` address.
        heartbeat: Seconds of silence on a WebSocket after which its client is pinged; silent for as long
            again, it is taken for dead.
        tls: Files with the certificate (and those that vouch for it) and its key, in PEM: for `https:` and
            `wss:`.
        tls_clients: A file with the certificates, in PEM, of which one has to vouch for that of each client (mutual
            TLS); by default clients are not asked for any.
        threads: Threads that wait for sockets, of their own; by default one at a time does, which is best until
            one processor is not enough for the traffic.
        max_connections: Connections at a time; further ones wait to be taken.
    """

    __slots__ = (
        "hosts",
        "origins",
        "cors",
        "max_message_bytes",
        "header_timeout",
        "stall_timeout",
        "comment_interval",
        "sse",
        "max_sessions",
        "session_ttl",
        "action_ttl",
        "replay_bytes",
        "websocket",
        "heartbeat",
        "tls",
        "tls_clients",
        "threads",
        "max_connections",
    )

    def __init__(
        self,
        *,
        hosts: Iterable[str] | None = None,
        origins: Iterable[str] | None = None,
        cors: bool | None = None,
        max_message_bytes: int | None = None,
        header_timeout: float | None = None,
        stall_timeout: float | None = None,
        comment_interval: float | None = None,
        sse: bool | None = None,
        max_sessions: int | None = None,
        session_ttl: float | None = None,
        action_ttl: float | None = None,
        replay_bytes: int | None = None,
        websocket: bool | None = None,
        heartbeat: float | None = None,
        tls: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        tls_clients: str | PathLike[str] | None = None,
        threads: int | None = None,
        max_connections: int | None = None,
    ) -> None:
        self.hosts = None if hosts is None else _words(hosts)
        self.origins = None if origins is None else _words(origins)
        self.cors = cors
        self.max_message_bytes = max_message_bytes
        self.header_timeout = header_timeout
        self.stall_timeout = stall_timeout
        self.comment_interval = comment_interval
        self.sse = sse
        self.max_sessions = max_sessions
        self.session_ttl = session_ttl
        self.action_ttl = action_ttl
        self.replay_bytes = replay_bytes
        self.websocket = websocket
        self.heartbeat = heartbeat
        self.tls = tls
        self.tls_clients = tls_clients
        self.threads = threads
        self.max_connections = max_connections


def _words(words: Iterable[str]) -> list[str]:
    if isinstance(words, str):
        raise TypeError(f"a list of names, not one string: [{words!r}]")
    return list(words)
