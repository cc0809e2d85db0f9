"""Servers and clients that are made and dropped, closed or not, leave nothing behind.

`MCPBOLT_LEAK_CALLS=N`, as in the soak, has them made in the numbers of `KINDS`: 100,000 in memory, 5,000 on sockets and
on HTTP, 300 children.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mcpbolt import Client, Context, Server, engine
from mcpbolt.chain import External, Front

from test_leaks import resident_kib

IS_SOAK = "MCPBOLT_LEAK_CALLS" in os.environ
AT_ONCE = 10
# The most memory and objects that may remain of all of them together.
LIMITS = {"kib": 6000, "objects": 300}
CHILD = """
from mcpbolt import Context, Server
server = Server("child")
@server.tool
def plain(text: str) -> str:
    return text
@server.tool
async def task(context: Context) -> str:
    return "done"
@server.resource("memo://{name}")
def memo(name: str) -> str:
    return name
server.run()
"""

alive: weakref.WeakSet[Any] = weakref.WeakSet()


def made() -> Server:
    """A server in cycles: with its functions, its contexts, its hooks and its clients."""
    server: Any = Server("lives", list_changes=True, on_initialized=lambda client: server, on_roots_changed=lambda c: server)
    server.contexts = []

    @server.tool
    def plain(text: str) -> str:
        return text if server else ""

    @server.tool
    async def task(context: Context) -> str:
        server.contexts.append(context)
        return "done" if server else ""

    @server.resource("memo://{name}")
    def memo(name: str, context: Context) -> str:
        server.contexts.append(context)
        return name

    alive.add(server)
    return server


async def used(client: Client, server: Any = None) -> None:
    alive.add(client)
    if server is not None:
        # A server that serves is there, and so is a client of its own that it has.
        server.client = client
    await client.read_resource("memo://one")
    assert (await client.call_tool("plain", {"text": "x"})).text == "x"
    assert (await client.call_tool("task", on_progress=lambda *_: client)).text == "done"


def client_of(server: Any) -> Client:
    """One in cycles with its callbacks."""
    return Client(server, on_notification=lambda *_: server, on_sampling=lambda _: str(server), on_closed=lambda _: server)


async def never_connected(_: int) -> None:
    server = made()
    server._catalog()
    server.client = client_of(server)


async def in_memory(_: int) -> None:
    server = made()
    async with client_of(server) as client:
        await used(client, server)


async def in_memory_dropped(_: int) -> None:
    server = made()
    await used(await client_of(server).__aenter__())


async def on(address: str, is_closed: bool = True) -> None:
    server: Any = made()
    async with server.listening(address, grace=0.1) as server.address, AsyncExitStack() as stack:
        client = Client(server.address, on_notification=lambda *_: server)
        await used(await stack.enter_async_context(client), server if is_closed else None)
        if not is_closed:
            stack.pop_all()


async def mounted(_: int) -> None:
    server: Any = made()
    server.app = server.asgi()
    async with server.app.lifespan():
        pass


async def child(_: int) -> None:
    async with Client([sys.executable, "-c", CHILD], inherit_env=["PYTHONPATH"]) as client:
        await used(client)


async def child_dropped(_: int) -> None:
    client = Client([sys.executable, "-c", CHILD], inherit_env=["PYTHONPATH"])
    await used(await client.__aenter__())


def fronted() -> Client:
    """A client of a front before a server of the program and a child."""
    child = External([sys.executable, "-c", CHILD], prefix="child", inherit_env=["PYTHONPATH"])
    return Client(Front(External(made())).join(child))


async def used_fronted(client: Client) -> None:
    await used(client)
    assert (await client.call_tool("child_plain", {"text": "x"})).text == "x"


async def in_front(_: int) -> None:
    async with fronted() as client:
        await used_fronted(client)


async def in_front_dropped(_: int) -> None:
    await used_fronted(await fronted().__aenter__())


async def driven(_: int) -> None:
    """A connection that a program drives itself, and its events, in a cycle with each other."""
    server, client = engine.Connection("server", "s", capabilities={"tools": {}}), engine.Connection("client", "c")
    for turn in range(6):
        server.feed(client.output())
        client.feed(server.output())
        if turn == 3:
            client.request("tools/call", {"name": "x"})
    for event in [*server.events(), *client.events()]:
        if isinstance(event, engine.Request) and isinstance(event.message.params, dict):
            event.message.params["event"] = event


class Kind(NamedTuple):
    make: Callable[[int], Awaitable[None]]
    few: int
    most: int


KINDS = {
    "never connected": Kind(never_connected, 150, 20_000),
    "in memory": Kind(in_memory, 200, 100_000),
    "in memory, dropped": Kind(in_memory_dropped, 100, 20_000),
    "HTTP": Kind(lambda _: on("http://127.0.0.1:0/mcp"), 20, 5000),
    "HTTP, dropped": Kind(lambda _: on("http://127.0.0.1:0/mcp", False), 20, 1000),
    "sockets": Kind(lambda i: on(f"unix:{FOLDER}/{i}"), 20, 5000),
    "sockets, dropped": Kind(lambda i: on(f"unix:{FOLDER}/{i}", False), 20, 1000),
    "ASGI": Kind(mounted, 20, 5000),
    "children": Kind(child, 3, 200),
    "children, dropped": Kind(child_dropped, 3, 100),
    "fronts": Kind(in_front, 3, 100),
    "fronts, dropped": Kind(in_front_dropped, 3, 100),
    "driven": Kind(driven, 200, 20_000),
}
FOLDER = Path()


class State(NamedTuple):
    """The objects alive at one time."""

    alive: int
    threads: int
    descriptors: int
    children: int
    objects: int
    kib: int


def now() -> State:
    count = [len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")]
    children = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            children += len(file.read().split())
    return State(len(alive), *count, children, len(gc.get_objects()), 0)


async def left() -> State:
    """Once all that is over has ended: the collector runs, what it drops is closed, threads end."""
    before = None
    for _ in range(100):
        gc.collect()
        await asyncio.sleep(0.05)
        if before == (state := now()):
            break
        before = state
    return state._replace(kib=resident_kib())


async def many(make: Callable[[int], Awaitable[None]], times: int, first: int = 0) -> State:
    for start in range(first, first + times, AT_ONCE):
        await asyncio.gather(*(make(i) for i in range(start, min(start + AT_ONCE, first + times))))
        if start % 200 == 0:
            gc.collect()
            await asyncio.sleep(0)
    return await left()


@pytest.mark.skipif(sys.platform != "linux", reason="by /proc")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_and_dropped_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    global FOLDER
    FOLDER = tmp_path
    make, few, most = KINDS[kind]
    times = most if IS_SOAK else few

    async def run() -> None:
        await many(make, few)
        before = await many(make, few, 1_000_000)
        # What leaks remains each time; memory that the allocator keeps for threads remains once.
        for attempt in (2, 3, 4):
            after = await many(make, times, attempt * 1_000_000)
            left = {name: getattr(after, name) - getattr(before, name) for name in State._fields} | {"alive": after.alive}
            print(f"\n{kind}: {left['kib']:+} KiB resident, {left['objects']:+} objects, after {times} more")
            if all(left[name] <= LIMITS.get(name, 0) for name in left):
                return
            before = after
        raise AssertionError(left)

    asyncio.run(run())


def test_the_server_behind_a_front_whose_client_is_dropped_hears_of_its_end() -> None:
    """Descriptors of dropped clients get the numbers of those of the servers that end meanwhile."""
    count, ended = 20, []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        ended.append(server)

    async def one() -> None:
        server = Server("behind", lifespan=lifespan)
        server.tool(lambda: "done", name="done", description="Is done.")
        client = await Client(Front(External(server)), on_notification=lambda *_: server).__aenter__()
        assert (await client.call_tool("done")).text == "done"

    async def run() -> None:
        for _ in range(count):
            await one()
        for _ in range(1000):
            if len(ended) == count:
                return
            gc.collect()
            await asyncio.sleep(0.05)
        raise AssertionError(f"{len(ended)} of {count} have ended")

    asyncio.run(run())


def test_a_client_is_kept_while_somebody_waits_for_an_answer() -> None:
    async def run() -> None:
        server = Server("waits")

        @server.tool
        async def slow() -> str:
            await asyncio.sleep(0.3)
            return "slow"

        told: list[str] = []

        async def wait() -> None:
            client = await Client(server).__aenter__()
            told.append((await client.call_tool("slow")).text)

        # Event loops know tasks weakly.
        waiting = weakref.ref(asyncio.ensure_future(wait()))
        for _ in range(40):
            gc.collect()
            await asyncio.sleep(0.02)
        assert told == ["slow"]
        assert waiting() is None

    asyncio.run(run())
