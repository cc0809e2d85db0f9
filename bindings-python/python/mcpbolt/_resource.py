"""`Policy(resource=…)`: a resource server of OAuth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal


class Issuer:
    """An authorization server whose tokens are accepted.

    Args:
        issuer: Its issuer identifier, a URL.
        jwks: The URL of the keys that verify its tokens. Without `jwks` and `introspection`, the verifier of the policy
            verifies its tokens or, without one, the keys that its metadata name (RFC 8414, OpenID Connect Discovery).
        introspection: The URL at which it is asked about tokens (RFC 7662), and the client id and the secret of this
            server there. With `jwks` beside it, it is asked about tokens that are not signed.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        issuer: str,
        *,
        jwks: str | None = None,
        introspection: tuple[str, str, str] | None = None,
    ) -> None:
        self.wire: dict[str, Any] = {"issuer": issuer, "jwks": jwks}
        if introspection is not None:
            url, client_id, client_secret = introspection
            self.wire["introspection"] = {"url": url, "clientId": client_id, "clientSecret": client_secret}

    def __repr__(self) -> str:
        return f"Issuer({self.wire['issuer']!r}, …)"


class ResourceServer:
    """A resource server of OAuth 2.1: over HTTP, every request needs an access token of one of its issuers, for this
    resource.

    A token must be for this resource (`aud`), of an accepted issuer, and must not have ended. It is signed by RS256 to
    RS512, PS256 to PS512, ES256, ES384 or EdDSA, or the issuer is asked about it. Its caller is `jwt:ISSUER#SUBJECT`, or
    `client:ISSUER#ID` if the issuer's answer names a client and no user. The metadata (RFC 9728) is served at
    `/.well-known/oauth-protected-resource`, with and without the path of the resource. Refusals say in `WWW-Authenticate`
    where the metadata is, which scopes are needed and what is wrong. Times are in seconds.

    Args:
        url: The URL at which clients reach the server: the audience that tokens must have.
        issuers: The authorization servers, each an `Issuer` or its identifier.
        scopes: The scopes that every request requires, and that a client without a token is asked to get.
        audience: Further audiences that are accepted.
        any_audience: Accepts tokens for any audience or none. This includes tokens issued for another server, which that
            server can then use here.
        leeway: The tolerated difference between the clocks of issuer and server; 60 by default.
        cached_for: How long an answer about a token is used again; 5 by default for introspection. Verdicts of the policy's
            verifier are used again only if this is set.
        key_refresh: The age at which keys are fetched again; 600 by default.
        key_cooldown: The shortest time between two fetches of keys; 30 by default.
        proofs: Whether clients prove that they hold the key of their token (DPoP, RFC 9449): "off"; "accepted" for tokens
            that are bound to a key; or "required".
        proof_age: How far the time of a proof may be from now; 300 by default.
        proof_nonces: A secret of 32 characters or more and a period: each proof must have a nonce of this server, which
            changes every period. Processes that share the secret accept each other's nonces.
        name: The name for people in the metadata.
        documentation: The URL of a page for developers in the metadata.
        root_certificates: Certificates (PEM) that are trusted for issuers in addition to those of the system.
        proxy: The URL of an HTTP proxy for requests to issuers; `""` for none. By default the proxy that the environment
            names.

    Raises:
        ValueError: Raised when a server gets these settings, if a URL is not one of https or of this machine, or no issuer
            is named.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        url: str,
        *,
        issuers: Sequence[Issuer | str],
        scopes: Sequence[str] = (),
        audience: str | Sequence[str] = (),
        any_audience: bool = False,
        leeway: float | None = None,
        cached_for: float | None = None,
        key_refresh: float | None = None,
        key_cooldown: float | None = None,
        proofs: Literal["off", "accepted", "required"] = "off",
        proof_age: float | None = None,
        proof_nonces: tuple[str, float] | None = None,
        name: str | None = None,
        documentation: str | None = None,
        root_certificates: str | Sequence[str] = (),
        proxy: str | None = None,
    ) -> None:
        if isinstance(issuers, str):
            raise TypeError("issuers is a list, not one string")

        def ms(seconds: float | None) -> int | None:
            return None if seconds is None else round(seconds * 1000)

        self.wire: dict[str, Any] = {
            "url": url,
            "issuers": [issuer if isinstance(issuer, str) else issuer.wire for issuer in issuers],
            "scopes": list(scopes),
            "audience": audience if isinstance(audience, str) else list(audience),
            "anyAudience": any_audience,
            "leeway": ms(leeway),
            "cachedFor": ms(cached_for),
            "keyRefresh": ms(key_refresh),
            "keyCooldown": ms(key_cooldown),
            "proofs": proofs,
            "proofAge": ms(proof_age),
            "proofNonces": proof_nonces and {"secret": proof_nonces[0], "period": ms(proof_nonces[1])},
            "name": name,
            "documentation": documentation,
            "rootCertificates": root_certificates if isinstance(root_certificates, str) else list(root_certificates),
            "proxy": proxy,
        }
