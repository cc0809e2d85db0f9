"""Credentials: keys, signed tokens and certificates that a policy knows clients by, and the scopes of tools."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import (
    ActionError,
    ApiKey,
    Bearer,
    CarrierError,
    Client,
    ConnectionClosed,
    Context,
    Jwt,
    PeerError,
    Policy,
    RetryPolicy,
    ServeOptions,
    Server,
)
from support import certificate, client, coroutine
from wire import Wire, call

ONCE = RetryPolicy(tries=1)
SECRET = "a secret of thirty-two bytes, yes"
SCOPE = 'Bearer error="insufficient_scope", scope="notes:write"'


def offer() -> Server:
    policy = Policy(
        keys={"k-alice": ("alice", ["notes:write"]), "k-bob": ("bob", ())},
        jwt=Jwt("HS256", SECRET, issuer="me", audience="here"),
        scopes={"note.write": ["notes:write"]},
    )
    server = Server("notes", actions=True, policy=policy)

    def who(context: Context) -> str:
        return f"{context.principal} {context.has_scope('notes:write')}"

    async def who_soon(context: Context) -> str:
        return who(context)

    server.tool(name="note.read")(who)
    server.tool(name="note.write")(who_soon)
    return server


def token(kid: str | None = None, secret: str = SECRET, **claims: Any) -> str:
    """One that carol bears for an hour, unless `claims` say otherwise."""
    good = {"sub": "carol", "scope": "read notes:write", "iss": "me", "aud": "here", "exp": int(time.time()) + 3600}

    def part(value: Mapping[str, Any]) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    signed = part({"alg": "HS256", "typ": "JWT", **({"kid": kid} if kid else {})}) + b"." + part({**good, **claims})
    signature = hmac.digest(secret.encode(), signed, hashlib.sha256)
    return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def wrong() -> list[dict[str, str]]:
    expired, for_another = token(exp=int(time.time()) - 3600), token(aud="there")
    forged = token()[:-8] + "AAAAAAAA"
    tokens = [{"type": "bearer", "token": one} for one in (expired, for_another, forged, "k-alice")]
    return [{"type": "api_key", "key": "k-eve"}, *tokens]


def good() -> list[tuple[dict[str, str], str, bool]]:
    return [
        ({"type": "api_key", "key": "k-alice"}, "key:alice", True),
        ({"type": "api_key", "key": "k-bob"}, "key:bob", False),
        ({"type": "bearer", "token": token()}, "jwt:me#carol", True),
        ({"type": "bearer", "token": token(sub="alice", scope="read")}, "jwt:me#alice", False),
    ]


def carried(auth: dict[str, str]) -> ApiKey | Bearer:
    return ApiKey(auth["key"]) if "key" in auth else Bearer(auth["token"])


def headers(auth: dict[str, str]) -> dict[str, str]:
    return {"x_api_key": auth["key"]} if "key" in auth else {"authorization": f"Bearer {auth['token']}"}


@coroutine
async def test_who_asks_over_http_is_known_by_headers() -> None:
    """R-AUX-03, R-PER-05, R-ACT-22, R-ACT-40: in both languages; 401 for who is not known, 403 for who lacks a scope."""
    async with offer().listening("http://127.0.0.1:0/mcp") as address:
        for auth, name, may_write in good():
            async with Client(address, auth=carried(auth)) as caller:
                assert (await caller.call_tool("note.read")).text == f"{name} {may_write}"
                if may_write:
                    assert (await caller.call_tool("note.write")).text == f"{name} True"
            async with Client(address, auth=carried(auth), opening="actions") as caller:
                assert (await caller.action("note.read")).data["result"] == f"{name} {may_write}"
                if not may_write:
                    with pytest.raises(ActionError) as raised:
                        await caller.action("note.write", retry=ONCE)
                    assert (raised.value.type, raised.value.details) == ("AUTHORIZATION_FAILED", {"scope": "notes:write"})
        for auth in wrong():
            with pytest.raises(ConnectionClosed) as refused:
                async with Client(address, auth=carried(auth)):
                    pass
            assert isinstance(refused.value.__cause__, CarrierError) and refused.value.__cause__.status == 401
        action = {"action": "note.write", "params": {}}
        for message in (action, call(1, "note.write")):
            for given, status, challenge in [
                ({"type": "api_key", "key": "k-alice"}, 200, None),
                ({"type": "api_key", "key": "k-bob"}, 403, SCOPE),
                ({"type": "api_key", "key": "k-eve"}, 401, "Bearer"),
            ]:
                async with await Wire.open(address) as wire:
                    if message is action:
                        answer = await wire.post(message, **headers(given))
                    else:
                        answer = await wire.stateless(message, _headers=headers(given))
                    assert (answer.status, answer.headers.get("www-authenticate")) == (status, challenge)


@coroutine
async def test_the_keys_of_tokens_are_replaced_while_a_server_runs() -> None:
    """R-AUX-03: the key is the one that the token names; the old ones are good no more."""
    new = "another secret of as many bytes.."
    jwt = Jwt(keys={"june": ("HS256", SECRET)}, issuer=["me", "you"], any_audience=True)
    server = Server("notes", policy=Policy(jwt=jwt))

    @server.tool
    def who(context: Context) -> str:
        return str(context.principal)

    async def asks(token: str) -> str:
        async with Client(server) as caller:
            return (await caller.call_tool("who", meta={"auth": {"type": "bearer", "token": token}})).text

    june, july = token("june", aud="there"), token("july", new, iss="you")
    assert await asks(june) == "jwt:me#carol"
    with pytest.raises(PeerError):
        await asks(july)
    server.replace_jwt_keys({"june": ("HS256", SECRET), "july": ("HS256", new)})
    assert [await asks(june), await asks(july)] == ["jwt:me#carol", "jwt:you#carol"]
    server.replace_jwt_keys({"july": ("HS256", new)})
    with pytest.raises(PeerError):
        await asks(june)
    assert await asks(july) == "jwt:you#carol"
    for keys, why in [({}, "no key is given"), ({"k": ("HS256", "short")}, "too short")]:
        with pytest.raises(ValueError, match=why):
            server.replace_jwt_keys(keys)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no `jwt`"):
        Server("keys", policy=Policy(keys={})).replace_jwt_keys({"k": ("HS256", new)})
    assert await asks(july) == "jwt:you#carol"


SERVER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_credentials import offer
offer().run()
"""


@coroutine
async def test_who_asks_on_stdin_says_so_with_each_request() -> None:
    """R-AUX-01, R-AUX-03, R-ACT-30: `auth` in the metadata of an action, or in the `_meta` of a request."""
    command = [sys.executable, "-c", SERVER]
    async with client(command) as caller, client(command, opening="actions") as actor:
        for auth, name, may_write in good():
            meta = {"auth": auth}
            assert (await caller.call_tool("note.read", meta=meta)).text == f"{name} {may_write}"
            data = (await actor.action("note.read", metadata=meta)).data
            assert data["result"] == f"{name} {may_write}"
            if may_write:
                assert (await caller.call_tool("note.write", meta=meta)).text == f"{name} True"
                continue
            with pytest.raises(PeerError) as lacks:
                await caller.call_tool("note.write", meta=meta)
            assert lacks.value.data == {"scope": "notes:write"}
            with pytest.raises(ActionError) as raised:
                await actor.action("note.write", metadata=meta, retry=ONCE)
            assert (raised.value.type, raised.value.code) == ("AUTHORIZATION_FAILED", 403)
        for meta in [{}, *({"auth": auth} for auth in wrong())]:
            with pytest.raises(PeerError):
                await caller.call_tool("note.read", meta=meta)
            with pytest.raises(ActionError) as raised:
                await actor.action("note.read", metadata=meta, retry=ONCE)
            assert (raised.value.type, raised.value.code) == ("AUTHENTICATION_FAILED", 401)


@pytest.mark.parametrize(
    "policy, why",
    [
        (Policy(keys={"": ("alice", ())}), "empty"),
        (Policy(keys={"k": ("alice", "write")}), "expected a sequence"),
        (Policy(scopes={"note.write": "write"}), "expected a sequence"),
        (Policy(jwt=Jwt("none", "s")), "unknown variant"),  # type: ignore[arg-type]
        (Policy(jwt=Jwt("HS256", "")), "a secret of 0 bytes is too short"),
        (Policy(jwt=Jwt("HS256", "s" * 31)), "a secret of 31 bytes is too short"),
        (Policy(jwt=Jwt("HS384", "s" * 47)), "a secret of 47 bytes is too short"),
        (Policy(jwt=Jwt("ES256", "no PEM")), "no public key in PEM"),
        (Policy(jwt=Jwt("HS256", SECRET, audience="here")), "no issuer is set"),
        (Policy(jwt=Jwt("HS256", SECRET, issuer="me")), "no audience is set"),
        (Policy(jwt=Jwt(issuer="me", audience="here")), "set `algorithm` and `key`"),
        (Policy(jwt=Jwt(keys={"k": ("HS256", "s")}, any_issuer=True, any_audience=True)), 'the kid "k"'),
        (Policy(audit_when_full="burst"), "unknown variant"),  # type: ignore[arg-type]
    ],
)
def test_what_nobody_can_be_known_by_is_refused(policy: Policy, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Server("notes", policy=policy)._catalog()


@coroutine
async def test_clients_show_certificates(tmp_path: Path) -> None:
    """R-AUX-03, R-HTP-07: who shows none that is vouched for is not served; who does is known by a key, too."""
    for name in ("server", "alice", "eve"):
        (tmp_path / name).mkdir()
    tls, alice, eve = (certificate(tmp_path / name) for name in ("server", "alice", "eve"))
    options = ServeOptions(tls=tls, tls_clients=alice[0])
    async with offer().listening("https://127.0.0.1:0/mcp", options=options) as address:

        async def ask(shown: tuple[Path, Path] | None) -> int:
            context = ssl.create_default_context(cafile=str(tls[0]))
            if shown:
                context.load_cert_chain(*shown)
            async with await Wire.open(address, ssl=context) as wire:
                return (await wire.post({"action": "note.read", "params": {}}, x_api_key="k-bob")).status

        assert await ask(alice) == 200
        for shown in (None, eve):
            with pytest.raises((OSError, EOFError)):
                await ask(shown)
