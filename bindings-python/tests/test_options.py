"""The options of a client's carrier, and the metrics of a server on the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpbolt import CarrierError, Client, ConnectionClosed, ConnectOptions, Server
from support import coroutine

ANY = "http://127.0.0.1:0/mcp"
REFUSED = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"
SILENT = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def adding() -> Server:
    server = Server("adds")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    return server


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Somebody who answers every request of HTTP with that, and keeps the connection; its URL and what was asked."""
    asked: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line for line in head.lower().splitlines() if line.startswith(b"content-length:")]
                await reader.readexactly(int(length[0].split()[1]) if length else 0)
                asked.append(head.splitlines()[0])
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


async def failure(address: str, options: ConnectOptions) -> CarrierError:
    with pytest.raises(ConnectionClosed) as raised:
        async with Client(address, options=options):
            pass
    assert isinstance(raised.value.__cause__, CarrierError)
    return raised.value.__cause__


@coroutine
async def test_requests_go_through_the_proxy_that_is_named() -> None:
    async with answering(REFUSED) as (proxy, asked):
        error = await failure("http://example.invalid/mcp", ConnectOptions(proxy=proxy))
        assert error.status == 502
        assert asked[0] == b"POST http://example.invalid/mcp HTTP/1.1"


@coroutine
async def test_nobody_passes_requests_on_where_that_is_said() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        patch.delenv("NO_PROXY", raising=False)
        async with adding().listening(ANY) as address:
            assert (await failure(address, ConnectOptions())).fault == "unreachable"
            async with Client(address, options=ConnectOptions(proxy="")) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


@coroutine
async def test_a_server_that_falls_silent_is_given_up_after_the_read_timeout() -> None:
    async with answering(SILENT) as (address, asked):
        error = await failure(address, ConnectOptions(read_timeout=0.05, resume=(0.01, 0.01, 1), proxy=""))
        assert error.fault in ("timed_out", "broken") and asked


@pytest.mark.parametrize("wrong", [{"read_timeout": -1}, {"idle_timeout": float("nan")}, {"resume": (-1, 1, 1)}])
@coroutine
async def test_times_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="seconds"):
        async with Client("http://127.0.0.1:1/mcp", options=ConnectOptions(**wrong)):
            pass


@coroutine
async def test_an_address_counts_what_is_done_there() -> None:
    async with adding().listening(ANY) as address:
        assert address.counts.calls == address.counts.http_requests == 0
        async with Client(address, revision="2025-11-25") as client:
            for _ in range(3):
                await client.call_tool("add", {"a": 1, "b": 2})
            counts = address.counts
            assert (counts.calls, counts.open_calls, counts.open_sessions, counts.sessions) == (3, 0, 1, 1)
            assert counts.http_requests >= 5 and counts.http_errors == 0
            assert counts.open_connections >= 1 and counts.bytes_read > 500 < counts.bytes_written
