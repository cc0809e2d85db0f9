"""What a client brings to a server on the network."""

from __future__ import annotations

from collections.abc import Mapping
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


class Credentials:
    """All of it, as the engine reads it."""

    __slots__ = ("headers", "auth", "connect_timeout", "root_certificates")

    def __init__(
        self,
        headers: Mapping[str, str],
        auth: Bearer | Basic | ApiKey | None,
        connect_timeout: float | None,
        root_certificates: str | PathLike[str] | None,
    ) -> None:
        self.headers = list(headers.items())
        self.auth = auth and auth.wire
        self.connect_timeout = connect_timeout
        self.root_certificates = root_certificates
