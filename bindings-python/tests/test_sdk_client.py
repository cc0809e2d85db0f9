"""The official SDK's client on our carriers, against real servers: its own and ours."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from mcpbolt.mcp import stdio_client
from support import coroutine
from test_sdk import OURS, THEIRS, elicited, environment, rooted, sampled
from test_stdio import is_running

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def program(code: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-c", code], env=environment())


ONE = """
import asyncio
from mcpbolt.engine import Connection, Request
import os, sys

connection = Connection('server', 'one', capabilities={'tools': {}}, revisions=[sys.argv[1]])
while data := os.read(0, 1 << 16):
    connection.feed(data)
    for event in connection.events():
        if isinstance(event, Request):
            event.respond({'content': [{'type': 'text', 'text': event.revision}]})
    os.write(1, connection.output())
"""


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_a_server_of_each_revision_is_spoken_with(revision: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-c", ONE, revision], env=environment())
    async with Client(stdio_client(server), mode="auto") as client:
        assert client.protocol_version == revision
        called = await client.session.send_request(
            types.CallToolRequest(params=types.CallToolRequestParams(name="x", arguments={})), types.CallToolResult
        )
        assert called.content[0].text == revision  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@coroutine
async def test_their_client_asks_everything_of_our_server(mode: str) -> None:
    callbacks: dict[str, Any] = {
        "elicitation_callback": elicited,
        "sampling_callback": sampled,
        "list_roots_callback": rooted,
    }
    async with Client(stdio_client(program(OURS)), mode=mode, **callbacks) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "ask", "traced"]
        many = await asyncio.gather(*(client.call_tool("add", {"a": i, "b": 1}) for i in range(200)))
        assert [result.structured_content for result in many] == [{"sum": i + 1} for i in range(200)]
        assert (await client.call_tool("ask")).content[0].text == "Greet Ada! at file:///home"  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.read_resource("memo://none")


@coroutine
async def test_a_session_on_their_own_server() -> None:
    told: list[Any] = []

    async def progress(*news: Any) -> None:
        told.append(news)

    async with stdio_client(program(THEIRS)) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        slow = await session.call_tool("slow", {}, progress_callback=progress)
        assert slow.content[0].text == "slow" and told == [(1.0, 2.0, "half")]  # type: ignore[union-attr]
        assert (await session.call_tool("fail", {})).is_error
        large = "x" * (3 << 20)
        read = await session.read_resource(f"memo://{large[:1000]}")
        assert read.contents[0].text == large[:1000]  # type: ignore[union-attr]


ODD = """
import sys, time
print('no message')
print('[{"jsonrpc":"2.0","method":"notifications/a"},{"x":1}]')
print('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\\\ud800"}}')
print('{"jsonrpc":"2.0","id":"\\u00e9","result":{"a":1}}')
print('said', file=sys.stderr)
sys.stdout.write('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}')
sys.stdout.flush()
"""


@coroutine
async def test_what_is_no_message_is_an_exception_and_the_end_is_one() -> None:
    errlog = io.StringIO()
    async with stdio_client(program(ODD), errlog) as (reading, writing):
        items = [item async for item in reading]
        with pytest.raises((anyio.BrokenResourceError, anyio.ClosedResourceError)):
            note = types.JSONRPCNotification(jsonrpc="2.0", method="a")
            while True:
                await writing.send(type(items[1])(note))  # type: ignore[call-arg]
                await asyncio.sleep(0.01)
    kinds = [type(item.message).__name__ if hasattr(item, "message") else type(item).__name__ for item in items]
    assert kinds == [
        "DecodeError",
        "JSONRPCNotification",
        "DecodeError",
        "ValueError",
        "JSONRPCResponse",
        "JSONRPCError",
    ]
    assert items[4].message.id == "é" and errlog.getvalue() == "said\n"  # type: ignore[union-attr]


SLOW = """
import os, sys, time
print('{"jsonrpc":"2.0","method":"notifications/pid","params":{"pid":%d}}' % os.getpid(), flush=True)
time.sleep(1)
total = 0
while data := os.read(0, 1 << 20):
    total += len(data)
print('{"jsonrpc":"2.0","method":"notifications/total","params":{"total":%d}}' % total, flush=True)
time.sleep(60)
"""


@coroutine
async def test_writing_waits_for_a_server_that_does_not_read_and_nothing_of_it_is_left() -> None:
    begun = time.monotonic()
    async with stdio_client(program(SLOW)) as (reading, writing):
        first = await reading.receive()
        assert not isinstance(first, Exception)
        pid = first.message.params["pid"]  # type: ignore[union-attr]
        note = types.JSONRPCNotification(jsonrpc="2.0", method="a", params={"text": "x" * (1 << 20)})
        for _ in range(20):
            await writing.send(type(first)(note))
        assert time.monotonic() - begun > 0.5, "the server has not read a byte by then"
    assert not Path(f"/proc/{pid}").exists() or not is_running(pid)


@coroutine
async def test_a_cancelled_block_ends_its_child() -> None:
    with anyio.CancelScope() as scope:
        async with stdio_client(program(SLOW)) as (reading, _):
            first = await reading.receive()
            pid: int = first.message.params["pid"]  # type: ignore[union-attr]
            scope.cancel()
            await reading.receive()
    assert scope.cancelled_caught and not is_running(pid)


@coroutine
async def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(OSError):
        async with stdio_client(StdioServerParameters(command="/no/such/program")):
            pass
