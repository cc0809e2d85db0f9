"""Credentials and transport options of a client of a server on the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ._content import Wire
from ._oauth import OAuth
from ._options import Options, options


class Bearer:
    """A bearer token: `Authorization: Bearer …`."""

    __slots__ = ("wire",)

    def __init__(self, token: str) -> None:
        self.wire = {"type": "bearer", "token": token}

    def __repr__(self) -> str:
        return "Bearer(…)"


class Basic:
    """A name and a password: `Authorization: Basic …`."""

    __slots__ = ("wire",)

    def __init__(self, user: str, password: str) -> None:
        self.wire = {"type": "basic", "user": user, "password": password}

    def __repr__(self) -> str:
        return f"Basic({self.wire['user']!r}, …)"


class ApiKey:
    """A key in a header of its own."""

    __slots__ = ("wire",)

    def __init__(self, key: str, header: str = "X-API-Key") -> None:
        self.wire = {"type": "apiKey", "header": header, "key": key}

    def __repr__(self) -> str:
        return f"ApiKey(…, {self.wire['header']!r})"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectOptions(Options):
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
        max_concurrent: Requests in flight at a time; further ones wait their turn. 128 by default, 8,192 for
            an `External`.
        resume: How a broken stream is resumed if the server does not say so: first delay, longest delay, and number
            of attempts; `(0.5, 30, 10)` by default.
        standing_stream: Whether a GET stream is opened for messages that belong to no request, on servers of revisions
            before 2026-07-28; on by default.
        heartbeat: Silence on a WebSocket after which the server is pinged; if it stays silent for as long again, it is
            considered dead. 20 by default.
        protocols: The subprotocols that a WebSocket offers, in order of preference.
    """

    proxy: str | None = None
    read_timeout: float | None = None
    idle_timeout: float | None = None
    max_redirects: int | None = None
    redirect_origins: Sequence[str] | None = None
    http2_prior_knowledge: bool | None = None
    max_concurrent: int | None = None
    resume: tuple[float, float, int] | None = None
    standing_stream: bool | None = None
    heartbeat: float | None = None
    protocols: Sequence[str] | None = None

    def wire(self) -> Wire:
        fields = self._fields()
        if self.resume is not None:
            fields["resume"] = dict(zip(("first", "longest", "attempts"), self.resume))
        return options(**fields)


def connect_options(
    headers: Mapping[str, str],
    auth: Bearer | Basic | ApiKey | OAuth | None,
    connect_timeout: float | None,
    root_certificates: str | PathLike[str] | None,
    certificate: tuple[str | PathLike[str], str | PathLike[str]] | None,
    more: ConnectOptions | None,
) -> Wire:
    """Credentials and transport options of a client, as the engine reads them."""

    def pem(*paths: str | PathLike[str]) -> list[Any]:
        return [{"file": path} for path in paths]

    return options(
        headers=list(headers.items()),
        auth=None if auth is None or isinstance(auth, OAuth) else auth.wire,
        connect_timeout=connect_timeout,
        root_certificates=root_certificates and pem(root_certificates),
        certificate=certificate and pem(*certificate),
    ) | (more.wire() if more else {})
