"""Credentials and transport options of a client of a server on the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike


class Bearer:
    """A bearer token: `Authorization: Bearer …`."""

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
    """Transport options of a client, beside its credentials. Arguments left out take the engine's defaults, which
    suit servers on this machine and across a network. Times are in seconds.

    Args:
        proxy: The URL of an HTTP proxy; `""` for none. By default the proxy named by the environment:
            `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`.
        read_timeout: How long a server may be silent in the middle of an answer over HTTP; unlimited by
            default, since an event stream may well be silent.
        idle_timeout: How long an unused connection is kept; 4 by default, which is less than servers keep it.
        max_redirects: How many redirects of one request are followed; 5 by default.
        redirect_origins: The origins, such as `https://mcp.example.com`, to which a message may be redirected. A
            redirect to an origin other than these and the URL's own fails the call. Credentials, headers and the
            client certificate are never sent to another origin.
        http2_prior_knowledge: Uses HTTP/2 without TLS, for servers that are known to speak it.
        max_concurrent: Requests in flight at a time; further ones wait their turn. 128 by default.
        resume: How a broken stream is resumed if the server does not say so: first delay, longest delay, and number
            of attempts; `(0.5, 30, 10)` by default.
        standing_stream: Whether a GET stream is opened for messages that belong to no request, on servers of revisions
            before 2026-07-28; on by default.
        heartbeat: Silence on a WebSocket after which the server is pinged; if it stays silent for as long again, it is
            considered dead. 20 by default.
        protocols: The subprotocols that a WebSocket offers, in order of preference.
    """

    __slots__ = (
        "proxy",
        "read_timeout",
        "idle_timeout",
        "max_redirects",
        "redirect_origins",
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
        redirect_origins: Iterable[str] | None = None,
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
        self.redirect_origins = None if redirect_origins is None else list(redirect_origins)
        self.http2_prior_knowledge = http2_prior_knowledge
        self.max_concurrent = max_concurrent
        self.resume = resume
        self.standing_stream = standing_stream
        self.heartbeat = heartbeat
        self.protocols = None if protocols is None else list(protocols)


class Credentials:
    """Credentials and transport options of a client, as the engine reads them."""

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
