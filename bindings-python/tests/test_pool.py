"""`Pool`: clients that are kept and used again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import Bearer, Client, ConnectionClosed, McpError, Overloaded, Pool, RequestTimeout, Server
from support import coroutine

PROGRAM = """
import os
from mcpbolt import Server

server = Server("pid", "1", subscriptions=True)

@server.tool
def pid() -> str:
    return str(os.getpid())

@server.resource("note://1")
def note() -> str:
    return "one"

server.run()
"""


def pool(**options: Any) -> Pool:
    return Pool(inherit_env=["PYTHONPATH"], **options)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    program = tmp_path / "server.py"
    program.write_text(PROGRAM)
    return [sys.executable, str(program)]


async def pid(client: Client) -> int:
    return int((await client.call_tool("pid")).text)


# R-POL-01, R-POL-02, R-POL-05
@coroutine
async def test_callers_share_few_connections_and_each_has_its_own_meanwhile(command: list[str]) -> None:
    async with pool(max_connections=2) as pooled:

        async def call(revision: str) -> int:
            async with pooled.client(command, revision=revision) as client:
                assert client.server_info.revision == revision
                first = await pid(client)
                assert first == await pid(client)
                return first

        servers = await asyncio.gather(*[call(revision) for revision in ["2025-06-18", "2026-07-28"] * 10])
        counts = pooled.counts
        assert len(set(servers)) == counts.opened <= 4
        assert counts.opened + counts.reused == 20
        assert (counts.idle, counts.in_use, counts.waiting) == (counts.opened, 0, 0)
    assert pooled.counts.idle == 0


# R-POL-01
@coroutine
async def test_other_credentials_headers_and_callbacks_make_other_connections() -> None:
    server = Server("http")
    async with server.listening("http://127.0.0.1:0/mcp") as at, Pool() as pooled:
        options: list[dict[str, Any]] = [
            {},
            {"auth": Bearer("a")},
            {"auth": Bearer("b")},
            {"headers": {"x": "1"}},
            {"timeout": 5.0},
            {"on_log": print},
        ]
        for _ in range(2):
            for one in options:
                async with pooled.client(str(at), **one):
                    pass
        assert (pooled.counts.opened, pooled.counts.reused) == (len(options), len(options))


# R-POL-03
@coroutine
async def test_callers_wait_in_order_for_a_limited_time(command: list[str]) -> None:
    async with pool(max_connections=1, max_waiting=2, wait_timeout=30) as pooled:
        order: list[int] = []
        client = await pooled.acquire(command)

        async def wait(number: int) -> None:
            async with pooled.client(command):
                order.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in (1, 2)]
        await asyncio.sleep(0)
        assert pooled.counts.waiting == 2
        with pytest.raises(Overloaded, match="too many callers wait"):
            await pooled.acquire(command)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        assert pooled.counts.waiting == 1
        third = asyncio.create_task(wait(3))
        await asyncio.sleep(0)
        pooled.release(client)
        await asyncio.gather(tasks[1], third)
        assert order == [2, 3]
    async with pool(max_connections=1, wait_timeout=0.1) as pooled:
        async with pooled.client(command):
            with pytest.raises(RequestTimeout, match="all connections of the pool were in use"):
                await pooled.acquire(command)
        assert pooled.counts.timed_out == 1
        # A caller that is cancelled in the turn in which it gets a connection gives it back.
        client = await pooled.acquire(command)
        waiting = asyncio.create_task(pooled.acquire(command))
        await asyncio.sleep(0)
        pooled.release(client)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (pooled.counts.in_use, pooled.counts.waiting) == (0, 0)


# R-POL-03
@coroutine
async def test_a_connection_that_breaks_leaves_the_pool(command: list[str]) -> None:
    async with pool(max_connections=1) as pooled:
        async with pooled.client(command) as client:
            first = await pid(client)
            os.kill(first, signal.SIGKILL)
            with pytest.raises(McpError):
                while True:
                    await pid(client)
        client = await pooled.acquire(command)
        second = await pid(client)
        assert second != first
        pooled.release(client, discard=True)
        pooled.release(client)
        async with pooled.client(command) as client:
            third = await pid(client)
        assert third != second
        # One that breaks while nobody has it.
        os.kill(third, signal.SIGKILL)
        while client._connected.end() is None:
            await asyncio.sleep(0.005)
        async with pooled.client(command) as client:
            assert await pid(client) != third
        assert (pooled.counts.opened, pooled.counts.dropped) == (4, 3)


# R-POL-04
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@coroutine
async def test_a_connection_with_subscriptions_goes_to_nobody_else(command: list[str], revision: str) -> None:
    async with pool(sharing=2) as pooled:
        async with pooled.client(command, revision=revision) as client:
            own = await pid(client)
            await client.subscribe("note://1")
            async with pooled.client(command, revision=revision) as other:
                assert await pid(other) != own
        async with pooled.client(command, revision=revision) as client:
            assert await pid(client) != own


# R-POL-04
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@coroutine
async def test_a_connection_with_a_log_level_goes_to_nobody_else(command: list[str], revision: str) -> None:
    async with pool(sharing=2) as pooled:
        first = await pooled.acquire(command, revision=revision)
        second = await pooled.acquire(command, revision=revision)
        own = await pid(first)
        assert await pid(second) == own
        await first.set_log_level("debug")
        pooled.release(first)
        async with pooled.client(command, revision=revision) as other:
            assert await pid(other) != own
        pooled.release(second)
        async with pooled.client(command, revision=revision) as other:
            assert await pid(other) != own
        assert pooled.counts.dropped == 1


# R-POL-05
@coroutine
async def test_a_client_that_is_given_back_twice_is_not_taken_from_its_next_caller(command: list[str]) -> None:
    async with pool() as pooled:
        first = await pooled.acquire(command)
        own = await pid(first)
        pooled.release(first)
        second = await pooled.acquire(command)
        pooled.release(first)
        pooled.release(first, discard=True)
        assert (pooled.counts.in_use, pooled.counts.idle) == (1, 0)
        async with pooled.client(command) as third:
            assert await pid(second) == own != await pid(third)
        pooled.release(second)
        assert (pooled.counts.in_use, pooled.counts.idle, pooled.counts.dropped) == (0, 2, 0)


@coroutine
async def test_a_connection_that_goes_while_its_grant_is_on_its_way_is_replaced(command: list[str]) -> None:
    async with pool(max_connections=1, sharing=2) as pooled:
        first, second = await pooled.acquire(command), await pooled.acquire(command)
        own = await pid(first)
        waiting = asyncio.create_task(pooled.acquire(command))
        while pooled.counts.waiting == 0:
            await asyncio.sleep(0)
        pooled.release(first)
        pooled.release(second, discard=True)
        third = await waiting
        assert await pid(third) != own
        assert (pooled.counts.in_use, pooled.counts.dropped) == (1, 1)
        # The pool is closed meanwhile.
        fourth = await pooled.acquire(command)
        waiting = asyncio.create_task(pooled.acquire(command))
        while pooled.counts.waiting == 0:
            await asyncio.sleep(0)
        pooled.release(fourth)
    with pytest.raises(ConnectionClosed, match="the pool is closed"):
        await waiting


@coroutine
async def test_idle_connections_end_with_time_and_a_closed_pool_has_nothing(command: list[str]) -> None:
    async with pool(idle_timeout=0.05) as pooled:
        async with pooled.client(command) as client:
            pass
        while client._link is not None:
            await asyncio.sleep(0.005)
        assert (pooled.counts.closed_idle, pooled.counts.idle) == (1, 0)
    pooled = pool(max_connections=1)
    client = await pooled.acquire(command)
    waiting = asyncio.create_task(pooled.acquire(command))
    await asyncio.sleep(0)
    await pooled.close()
    with pytest.raises(ConnectionClosed, match="the pool is closed"):
        await waiting
    with pytest.raises(ConnectionClosed, match="the pool is closed"):
        await pooled.acquire(command)
    assert client._link is None
    pooled.release(client)


@coroutine
async def test_what_cannot_be_opened_leaves_no_place_behind(command: list[str]) -> None:
    async with pool(max_connections=1) as pooled:
        for _ in range(2):
            with pytest.raises(OSError):
                await pooled.acquire(["/nothing/here"])
        assert (pooled.counts.failed, pooled.counts.opening) == (2, 0)
        opening = asyncio.create_task(pooled.acquire(command))
        await asyncio.sleep(0.01)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        assert (pooled.counts.opening, pooled.counts.in_use) == (0, 0)
        with pytest.raises(TypeError, match="a pool connects to addresses"):
            await pooled.acquire(Server("here"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="wait_timeout"):
        pool(wait_timeout=-1)


def test_a_pool_works_under_trio(command: list[str]) -> None:
    import trio

    async def run() -> None:
        async with pool(max_connections=1) as pooled:

            async def call() -> None:
                async with pooled.client(command) as client:
                    await pid(client)

            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(call)
            assert (pooled.counts.opened, pooled.counts.reused) == (1, 4)

    with_timeout = trio.fail_after

    async def bounded() -> None:
        with with_timeout(30):
            await run()

    trio.run(bounded)
