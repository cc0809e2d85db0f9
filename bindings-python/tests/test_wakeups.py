"""The ways to wake an event loop: a descriptor, and a thread, as on systems whose loops watch no descriptors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys, threading
from mcpbolt import Client, Context, Server

server = Server("woken")

@server.tool
def plain(n: int) -> str:
    return str(n)

@server.tool
async def soon(n: int, context: Context) -> str:
    await asyncio.sleep(0)
    context.progress(1)
    return str(n)

async def all_of(client):
    calls = [client.call_tool(tool, {"n": n}) for n in range(100) for tool in ("plain", "soon")]
    assert [answer.text for answer in await asyncio.gather(*calls)] == [str(n) for n in range(100) for _ in range(2)]

async def main():
    async with Client(server) as client:
        await all_of(client)
    for address in ("http://127.0.0.1:0/mcp", "ws://127.0.0.1:0/mcp"):
        async with server.listening(address) as here, Client(here) as client:
            await all_of(client)
    # A thread ends a moment after it was told to.
    for _ in range(1000):
        waiting = [thread for thread in threading.enumerate() if thread.name == "mcpbolt-wake"]
        if not waiting:
            break
        await asyncio.sleep(0.01)
    print(server_fd(), len(waiting))

def server_fd():
    from mcpbolt import _core
    from mcpbolt._interpreter import Interpreter
    serving = _core.Serving.network(server._catalog(), Interpreter(), "tcp:127.0.0.1:0", "{}", None, False)
    serving.stop()
    return serving.wake().fileno() is None

if len(sys.argv) > 1:
    import trio
    async def trio_main():
        async with Client(server) as client:
            assert (await client.call_tool("plain", {"n": 1})).text == "1"
        print(server_fd(), 0)
    trio.run(trio_main)
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize("loop", [[], ["trio"]], ids=["asyncio", "trio"])
@pytest.mark.parametrize("is_portable", [False, True])
def test_both_ways_carry_every_call_and_leave_no_thread(is_portable: bool, loop: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MCPBOLT_PORTABLE_WAKEUPS"}
    if is_portable:
        environment["MCPBOLT_PORTABLE_WAKEUPS"] = "1"
    command = [sys.executable, "-c", PROGRAM, *loop]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.stderr == "" and ran.stdout.split() == [str(is_portable), "0"]
