"""`Policy(consent_proxy=…)`: an authorization server in front of an identity provider without registration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Upstream:
    """An identity provider that knows a server as one application.

    Args:
        authorization_endpoint: The URL where users log in.
        token_endpoint: The URL where codes become tokens.
        client_id: The id that the provider gave this server.
        client_secret: The secret that the provider gave this server.
        revocation_endpoint: The URL where tokens are revoked, if the provider has one.
        issuer: The provider's issuer identifier, if it sends one with its answers (RFC 9207). Answers of others are refused.
        scopes: The scopes asked of the provider. `openid` gives users a name.
        parameters: Further parameters of the request for authorization, such as `{"access_type": "offline"}`.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        authorization_endpoint: str,
        token_endpoint: str,
        client_id: str,
        *,
        client_secret: str | None = None,
        revocation_endpoint: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = ("openid",),
        parameters: Mapping[str, str] = {},
    ) -> None:
        self.wire: dict[str, Any] = {
            "authorizationEndpoint": authorization_endpoint,
            "tokenEndpoint": token_endpoint,
            "clientId": client_id,
            "clientSecret": client_secret,
            "revocationEndpoint": revocation_endpoint,
            "issuer": issuer,
            "scopes": list(scopes),
            "parameters": dict(parameters),
        }

    def __repr__(self) -> str:
        return f"Upstream({self.wire['authorizationEndpoint']!r}, …)"


class ConsentProxy:
    """An authorization server that is part of a server: clients register there and log in, and the login itself is at an
    identity provider that knows no registration.

    Over HTTP, its paths are answered beside the endpoint: `/register`, `/authorize`, `/token` and others beneath `issuer`.
    The user is asked about each client. Clients get tokens of the proxy for this server alone; the server is a resource
    server that accepts them, with callers `jwt:ISSUER#SUBJECT`. Times are in seconds.

    Args:
        issuer: The URL of this authorization server: the origin of the server, or a path there. Enter `ISSUER/callback` at
            the provider.
        resource: The URL at which clients reach the server.
        secret: 32 random characters or more, for example of `openssl rand -hex 32`: the same in every process and after a
            restart, or else all logins are over.
        upstream: The identity provider.
        name: The name of the server on the page that asks for consent; the resource by default.
        scopes: The scopes that clients may ask for. A client that asks for none gets all of them.
        redirect_hosts: Where clients may have answers sent, besides to the user's own machine: hosts, or `*.example.com` for
            those beneath. By default any host: the page shows it, and the user decides.
        token_lifetime: The longest time that an access token is good; 3600 by default.
        refresh_lifetime: How long a refresh token may be used; 30 days by default.

    Raises:
        ValueError: Raised when a server gets these settings, if the secret is too short, or a URL is not one of https or of
            this machine.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        issuer: str,
        resource: str,
        *,
        secret: str,
        upstream: Upstream,
        name: str | None = None,
        scopes: Sequence[str] = (),
        redirect_hosts: Sequence[str] = (),
        token_lifetime: float | None = None,
        refresh_lifetime: float | None = None,
    ) -> None:
        def ms(seconds: float | None) -> int | None:
            return None if seconds is None else round(seconds * 1000)

        self.wire: dict[str, Any] = {
            "issuer": issuer,
            "resource": resource,
            "secret": secret,
            "upstream": upstream.wire,
            "name": name,
            "scopes": list(scopes),
            "redirectHosts": list(redirect_hosts),
            "tokenLifetime": ms(token_lifetime),
            "refreshLifetime": ms(refresh_lifetime),
        }

    def __repr__(self) -> str:
        return f"ConsentProxy({self.wire['issuer']!r}, …)"
