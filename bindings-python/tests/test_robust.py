"""Handlers and programs with timeouts, other loops, forks and the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import anyio
import pytest

import mcpbolt
from mcpbolt import Client, Context, McpError, Server, ToolError
from mcpbolt import _errors as errors
from support import Raw, coroutine

SECONDS = 60


def run(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, **options)


WRONG = """
import json, sys
hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "wrong", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = hello if asked["method"] == "initialize" else {"isError": False}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@coroutine
async def test_results_that_are_not_what_the_revisions_say_are_refused_where_that_is_wanted() -> None:
    """R-S14-05, R-TOL-06."""
    command = [sys.executable, "-c", WRONG]
    async with Client(command, opening="handshake", check_results=True) as client:
        with pytest.raises(errors.BadAnswer, match="the result of tools/call: content: it is missing"):
            await client.call_tool("x")
    async with Client(command, opening="handshake") as client:
        assert (await client.call_tool("x")).content == []


def scopes() -> Server:
    server = Server("scopes")

    @server.tool
    async def anyio_scope() -> str:
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(60)
        return f"cancelled: {scope.cancelled_caught}"

    @server.tool
    async def anyio_group() -> str:
        done: list[int] = []

        async def one(number: int) -> None:
            await anyio.sleep(0.001)
            done.append(number)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)
        return str(sorted(done))

    @server.tool
    async def anyio_thread() -> str:
        return str(await anyio.to_thread.run_sync(threading.get_ident) != threading.get_ident())

    @server.tool
    async def waits() -> str:
        """Ends by its client's cancel alone, with the scope around it."""
        try:
            with anyio.CancelScope():
                await anyio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    @server.tool
    async def wait_for() -> str:
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        except asyncio.TimeoutError:
            return "timed out"
        return "never"

    if sys.version_info >= (3, 11):

        @server.tool
        async def timeout() -> str:
            try:
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(60)
            except TimeoutError:
                return "timed out"
            return "never"

        @server.tool
        async def task_group() -> str:
            async def fail() -> None:
                raise KeyError("one")

            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(60))
                    group.create_task(fail())
            except BaseExceptionGroup as group:
                assert [type(error) for error in group.exceptions] == [KeyError]
                return "failed together"
            return "never"

    ended: list[str] = []
    server.ended = ended  # type: ignore[attr-defined]
    return server


@pytest.mark.parametrize("address", [None, "http://127.0.0.1:0/mcp"])
@coroutine
async def test_scopes_of_time_and_groups_of_tasks_behave_inside_handlers(address: str | None) -> None:
    server = scopes()
    expected = {
        "anyio_scope": "cancelled: True",
        "anyio_group": "[0, 1, 2, 3, 4]",
        "anyio_thread": "True",
        "wait_for": "timed out",
    }
    if sys.version_info >= (3, 11):
        expected.update(timeout="timed out", task_group="failed together")

    async def check(client: Client) -> None:
        found = await asyncio.gather(*(client.call_tool(name) for name in expected))
        assert [result.text for result in found] == list(expected.values())
        # Nor does a call's end disturb what the program around the client scopes.
        with anyio.move_on_after(0.05) as scope:
            await client.call_tool("waits")
        assert scope.cancelled_caught
        while not server.ended:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)

    if address is None:
        async with Client(server) as client:
            await check(client)
    else:
        async with server.listening(address) as here, Client(here) as client:
            await check(client)


def test_every_error_has_one_base_and_pickles_what_it_says() -> None:
    raised = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(raised) > 12
    for kind in raised:
        assert issubclass(kind, McpError), kind
        assert kind.scope in ("message", "request", "connection") and kind.origin in ("caller", "engine", "peer", "io")
        assert kind.__name__ == "McpError" or kind.__name__ in mcpbolt.__all__
    natural = {
        errors.RequestTimeout: TimeoutError,
        errors.ConnectionClosed: ConnectionError,
        errors.CarrierError: ConnectionError,
        errors.ResourceNotFound: LookupError,
        errors.DecodeError: ValueError,
        errors.BadAnswer: ValueError,
        errors.Misuse: RuntimeError,
        errors.Unsupported: NotImplementedError,
    }
    assert all(issubclass(kind, host) for kind, host in natural.items())


@coroutine
async def test_threads_share_a_server() -> None:
    """Clients of one server in many threads, each with a loop of its own."""
    server = Server("shared")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool
    async def loop(context: Context) -> str:
        await asyncio.sleep(0)
        return str(threading.get_ident())

    @server.tool
    def fail() -> None:
        raise ToolError("no")

    async def many(number: int) -> None:
        async with Client(address) as client:
            calls = [client.call_tool("add", {"a": number, "b": i}) for i in range(50)]
            assert [result.text for result in await asyncio.gather(*calls)] == [str(number + i) for i in range(50)]
            assert (await client.call_tool("fail")).text == "no"
            assert (await client.call_tool("loop")).text == str(main)

    main = threading.get_ident()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            asyncio.run(many(number))
        except BaseException as error:
            failures.append(error)

    async with server.listening("http://127.0.0.1:0/mcp") as address:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            await asyncio.sleep(0.01)
        assert not failures, failures


FORK = """
import asyncio, os, sys, warnings
from mcpbolt import Client, Server
warnings.simplefilter('ignore')

server = Server('forks')

@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)

async def one():
    async with Client(server) as client:
        return (await client.call_tool('add', {'a': 1, 'b': 2})).text
"""


def test_a_process_may_fork_before_and_after_it_serves() -> None:
    """As the README states; not while it serves."""
    code = FORK + (
        "assert asyncio.run(one()) == '3'\n"
        "if (pid := os.fork()) == 0:\n"
        "    assert asyncio.run(one()) == '3'\n"
        "    os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "print(asyncio.run(one()))"
    )
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_a_child_of_a_fork_that_serves_nothing_leaves_its_parent_alone() -> None:
    """The child has the memory and none of the threads: it may end, and exec, without touching what is served."""
    code = FORK + (
        "async def main():\n"
        "    async with server.listening('http://127.0.0.1:0/mcp') as address, Client(address) as client:\n"
        "        if (pid := os.fork()) == 0:\n"
        "            os.execv('/bin/sh', ['sh', '-c', 'exit 7'])\n"
        "        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "        print((await client.call_tool('add', {'a': 1, 'b': 2})).text)\n"
        "asyncio.run(main())"
    )
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


ENDING = """
import asyncio, sys, threading, time
from mcpbolt import Client, Server

server = Server('ending')

@server.tool
def block(seconds: float) -> str:
    time.sleep(seconds)
    return 'late'

@server.tool
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return 'late'

async def begin(client):
    calls = [asyncio.ensure_future(client.call_tool(name, {'seconds': 60})) for name in ('block', 'nap', 'nap')]
    await asyncio.sleep(0.2)
    return calls
"""
ENDS = {
    "return": "kept = []\nasync def main():\n    client = Client(server)\n    await client.__aenter__()\n    kept.append((client, await begin(client)))\nasyncio.run(main())",
    "exit": "async def main():\n    async with Client(server) as client:\n        await begin(client)\n        import os; os._exit(3)\nasyncio.run(main())",
    "raise": "async def main():\n    async with server.listening('http://127.0.0.1:0/mcp', grace=0.1) as address, Client(address) as client:\n        await begin(client)\n        raise SystemExit(3)\nasyncio.run(main())",
    "daemon": "def work():\n    async def main():\n        async with Client(server) as client:\n            await begin(client)\n            ready.set()\n            await asyncio.sleep(60)\n    asyncio.run(main())\nready = threading.Event()\nthreading.Thread(target=work, daemon=True).start()\nready.wait()",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_interpreter_ends_with_calls_in_flight(how: str) -> None:
    code = ENDING + ENDS[how]
    done = run(code)
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr)
    assert "Fatal Python error" not in done.stderr and "panicked" not in done.stderr, done.stderr


UVLOOP = """
import asyncio, signal, uvloop
from mcpbolt import Client, Server

server = Server('uv')

@server.tool
async def nap(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    finally:
        assert type(asyncio.get_running_loop()).__module__.startswith('uvloop')
    return 'napped'

@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)
"""


def test_uvloop_drives_servers_and_clients() -> None:
    pytest.importorskip("uvloop")
    code = UVLOOP + (
        "async def main():\n"
        "    for address in (None, 'http://127.0.0.1:0/mcp', 'tcp:127.0.0.1:0'):\n"
        "        if address is None:\n"
        "            async with Client(server) as client:\n"
        "                print((await client.call_tool('nap', {'seconds': 0})).text)\n"
        "        else:\n"
        "            async with server.listening(address) as here, Client(here) as client:\n"
        "                many = [client.call_tool('add', {'a': 1, 'b': i}) for i in range(200)]\n"
        "                print(sum(int(result.text) for result in await asyncio.gather(*many)))\n"
        "uvloop.run(main())"
    )
    done = run(code)
    assert (done.returncode, done.stdout.split()) == (0, ["napped", "20100", "20100"]), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_a_server_on_uvloop(number: signal.Signals) -> None:
    pytest.importorskip("uvloop")
    code = UVLOOP + "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\nserver.run(grace=5)"
    with Raw(code, subprocess.PIPE) as served:
        served.call(1, "nap", seconds=0.3)
        served.call(2, "nap", seconds=0)
        assert served.receive()["id"] == 2
        os.kill(served.process.pid, number)
        status, answers, stderr = served.end(20)
        assert status == 0 and [answer["id"] for answer in answers] == [1], stderr
        assert "Traceback" not in stderr


def test_tools_of_an_engine_run_on_trio_by_hand() -> None:
    """A program with a wire of its own drives the engine, which knows no loop."""
    pytest.importorskip("trio")
    code = """
import trio
from mcpbolt.engine import Answered, Connection, Request

async def drive(connection, stream, handle):
    async def write():
        if data := connection.output():
            await stream.send_all(data)
    await write()
    async for data in stream:
        connection.feed(data)
        for event in connection.events():
            if handle(event):
                return
        await write()

def serve(event):
    if isinstance(event, Request):
        event.respond({'content': [{'type': 'text', 'text': 'from trio'}]})

async def main():
    left, right = trio.testing.memory_stream_pair()
    server = Connection('server', 'trio', capabilities={'tools': {}})
    client = Connection('client', 'trio', revisions=['2025-11-25'])

    def ask(event):
        if type(event).__name__ == 'Opened':
            client.request('tools/call', {'name': 'x'})
        if isinstance(event, Answered):
            print(event.message.result['content'][0]['text'])
            nursery.cancel_scope.cancel()
            return True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, server, left, serve)
        nursery.start_soon(drive, client, right, ask)

import trio.testing
trio.run(main)
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "from trio\n"), done.stderr


