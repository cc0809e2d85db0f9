"""Shares: clients leave threads to each other."""

from __future__ import annotations

import asyncio
import threading
from urllib.parse import urlsplit

from mcpbolt import Server
from support import coroutine
from wire import Response, Wire, call


async def text(response: Response) -> str:
    answer = await response.json()
    found: str = answer["result"]["content"][0]["text"]
    return found


async def opened(address: str, client: str) -> Wire:
    """A connection of the client with that address."""
    url = urlsplit(address)
    return Wire(address, *await asyncio.open_connection(url.hostname, url.port, local_addr=(client, 0)))


@coroutine
async def test_a_client_whose_functions_block_leaves_threads_to_others() -> None:
    server = Server("shares")
    go_on = threading.Event()
    begun: list[int] = []

    @server.tool
    def block(number: int) -> str:
        begun.append(number)
        go_on.wait(20)
        return "blocked"

    @server.tool
    def quick() -> str:
        return "quick"

    async with server.listening("http://127.0.0.1:0/mcp") as address:
        wires = [await opened(address, "127.0.0.1") for _ in range(60)]
        other = await opened(address, "127.0.0.2")
        blocked = [asyncio.ensure_future(wire.stateless(call(n, "block", number=n))) for n, wire in enumerate(wires)]
        try:
            while len(begun) < 30:
                await asyncio.sleep(0.005)
            for number in range(10):
                answer = await asyncio.wait_for(other.stateless(call(number, "quick")), 10)
                assert await text(answer) == "quick"
            # Three quarters of the 40 threads.
            assert len(begun) == 30
        finally:
            go_on.set()
        assert [await text(await one) for one in blocked] == ["blocked"] * 60
        assert sorted(begun) == list(range(60))
        for wire in (*wires, other):
            wire.close()
