"""Memory and references after many calls, cancellations and exceptions."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from contextlib import suppress

from mcpbolt import Client, Context, PeerError, Server, ToolError
from support import coroutine

CALLS = int(os.environ.get("MCPBOLT_LEAK_CALLS", "4000"))
"""Half as many of each of five kinds are made; `cargo xtask soak` makes a million in all."""


def resident_kib() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@coroutine
async def test_calls_cancellations_and_exceptions_leave_nothing_behind() -> None:
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

    async with Client(server) as client:

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

        def references() -> list[int]:
            return [sys.getrefcount(thing) for thing in (held, task, failing, waiting, ToolError, PeerError)]

        async def many(count: int) -> tuple[int, int, list[int]]:
            for start in range(0, count, 50):
                await asyncio.gather(*(one(i) for i in range(start, start + 50)))
            await asyncio.sleep(0.05)
            gc.collect()
            return resident_kib(), len(gc.get_objects()), references()

        await many(CALLS // 8)
        memory, objects, held_by = await many(CALLS // 8)
        after = await many(CALLS // 4)
        assert after[0] - memory < 3000, "KiB"
        assert after[1] - objects < CALLS // 20, "less than one for every five calls of each kind"
        assert after[2] == held_by
