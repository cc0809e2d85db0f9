"""Long messages each way at once, through the pipes of a child."""

from __future__ import annotations

import asyncio
import resource
import sys

from mcpbolt import _core

from support import client, coroutine

# Builds with debug assertions are little optimised, and read some MiB a second.
BYTES = (8 if hasattr(_core, "_panic_at") else 64) << 20
SERVER = """
import resource
from mcpbolt import Server

server = Server('large')

@server.tool
def echo(text: str) -> str:
    return text

@server.tool
def make(bytes: int) -> str:
    return 'y' * bytes

@server.tool
def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

server.run()
"""


@coroutine
async def test_large_messages_cross_each_other() -> None:
    text = "x" * BYTES
    async with client([sys.executable, "-c", SERVER]) as connected:
        before = int((await connected.call_tool("peak")).text)
        # While one is read there, the other's answer is on its way here.
        made, echoed = await asyncio.gather(
            connected.call_tool("make", {"bytes": BYTES}), connected.call_tool("echo", {"text": text})
        )
        assert len(made.text) == BYTES and made.text.count("y") == BYTES
        assert echoed.text == text
        grown = int((await connected.call_tool("peak")).text) - before
        # In the engine: a message and the buffer it is read into, and the answers that wait. In
        # Python: the text and its copies.
        print(f"the server grew by {grown >> 10} MiB; this process peaks at {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")
        assert grown < 6 * (BYTES >> 10)
