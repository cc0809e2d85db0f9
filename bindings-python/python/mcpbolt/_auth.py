"""What a client brings to a server on the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike


class Bearer:
    """A token: `Authorization: Bearer …`."""

    __slots__ = ("wire",)

    def __init__(self, token: str) -> None:
        self.wire = ("bearer", token, "")

    def __repr__(self) -> str:
        return "Bearer(…)"


class Basic:
    """A name and a password: `Authorization: Basic …`."""

    __slots__ = ("wire",)

    def __init__(self, user: str, password: str) -> None:
        self.wire = ("basic", user, password)

    def __repr__(self) -> str:
        return f"Basic({self.wire[1]!r}, …)"


class ApiKey:
    """A key in a header of its own."""

    __slots__ = ("wire",)

    def __init__(self, key: str, header: str = "X-API-Key") -> None:
        self.wire = ("api-key", header, key)

    def __repr__(self) -> str:
        return f"ApiKey(…, {self.wire[1]!r})"


class ConnectOptions:
    """How a client goes about its carrier, beyond who it is. What is not said is as the engine has it: the
    defaults suit servers of this machine and across a network. Times are in seconds.

    Args:
        proxy: The URL of who passes requests of HTTP on; `""` for nobody. By default whom the environment names:
            `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.
        read_timeout: How long a server may say nothing at all in the middle of an answer over HTTP; for ever by
            default, since a stream of events may well be silent.
        idle_timeout: How long a connection is kept that nothing uses; 4 by default, less than servers do.
        max_redirects: How many redirects of one request are followed; 5 by default.
        http2_prior_knowledge: HTTP/2 without TLS, for servers that are known to speak it.
        max_concurrent: Requests under way at a time; further ones wait their turn. 128 by default.
        resume: How soon a stream that broke off is asked for again, how long that grows to be, and how often, where
            the server does not say so: `(0.5, 30, 10)` by default.
        standing_stream: Whether servers of revisions before 2026-07-28 are asked for a stream of what belongs to
            no request; they are by default.
        heartbeat: Silence on a WebSocket after which the server is pinged; silent for as long again, it is taken
            for dead. 20 by default.
        protocols: The subprotocols that a WebSocket offers, the best first.
    """

    __slots__ = (
        "proxy",
        "read_timeout",
        "idle_timeout",
        "max_redirects",
        "http2_prior_knowledge",
        "max_concurrent",
        "resume",
        "standing_stream",
        "heartbeat",
        "protocols",
    )

    def __init__(
        self,
        *,
        proxy: str | None = None,
        read_timeout: float | None = None,
        idle_timeout: float | None = None,
        max_redirects: int | None = None,
        http2_prior_knowledge: bool | None = None,
        max_concurrent: int | None = None,
        resume: tuple[float, float, int] | None = None,
        standing_stream: bool | None = None,
        heartbeat: float | None = None,
        protocols: Iterable[str] | None = None,
    ) -> None:
        self.proxy = proxy
        self.read_timeout = read_timeout
        self.idle_timeout = idle_timeout
        self.max_redirects = max_redirects
        self.http2_prior_knowledge = http2_prior_knowledge
        self.max_concurrent = max_concurrent
        self.resume = resume
        self.standing_stream = standing_stream
        self.heartbeat = heartbeat
        self.protocols = None if protocols is None else list(protocols)


class Credentials:
    """All of it, as the engine reads it."""

    __slots__ = ("headers", "auth", "connect_timeout", "root_certificates", "certificate", "options")

    def __init__(
        self,
        headers: Mapping[str, str],
        auth: Bearer | Basic | ApiKey | None,
        connect_timeout: float | None,
        root_certificates: str | PathLike[str] | None,
        certificate: tuple[str | PathLike[str], str | PathLike[str]] | None,
        options: ConnectOptions | None,
    ) -> None:
        self.headers = list(headers.items())
        self.auth = auth and auth.wire
        self.connect_timeout = connect_timeout
        self.root_certificates = root_certificates
        self.certificate = certificate
        self.options = options
