"""Logins of clients: the program's functions and store, on its event loop."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import AuthorizationPage, Client, ConnectionClosed, McpError, OAuth
from support import coroutine

REDIRECT = "http://localhost:3000/callback"


class Site(BaseHTTPRequestHandler):
    """An MCP server that is its own authorization server, as in 2025-03-26."""

    protocol_version = "HTTP/1.1"
    scheme = "Bearer"

    def log_message(self, *_: Any) -> None: ...

    def answer(self, status: int, body: Any = None, **headers: str) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/register":
            return self.answer(201, {"client_id": "id"})
        if self.path == "/token":
            return self.answer(200, {"access_token": "t1", "token_type": self.scheme, "expires_in": 3600})
        if self.headers["authorization"] != f"{self.scheme} t1":
            return self.answer(401, WWW_Authenticate=self.scheme)
        message = json.loads(body)
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "tools": []}
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


class BoundSite(Site):
    """Its tokens are bound to a key."""

    scheme = "DPoP"


@contextmanager
def site(handler: type[Site] = Site) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


class Store:
    """A store with asynchronous functions and locks."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.locked: list[str] = []

    async def load(self, key: str) -> str | None:
        await asyncio.sleep(0)
        return self.kept.get(key)

    async def save(self, key: str, document: str) -> None:
        self.kept[key] = document

    def remove(self, key: str) -> None:
        self.kept.pop(key, None)

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        self.locked.append(f"lock {key.split()[0]}")
        yield
        self.locked.append("release")


@coroutine
async def test_clients_share_one_login_and_its_store() -> None:
    pages: list[AuthorizationPage] = []

    async def consent(page: AuthorizationPage) -> str:
        await asyncio.sleep(0)
        pages.append(page)
        return f"{page.redirect_uri}?code=c&state={page.state}"

    store = Store()
    with site() as url:
        login = OAuth("Test", store=store, on_authorize=consent, redirect_uri=REDIRECT)
        for _ in range(2):
            async with Client(url, auth=login) as client:
                assert await client.list_tools() == []
        # Another process goes on with what is kept.
        async with Client(url, auth=OAuth("Test", store=store)) as client:
            assert await client.list_tools() == []
    assert len(pages) == 1
    assert {key.split()[0] for key in store.kept} == {"registration", "server", "tokens"}
    # The last lock is released on the loop, once the engine has let go of it.
    for _ in range(6000):
        if len(store.locked) >= 4:
            break
        await asyncio.sleep(0.01)
    assert store.locked == ["lock login", "lock tokens", "release", "release"]
    assert "secret" not in repr(OAuth("Test", client_id="x", client_secret="secret"))


@coroutine
async def test_a_lock_that_comes_too_late_is_released() -> None:
    class Shared(Store):
        def __init__(self) -> None:
            super().__init__()
            self.turn = asyncio.Lock()

        @asynccontextmanager
        async def lock(self, key: str) -> AsyncIterator[None]:
            if key.startswith("login "):
                async with self.turn, super().lock(key):
                    yield
            else:
                yield

    def consent(page: AuthorizationPage) -> str:
        return f"code=c&state={page.state}"

    store = Shared()
    with site() as url:
        # Another process logs in meanwhile, for longer than this one waits.
        late = OAuth("Test", store=store, timeout=0.5, on_authorize=consent, redirect_uri=REDIRECT)
        async with store.turn:
            with pytest.raises((McpError, ConnectionClosed)):
                async with Client(url, auth=late):
                    pass
        login = OAuth("Test", store=store, timeout=60, on_authorize=consent, redirect_uri=REDIRECT)
        async with Client(url, auth=login) as client:
            assert await client.list_tools() == []


@coroutine
async def test_a_function_that_takes_too_long_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def forever(page: AuthorizationPage) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    with site() as url:
        login = OAuth("Test", timeout=0.5, on_authorize=forever, redirect_uri=REDIRECT)
        with pytest.raises((McpError, ConnectionClosed), match="nobody answered within"):
            async with Client(url, auth=login):
                pass
        await asyncio.wait_for(cancelled.wait(), 60)


@coroutine
async def test_who_connects_learns_why_there_is_no_login() -> None:
    def refused(page: AuthorizationPage) -> str:
        return f"error=access_denied&state={page.state}"

    async def broken(page: AuthorizationPage) -> str:
        raise LookupError("no user")

    cases: list[tuple[Any, str]] = [
        (refused, "access_denied"),
        (broken, "LookupError: no user"),
        (lambda page: True, "on_authorize returned bool, not str"),
    ]
    with site() as url:
        for function, why in cases:
            with pytest.raises((McpError, ConnectionClosed), match=why):
                async with Client(url, auth=OAuth("Test", on_authorize=function, redirect_uri=REDIRECT)):
                    pass


@coroutine
async def test_the_private_key_of_bound_tokens_is_written_down_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """R-AUC-17: whatever becomes of a login, in whatever form."""
    caplog.set_level(logging.DEBUG)
    store, trace, shown = Store(), tmp_path / "trace", []

    class Full(Store):
        async def save(self, key: str, document: str) -> None:
            raise OSError("the disk is full")

    def bound(store: Store) -> OAuth:
        def consent(page: AuthorizationPage) -> str:
            return f"{page.redirect_uri}?code=c&state={page.state}"

        return OAuth("Test", dpop=True, store=store, on_authorize=consent, redirect_uri=REDIRECT)

    with site(BoundSite) as url:
        login = bound(store)
        async with Client(url, auth=login, trace=trace) as client:
            assert await client.list_tools() == []
            shown += [repr(login), repr(client)]
        (place,) = [key for key in store.kept if key.startswith("tokens ")]
        document = store.kept[place]
        stored = json.loads(document)["dpop_key"]
        damaged = Store()
        damaged.kept = {**store.kept, place: document.replace(stored, "!!" + stored[2:])}
        cut = Store()
        cut.kept = {**store.kept, place: document[:-1]}
        for other in (Full(), damaged, cut):
            with pytest.raises((McpError, ConnectionClosed, OSError)) as failed:
                async with Client(url, auth=bound(other)):
                    pass
            shown += traceback.format_exception(failed.type, failed.value, failed.tb)
    shown += [caplog.text, trace.read_text(), *capfd.readouterr()]
    assert "tools/list" in "".join(shown)
    key = base64.urlsafe_b64decode(stored + "=" * (-len(stored) % 4))
    # The private value: 32 bytes after a version and the head of an octet string (RFC 5915, section 3).
    at = key.index(b"\x02\x01\x01\x04\x20") + 5
    secret, pem = key[at : at + 32], base64.b64encode(key).decode()
    forms = [stored, pem[:64], pem[64:128], secret.hex(), ", ".join(map(str, secret[:8])), repr(secret)[2:-1]]
    forms += [encode(secret).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)]
    for form in forms:
        assert not any(form in text for text in shown), form


@coroutine
async def test_a_store_gives_texts() -> None:
    class Bytes(Store):
        async def load(self, key: str) -> Any:
            return b"{}"

    with site() as url:
        with pytest.raises((McpError, ConnectionClosed), match="the store's load returned bytes, not str"):
            async with Client(url, auth=OAuth("Test", store=Bytes())):
                pass


def test_wrong_options_are_refused() -> None:
    with pytest.raises((ValueError, OSError), match="ident"):
        OAuth("Test", grant="enterprise")
    with pytest.raises((ValueError, OSError), match="(?i)key"):
        OAuth("Test", client_id="x", signing_key="no key")
