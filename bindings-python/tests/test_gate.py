"""The checks of every request before it is read: its origin, its host, and the server's settings for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpbolt import ApiKey, Client, Policy, ServeOptions, Server
from support import coroutine
from test_asgi import served
from wire import Wire, call

ANY = "http://127.0.0.1:0/mcp"
ACTION = {"action": "write", "params": {}}
EVIL = "http://evil.example"
# The headers that browsers send for pages of other origins, with and without `Origin`.
FOREIGN: list[dict[str, str]] = [
    {"origin": EVIL},
    {"origin": "null"},
    {"origin": EVIL, "sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
    {"sec_fetch_site": "none", "sec_fetch_mode": "navigate"},
]


class Ran:
    def __init__(self, **settings: Any) -> None:
        self.count = 0
        self.server = Server("gate", **settings)

        @self.server.tool
        def write() -> str:
            self.count += 1
            return "written"

        @self.server.tool(on_get=True, annotations={"readOnlyHint": True})
        def look() -> str:
            self.count += 1
            return "seen"


async def status(address: str, method: str = "POST", path: str | None = None, body: bytes = b"", **headers: str) -> int:
    async with await Wire.open(address) as wire:
        return (await wire.send(method, body, path, **headers)).status


async def turned_away(address: str) -> None:
    """Every request of a page of another origin is refused."""
    bodies = [json.dumps(ACTION).encode(), json.dumps(call(1, "write")).encode()]
    for page in FOREIGN:
        for method in ("GET", "HEAD", "DELETE", "OPTIONS"):
            assert await status(address, method, **page) == 403, (method, page)
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            for body in bodies:
                assert await status(address, body=body, **{**page, "content_type": kind}) == 403, (kind, page)
    for body in bodies:
        assert await status(address, body=body, content_type="text/plain") == 415


@coroutine
async def test_pages_of_other_origins_run_nothing() -> None:
    ran = Ran(actions=True)
    for hosts in (None, ["*"]):
        options = ServeOptions(hosts=hosts)
        async with ran.server.listening(ANY, options=options) as address:
            await turned_away(address)
            for page in FOREIGN:
                for action in ("look", "write"):
                    path = f"/mcp/stream?action={action}"
                    assert await status(address, "GET", path, **page) == 403
                upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
                key = {"sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}
                assert await status(address, "GET", **{**upgrade, **key, **page}) == 403
        async with served(ran.server.asgi(options=options)) as mounted:
            await turned_away(mounted)
    assert ran.count == 0


@coroutine
async def test_origins_are_those_that_are_named() -> None:
    body = json.dumps(ACTION).encode()
    ran = Ran(actions=True)
    for origins, origin, expected in [
        (None, "http://localhost:3000", 200),
        (None, "http://127.0.0.1", 200),
        ([], "http://localhost:3000", 403),
        (["https://app.example"], "https://app.example", 200),
        (["https://app.example"], "https://app.example:444", 403),
        (["https://app.example:*"], "https://app.example:444", 200),
        (["*"], EVIL, 200),
    ]:
        async with ran.server.listening(ANY, options=ServeOptions(origins=origins)) as address:
            assert await status(address, body=body, origin=origin) == expected, (origins, origin)
            # A page of its own.
            own = address.removesuffix("/mcp")
            assert await status(address, body=body, origin=own, sec_fetch_site="same-origin") == 200
    for wrong in (["app.example"], ["https://app.example/"], ["null"]):
        with pytest.raises(ValueError, match="origins: "):
            async with ran.server.listening(ANY, options=ServeOptions(origins=wrong)):
                pass
    with pytest.raises(ValueError, match="hosts: .*without scheme and port"):
        async with ran.server.listening(ANY, options=ServeOptions(hosts=["a.example:80"])):
            pass


@coroutine
async def test_actions_are_spoken_where_they_are_asked_for() -> None:
    ran = Ran()
    async with ran.server.listening(ANY) as address:
        async with await Wire.open(address) as wire:
            answer = await wire.post(ACTION)
            assert answer.status == 400
            assert (await answer.json())["jsonrpc"] == "2.0"
        assert await status(address, "GET", "/mcp/stream?action=look") == 404
    assert ran.count == 0
    async with Client(ran.server) as client:
        assert (await client.call_tool("write")).text == "written"


@coroutine
async def test_a_get_runs_what_its_author_allows() -> None:
    ran = Ran(actions=True)
    async with ran.server.listening(ANY) as address:
        assert await status(address, "GET", "/mcp/stream?action=write") == 405
        assert ran.count == 0
        assert await status(address, "GET", "/mcp/stream?action=look") == 200
        assert ran.count == 1
    server = Server("wrong")

    @server.tool(on_get=True)
    def write() -> None: ...

    with pytest.raises(ValueError, match="read-only tools; add readOnlyHint"):
        server._catalog()


@coroutine
async def test_a_server_that_anybody_may_use_stays_on_its_machine() -> None:
    open_to_all, guarded = Server("open"), Server("guarded", policy=Policy(keys={"k-1": ("alice", ())}))
    for address in ("http://0.0.0.0:0/mcp", "ws://[::]:0/mcp", "tcp:0.0.0.0:0"):
        with pytest.raises(PermissionError, match="`anonymous`"):
            async with open_to_all.listening(address):
                pass
    async with open_to_all.listening(ANY, options=ServeOptions(anonymous=True)) as at:
        assert await status(at, body=b"{") == 400
    async with guarded.listening(ANY) as at:
        assert await status(at, body=b"{") == 401
        async with Client(at, auth=ApiKey("k-1")) as client:
            assert client.server_info.name == "guarded"


def test_running_it_there_is_an_error() -> None:
    with pytest.raises(PermissionError, match="has no verifier"):
        Server("open").run("http://0.0.0.0:0/mcp")
