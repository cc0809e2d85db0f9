"""Servers with one store."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import Client, Policy, ServeOptions, Server, SharedStore
from stores import valkey
from support import SECONDS, coroutine

HTTP = "http://127.0.0.1:0/mcp"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}


def keys(folder: Path) -> Path:
    """A file of keys, for its owner alone."""
    file = folder / "store.keys"
    file.write_text("a1" * 32 + "\n" + "b2" * 32)
    file.chmod(0o600)
    return file


@pytest.fixture
def options(tmp_path: Path) -> Iterator[ServeOptions]:
    with valkey(tmp_path) as url:
        yield ServeOptions(store=SharedStore(url, keys(tmp_path)))


def offer(name: str, policy: Policy | None = None) -> Server:
    server = Server("many", "1", subscriptions=True, policy=policy)
    server.tool(name="which")(lambda: name)
    server.resource("memo://a")(lambda: "a memo")
    return server


async def post(address: Any, session: str | None, method: str, params: dict[str, Any]) -> tuple[http.client.HTTPResponse, str]:
    """The answer to a request of a session."""

    def ask() -> tuple[http.client.HTTPResponse, str]:
        place = str(address).removeprefix("http://").split("/")[0]
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if session is not None:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}
        connection = http.client.HTTPConnection(place, timeout=SECONDS)
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()

    # Handlers run on the loop meanwhile.
    return await asyncio.to_thread(ask)


@coroutine
async def test_servers_share_sessions_and_changes(options: ServeOptions) -> None:
    """R-SES-05, R-RES-06: a session of one goes on at the other, with what it has subscribed to, and a change of one reaches clients of both."""
    one, other = offer("one"), offer("other")
    async with one.listening(HTTP, options=options) as here, other.listening(HTTP, options=options) as there:
        begun, _ = await post(here, None, "initialize", HELLO)
        session = begun.headers["Mcp-Session-Id"]
        for address, name in (here, "one"), (there, "other"):
            answer, text = await post(address, session, "tools/call", {"name": "which", "arguments": {}})
            assert answer.status == 200 and name in text, text
        told: asyncio.Queue[str] = asyncio.Queue()
        async with Client(str(there), revision="2025-11-25", on_resource_updated=told.put_nowait) as client:
            await client.subscribe("memo://a")
            # Processes hear of each other once both have begun.
            while told.empty():
                one.resource_updated("memo://a")
                await asyncio.sleep(0.01)
            assert told.get_nowait() == "memo://a"


@coroutine
async def test_servers_count_together(options: ServeOptions) -> None:
    """R-S14-05"""
    one, other = (offer(name, Policy(quota=(3, 3600))) for name in ("one", "other"))
    async with one.listening(HTTP, options=options) as here, other.listening(HTTP, options=options) as there:
        begun, _ = await post(here, None, "initialize", HELLO)
        session = begun.headers["Mcp-Session-Id"]
        statuses = []
        for address in (here, there) * 3:
            answer, _ = await post(address, session, "tools/call", {"name": "which", "arguments": {}})
            statuses.append(answer.status)
        assert statuses == [200] * 3 + [429] * 3


@coroutine
async def test_a_store_is_refused_where_there_are_no_sessions(tmp_path: Path) -> None:
    options = ServeOptions(store=SharedStore("redis://127.0.0.1:1/0", keys(tmp_path)))
    for address in "stdio:", "tcp:127.0.0.1:0", f"unix:{tmp_path / 'socket'}":
        with pytest.raises(ValueError, match="store: a store shares sessions of HTTP, and .* has none"):
            await offer("one").serve(address, options=options)
