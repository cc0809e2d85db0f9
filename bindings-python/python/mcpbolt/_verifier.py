"""`Policy(verifier=…)`: a function of the program that says who a client is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, cast

from ._signature import is_coroutine_function

CredentialsKind = Literal["none", "bearer", "api_key", "certificate"]


class Credentials:
    """The credentials of a client, as its request brought them.

    Attributes:
        kind: "bearer", "api_key", "certificate" (proven by mutual TLS), or "none".
        secret: The token or the key; empty for the other kinds.
        certificate: The client's certificate (DER); empty for the other kinds.
    """

    __slots__ = ("kind", "secret", "certificate")

    def __init__(self, kind: CredentialsKind, secret: str = "", certificate: bytes = b"") -> None:
        self.kind = kind
        self.secret = secret
        self.certificate = certificate

    def __repr__(self) -> str:
        return f"Credentials({self.kind!r}, …)"


@dataclass(frozen=True)
class Principal:
    """A verified client.

    Args:
        name: Identifies the client: `context.principal`. A name that begins like those of other kinds, such as `key:`, gets
            `name:` before it.
        scopes: The scopes granted to it.
    """

    name: str
    scopes: Sequence[str] = ()


Verdict = Union[Principal, str, None]
Verifier = Callable[[Credentials], Union[Verdict, Awaitable[Verdict]]]


class Verifying:
    """A verifier as the engine calls it, with a kind, a secret and a certificate: it returns the name and the scopes of the
    client, or `None`."""

    def __init__(self, verify: Verifier) -> None:
        self.is_async = is_coroutine_function(verify)
        self._verify = verify
        self.function = self._awaited if self.is_async else self._called

    def _called(self, kind: CredentialsKind, secret: str, certificate: bytes) -> tuple[str, list[str]] | None:
        return _checked(self._verify(Credentials(kind, secret, certificate)))

    async def _awaited(self, kind: CredentialsKind, secret: str, certificate: bytes) -> tuple[str, list[str]] | None:
        return _checked(await cast(Awaitable[Verdict], self._verify(Credentials(kind, secret, certificate))))


def _checked(verdict: Any) -> tuple[str, list[str]] | None:
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
    return verdict.name, list(verdict.scopes)
