"""`Policy(resource=…)` and `PermissionManager`. `cargo xtask tokens` plays the corpus of tokens."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

import pytest

from mcpbolt import Credentials, Issuer, PermissionManager, Policy, Principal, ResourceServer, Server
from support import coroutine

URL = "https://api.example/mcp"
ACTION = json.dumps({"action": "whoami", "params": {}}).encode()


def verify(credentials: Credentials) -> Principal | str | None:
    if credentials.kind == "basic":
        return Principal(credentials.user, ["notes"]) if credentials.secret == "s3cret:x" else None
    return {
        "good": Principal("alice", ["notes"]),
        "narrow": Principal("alice"),
        "ended": Principal("alice", ["notes"], expires_at=1),
        "bound": Principal("alice", ["notes"], bound_key="0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
        "certified": Principal("alice", ["notes"], bound_certificate="abc"),
    }.get(credentials.secret)


@coroutine
async def test_tokens_that_the_program_verifies_are_judged() -> None:
    """R-AUS-01, R-AUS-03, R-AUS-04, R-AUS-05, R-AUX-03"""
    resource = ResourceServer(URL, issuers=["https://login.example"], scopes=["notes"], name="Notes")
    server = Server("notes", "1", actions=True, policy=Policy(verifier=verify, resource=resource))

    @server.tool
    def whoami() -> str:
        return "done"

    async with server.listening("http://127.0.0.1:0/mcp") as address:

        def ask(path: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, str, str]:
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
            request = urllib.request.Request(str(address).removesuffix("/mcp") + path, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    return answer.status, "", answer.read().decode()
            except urllib.error.HTTPError as refused:
                with refused:
                    return refused.code, refused.headers["WWW-Authenticate"] or "", ""

        async def call(authorization: str | None) -> tuple[int, str]:
            headers = {"Authorization": authorization} if authorization else {}
            status, challenge, _ = await asyncio.to_thread(ask, "/mcp", headers, ACTION)
            return status, challenge

        for path in ["", "/mcp"]:
            status, _, body = await asyncio.to_thread(ask, "/.well-known/oauth-protected-resource" + path, {})
            told = json.loads(body)
            assert (status, told["resource"], told["resource_name"]) == (200, URL, "Notes")
        status, challenge = await call(None)
        place = "https://api.example/.well-known/oauth-protected-resource/mcp"
        assert (status, challenge) == (401, f'Bearer resource_metadata="{place}", scope="notes"')
        for authorization, expected, error in [
            ("Bearer good", 200, ""),
            ("Bearer narrow", 403, "insufficient_scope"),
            ("Bearer ended", 401, "invalid_token"),
            ("Bearer bound", 401, "invalid_token"),
            ("Bearer certified", 401, "invalid_token"),
            ("Bearer other", 401, "invalid_token"),
            ("Bearer a b", 400, "invalid_request"),
            ("Basic Ym9iOnMzY3JldDp4", 200, ""),
            ("Basic Ym9iOng=", 401, "invalid_token"),
        ]:
            status, challenge = await call(authorization)
            assert (status, error in challenge) == (expected, True), (authorization, challenge)


def test_settings_that_are_wrong_are_refused() -> None:
    for resource, why in [
        (ResourceServer("http://api.example/mcp", issuers=["https://a.example"]), "https"),
        (ResourceServer(URL, issuers=[]), "issuer"),
        (ResourceServer(URL, issuers=["https://a.example", "https://a.example"]), "twice"),
        (ResourceServer(URL, issuers=[Issuer("https://a.example", jwks="http://a.example/")]), "https"),
        (ResourceServer(URL, issuers=["https://a.example"], proof_nonces=("short", 60)), "proofNonces"),
    ]:
        with pytest.raises(ValueError, match=why):
            Server("notes", "1", policy=Policy(resource=resource))._catalog()
    with pytest.raises(TypeError, match="a list"):
        ResourceServer(URL, issuers="https://a.example")


def test_a_permission_manager_says_what_is_allowed() -> None:
    """R-PER-02, R-PER-03"""
    manager = PermissionManager(
        {
            "tools": {"allowed": ["*"], "denied": ["erase"]},
            "resources": {"allowed": ["file:///srv/**"], "denied": ["file:///srv/secret/**"]},
        }
    )
    assert [manager.can_execute_tool(tool) for tool in ["search", "erase"]] == [True, False]
    uris = ["file:///srv/a", "file:///srv/secret/a", "file:///srv/../etc/passwd", "file:///etc"]
    assert [manager.can_access_resource(uri) for uri in uris] == [True, False, False, False]
    nothing = PermissionManager({})
    assert not nothing.can_execute_tool("search") and not nothing.can_access_resource("file:///srv/a")
    with pytest.raises(ValueError, match="permissions: "):
        PermissionManager({"tool": {}})
