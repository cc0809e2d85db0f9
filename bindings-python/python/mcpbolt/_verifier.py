"""`Policy(verifier=…)`: a function of the program that says who a client is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, cast

from ._signature import is_coroutine_function

CredentialsKind = Literal["none", "bearer", "api_key", "basic", "certificate"]


class Credentials:
    """The credentials of a client, as its request brought them.

    Attributes:
        kind: "bearer", "api_key", "basic" (a name and a password), "certificate" (proven by mutual TLS), or "none".
        secret: The token, the key or the password; empty for the other kinds.
        certificate: The client's certificate (DER); empty for the other kinds.
        user: The name that goes with the password.
    """

    __slots__ = ("kind", "secret", "certificate", "user")

    def __init__(self, kind: CredentialsKind, secret: str = "", certificate: bytes = b"", user: str = "") -> None:
        self.kind = kind
        self.secret = secret
        self.certificate = certificate
        self.user = user

    def __repr__(self) -> str:
        return f"Credentials({self.kind!r}, …)"


@dataclass(frozen=True)
class Principal:
    """A verified client.

    Args:
        name: Identifies the client: `context.principal`. A name that begins like those of other kinds, such as `key:`, gets
            `name:` before it.
        scopes: The scopes granted to it.
        expires_at: When its credentials end, in seconds since 1970. Then its requests are refused, also on connections
            that are open.
        bound_key: The thumbprint of the key that its token is bound to (`cnf.jkt`, RFC 9449). A `ResourceServer`
            requires a proof of that key with each request.
        bound_certificate: The digest of the certificate that its token is bound to (`cnf.x5t#S256`, RFC 8705). A
            `ResourceServer` requires a connection with that certificate.
    """

    name: str
    scopes: Sequence[str] = ()
    expires_at: int | None = None
    bound_key: str | None = None
    bound_certificate: str | None = None


# A client, its name alone, or `None` to refuse the credentials. An exception says that there is no verdict.
Verdict = Union[Principal, str, None]
Verifier = Callable[[Credentials], Union[Verdict, Awaitable[Verdict]]]
Granted = tuple[str, list[str], Union[int, None], Union[str, None], Union[str, None]]


class Verifying:
    """A verifier as the engine calls it, with a kind, a secret, a certificate and a user: it returns what a `Principal` has,
    or `None` to refuse. What it raises is no verdict."""

    def __init__(self, verify: Verifier) -> None:
        self.is_async = is_coroutine_function(verify)
        self._verify = verify
        self.function = self._awaited if self.is_async else self._called

    def _called(self, kind: CredentialsKind, secret: str, certificate: bytes, user: str = "") -> Granted | None:
        return _checked(self._verify(Credentials(kind, secret, certificate, user)))

    async def _awaited(self, kind: CredentialsKind, secret: str, certificate: bytes, user: str = "") -> Granted | None:
        return _checked(await cast(Awaitable[Verdict], self._verify(Credentials(kind, secret, certificate, user))))


def _checked(verdict: Any) -> Granted | None:
    if verdict is None:
        return None
    if isinstance(verdict, str):
        verdict = Principal(verdict)
    if not isinstance(verdict, Principal):
        raise TypeError(
            f"the verifier returned a value of type {type(verdict).__name__}; return a Principal, its name, or None to refuse"
        )
    if not verdict.name:
        raise ValueError("the verifier returned an empty name; return None to refuse the credentials")
    if isinstance(verdict.scopes, str):
        raise TypeError("the scopes of a Principal are a list of names, not one string")
    end = None if verdict.expires_at is None else int(verdict.expires_at)
    return verdict.name, list(verdict.scopes), end, verdict.bound_key, verdict.bound_certificate
