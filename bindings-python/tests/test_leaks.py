"""Memory and references after many calls, cancellations and exceptions."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from mcpbolt import Client, Context, PeerError, Server, ToolError, engine

CALLS = int(os.environ.get("MCPBOLT_LEAK_CALLS", "4000"))
"""Half as many of each of five kinds are made; `cargo xtask soak --only python-leaks` makes a million in all."""
# The most memory and objects that may remain of all of them together.
LEFT_KIB = 3000
LEFT_OBJECTS = 200


def resident_kib() -> int:
    """Without what the allocator keeps for later: megabytes over HTTP, as many as connections were open at once."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class State:
    """The memory held at one time."""

    def __init__(self, things: tuple[object, ...]) -> None:
        gc.collect()
        self.references = [sys.getrefcount(thing) for thing in things]
        self.objects = len(gc.get_objects())
        self.kib = resident_kib()


def compare(what: str, before: State, after: State) -> None:
    kib, objects = after.kib - before.kib, after.objects - before.objects
    print(f"\n{what}: {kib:+} KiB resident, {objects:+} objects, after as many calls again")
    assert kib < LEFT_KIB
    assert objects < LEFT_OBJECTS
    assert after.references == before.references


@pytest.mark.parametrize("carrier", ["pair", "http"])
def test_calls_cancellations_and_exceptions_leave_nothing_behind(carrier: str) -> None:
    asyncio.run(calls(carrier))


async def calls(carrier: str) -> None:
    server = Server("leaks")
    held = {"a dict": "that every call gives back"}

    @server.tool
    def plain(text: str) -> str:
        return text

    @server.tool
    async def task(text: str, context: Context) -> dict[str, str]:
        context.progress(1)
        return held

    @server.tool
    def failing() -> None:
        raise ToolError("as ever")

    @server.tool
    async def waiting() -> None:
        await asyncio.sleep(60)

    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        if carrier == "pair":
            async with Client(server) as client:
                yield client
        else:
            async with server.listening("http://127.0.0.1:0/mcp") as address, Client(address) as client:
                yield client

    async with connected() as client:

        async def one(i: int) -> None:
            await client.call_tool("plain", {"text": f"text {i}"})
            await client.call_tool("task", {"text": "x"}, on_progress=lambda *_: None)
            await client.call_tool("failing")
            with suppress(PeerError):
                await client.call_tool("nobody")
            cancelled = asyncio.create_task(client.call_tool("waiting"))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)

        async def many(count: int) -> State:
            for start in range(0, count, 50):
                await asyncio.gather(*(one(i) for i in range(start, start + 50)))
            await asyncio.sleep(0.5)
            return State((held, task, failing, waiting, ToolError, PeerError))

        # As many over HTTP would take as many times longer as a call does there.
        count = CALLS if carrier == "pair" else CALLS // 8
        await many(count // 8)
        before = await many(count // 8)
        compare(f"{count // 4 * 5} calls, {carrier}", before, await many(count // 4))


def test_messages_that_are_read_written_or_refused_leave_nothing_behind() -> None:
    text = b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"list":[1,2.5,"\\u00e9",null,true],"%d":{"b":"c"}}}'
    wrong = [b'{"a":[1,{"b":"c"},tru]}', b'{"a":"\\ud800"}', b"[[[[1,2],3],", b'{"key":1e5000,"a":}']
    cycle: list[object] = []
    cycle.append(cycle)

    def many(count: int) -> State:
        for i in range(count):
            value = engine.loads(text % i)
            engine.dumps(value)
            engine.encode_response(i, value)
            engine.decode(text % i).params
            with suppress(ValueError):
                engine.loads(wrong[i % len(wrong)])
            with suppress(TypeError):
                engine.encode_request("a", "m", {"a": {1: 2}})
            if i % 100 == 0:
                with suppress(ValueError):
                    engine.dumps(cycle)
        return State((cycle,))

    many(CALLS)
    before = many(CALLS)
    compare(f"{CALLS * 6} messages", before, many(CALLS))
