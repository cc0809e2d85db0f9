"""A child of `os.fork()` has its parent's clients and servers without the threads that drive them: it is told so at once,
and may make its own."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from mcpbolt import Client, Misuse, Server

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
SECONDS = 60


def in_a_fork(act: Callable[[], object]) -> None:
    """Has a fork do something, which may take no longer than a minute."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def made() -> Server:
    server = Server("forked")

    @server.tool
    def plain(text: str) -> str:
        return text

    @server.tool
    async def task(text: str) -> str:
        return text

    return server


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[Client]:
    """A client of a server that begins here, in memory or on that address."""
    if address is None:
        async with Client(made()) as client:
            yield client
    else:
        async with made().listening(address) as at, Client(at) as client:
            yield client


async def served(address: str | None) -> None:
    async with connected(address) as client:
        await works(client)


async def works(client: Client) -> None:
    for tool in ("plain", "task"):
        assert (await client.call_tool(tool, {"text": "x"}, timeout=30)).text == "x"


@pytest.mark.parametrize("address", [None, "http://127.0.0.1:0/mcp"])
def test_a_client_of_the_parent_fails_at_once_and_another_works(address: str | None) -> None:
    async def parent() -> None:
        async with connected(address) as client:
            await forks(client)

    async def forks(client: Client) -> None:
        await works(client)

        def child() -> None:
            asyncio._set_running_loop(None)

            async def use() -> None:
                with pytest.raises(Misuse, match="belongs to the parent of this process"):
                    await client.call_tool("plain", {"text": "x"})

            asyncio.run(use())
            asyncio.run(served(None))
            asyncio.run(served("http://127.0.0.1:0/mcp"))

        in_a_fork(child)
        await works(client)

    asyncio.run(parent())


def test_what_a_fork_drops_of_its_parents_does_nothing() -> None:
    async def parent() -> None:
        holds = [Client(made())]
        async with made().listening("http://127.0.0.1:0/mcp") as at:
            holds.append(Client(at))
            for client in holds:
                await client.__aenter__()
                await works(client)

            def child() -> None:
                asyncio._set_running_loop(None)
                holds.clear()
                gc.collect()
                asyncio.run(served(None))

            in_a_fork(child)
            for client in holds:
                await works(client)
                await client.__aexit__(None, None, None)

    asyncio.run(parent())


def test_a_server_made_before_the_fork_may_be_served_in_it() -> None:
    server = made()
    server._catalog()

    def child() -> None:
        async def serve() -> None:
            async with server.listening("http://127.0.0.1:0/mcp") as at, Client(at) as client:
                await works(client)

        asyncio.run(serve())

    for _ in range(2):
        in_a_fork(child)
    asyncio.run(served("http://127.0.0.1:0/mcp"))
    in_a_fork(child)
