"""Servers on HTTP: every revision at one address, many clients at once, and the end."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client as TheirClient

from mcpbolt import Context, ServeOptions, Server
from support import coroutine
from wire import STATELESS, Wire, call

ANY = "http://127.0.0.1:0/mcp"
SESSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Counts:
    """The outcomes of calls."""

    def __init__(self) -> None:
        self.active = self.peak = self.cancelled = 0

    async def reach(self, **counts: int) -> None:
        while any(getattr(self, name) != count for name, count in counts.items()):
            await asyncio.sleep(0.005)


def serving(counts: Counts) -> Server:
    server = Server("http", "1.0.0")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool(inline=True)
    def inline(text: str) -> str:
        return text

    @server.tool
    async def wait(seconds: float) -> str:
        counts.active += 1
        counts.peak = max(counts.peak, counts.active)
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            counts.cancelled += 1
            raise
        finally:
            counts.active -= 1
        return "waited"

    @server.tool
    def block(context: Context) -> str:
        counts.active += 1
        while not context.cancelled:
            time.sleep(0.005)
        counts.active -= 1
        counts.cancelled += 1
        return "too late"

    @server.tool
    async def steps(context: Context) -> str:
        for step in range(3):
            context.progress(step, 3)
            await asyncio.sleep(0)
        return "all"

    return server


def text(answer: dict[str, Any]) -> str:
    found: str = answer["result"]["content"][0]["text"]
    return found


@coroutine
async def test_a_request_that_stands_alone_is_answered_by_every_kind_of_function() -> None:
    async with serving(Counts()).listening(ANY) as address, await Wire.open(address) as wire:
        assert text(await (await wire.stateless(call(1, "add", a=1, b=2))).json()) == "3"
        assert text(await (await wire.stateless(call("é", "inline", text="é"))).json()) == "é"
        assert text(await (await wire.stateless(call(3, "wait", seconds=0))).json()) == "waited"
        streamed = await wire.stateless(call(4, "steps"), progressToken="p")
        *progress, answer = [event async for event in streamed.events()]
        assert [one["params"]["progress"] for one in progress] == [0, 1, 2]
        assert text(answer) == "all"
        listed = await (await wire.stateless({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})).json()
        assert len(listed["result"]["tools"]) == 5
        unknown = await wire.stateless({"jsonrpc": "2.0", "id": 6, "method": "ping"})
        assert unknown.status == 404 and (await unknown.json())["error"]["code"] == -32601


@pytest.mark.parametrize("revision", SESSIONS)
@coroutine
async def test_a_session_begins_and_ends(revision: str) -> None:
    async with serving(Counts()).listening(ANY) as address, await Wire.open(address) as wire:
        session = await wire.begin(revision)
        assert (await (await wire.post(PING, **session)).json())["result"] == {}
        assert text(await (await wire.post(call(2, "add", a=1, b=2), **session)).json()) == "3"
        message = call(3, "steps")
        message["params"]["_meta"] = {"progressToken": 7}
        *progress, answer = [event async for event in (await wire.post(message, **session)).events()]
        assert [one["params"]["progressToken"] for one in progress] == [7, 7, 7]
        assert text(answer) == "all"
        assert (await wire.send("DELETE", **session)).status == 204
        assert (await wire.post(PING, **session)).status == 404


@coroutine
async def test_a_client_of_the_first_revision_reads_all_answers_on_one_stream() -> None:
    async with serving(Counts()).listening(ANY) as address, await Wire.open(address) as wire:
        stream = await wire.send("GET", accept="text/event-stream")
        chunks = stream.chunks()
        first = (await anext(chunks)).decode()
        assert first.startswith("event: endpoint\n")
        path = first.split("data: ")[1].split("\n")[0]
        async with await Wire.open(address) as posts:
            params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            assert (await posts.send("POST", json.dumps(hello).encode(), path)).status == 202
            assert b'"2024-11-05"' in await anext(chunks)
            assert (await posts.send("POST", json.dumps(call(2, "add", a=1, b=2)).encode(), path)).status == 202
            assert b'"text":"3"' in await anext(chunks)


@coroutine
async def test_a_thousand_calls_are_carried_out_at_once() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    server, counts, together = serving(Counts()), Counts(), asyncio.Event()

    @server.tool
    async def meet() -> str:
        counts.active += 1
        if counts.active == 1000:
            together.set()
        await together.wait()
        return "met"

    try:
        async with server.listening(ANY) as address:

            async def one(number: int) -> None:
                async with await Wire.open(address) as wire:
                    assert text(await (await wire.stateless(call(number, "meet"))).json()) == "met"

            await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(1000))), 100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@coroutine
async def test_who_leaves_cancels_what_stands_alone_and_not_a_session() -> None:
    counts = Counts()
    async with serving(counts).listening(ANY) as address:
        for tool, arguments in (("wait", {"seconds": 60}), ("block", {})):
            wire = await Wire.open(address)
            asking = asyncio.ensure_future(wire.stateless(call(1, tool, **arguments)))
            await counts.reach(active=1)
            wire.close()
            await counts.reach(active=0)
            asking.cancel()
        assert counts.cancelled == 2
        wire = await Wire.open(address)
        session = await wire.begin("2025-11-25")
        asking = asyncio.ensure_future(wire.post(call(1, "wait", seconds=60), **session))
        await counts.reach(active=1)
        wire.close()
        asking.cancel()
        await asyncio.sleep(0.2)
        assert counts.cancelled == 2
        async with await Wire.open(address) as wire:
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            assert (await wire.post(cancel, **session)).status == 202
        await counts.reach(active=0)
        assert counts.cancelled == 3


@coroutine
async def test_an_interpreter_that_is_held_delays_nothing_that_needs_none() -> None:
    server = serving(Counts())
    held = threading.Event()

    @server.tool
    def hold() -> str:
        held.set()
        # PyDLL keeps the interpreter's lock while the function runs.
        ctypes.PyDLL(None).usleep(1_500_000)
        return "held"

    code = """
import http.client, json, sys, time
address, session = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
took = []
for number in range(40):
    client = http.client.HTTPConnection(address, timeout=5)
    began = time.monotonic()
    method = ["ping", "tools/list", "no such"][number % 3]
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    client.request("POST", "/mcp", body, headers)
    assert json.loads(client.getresponse().read())["id"] == number
    took.append(time.monotonic() - began)
    time.sleep(0.01)
print(max(took))
"""
    async with server.listening(ANY) as address, await Wire.open(address) as wire:
        session = (await wire.begin("2025-11-25"))["mcp_session_id"]
        other = subprocess.Popen(
            [sys.executable, "-c", code, address.split("/")[2], session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdin and other.stdout
        assert await asyncio.to_thread(other.stdout.readline) == "ready\n"
        other.stdin.write("go\n")
        other.stdin.flush()
        assert text(await (await wire.stateless(call(1, "hold"))).json()) == "held"
        out, _ = await asyncio.to_thread(other.communicate)
    # A request that waited for the interpreter would take most of the time for which it is held.
    assert held.is_set() and float(out) < 0.75


@coroutine
async def test_servers_share_a_process_and_each_has_one_lifespan() -> None:
    seen: list[str] = []

    def server(name: str) -> Server:
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncIterator[str]:
            seen.append(f"{name} begins")
            yield name
            seen.append(f"{name} ends")

        made = Server(name, lifespan=lifespan)

        @made.tool
        def who(context: Context) -> str:
            return f"{context.state} {made.name}"

        return made

    async with server("a").listening(ANY) as first, server("b").listening(ANY) as second:
        assert first != second
        for _ in range(2):
            for address, name in ((first, "a"), (second, "b")):
                async with await Wire.open(address) as wire:
                    assert text(await (await wire.stateless(call(1, "who"))).json()) == f"{name} {name}"
                    session = await wire.begin("2025-06-18")
                    assert text(await (await wire.post(call(1, "who"), **session)).json()) == f"{name} {name}"
    assert seen == ["a begins", "b begins", "b ends", "a ends"]


@coroutine
async def test_only_its_own_names_reach_a_server() -> None:
    options = ServeOptions(hosts=["example.com"], origins=["https://app.example"], max_message_bytes=1000)
    async with serving(Counts()).listening(ANY, options=options) as address:

        async def status(message: object, **headers: str) -> int:
            async with await Wire.open(address) as wire:
                return (await wire.post(message, **headers)).status

        own = {"host": "example.com:1", "origin": "https://app.example"}
        assert await status(PING) == 400  # a session is missing
        assert await status(PING, **own) == 400
        assert await status(PING, host="evil.example") == 403
        assert await status(PING, **{**own, "origin": "https://evil.example"}) == 403
        assert await status({**PING, "params": {"long": "x" * 1000}}, **own) == 413
    with pytest.raises(TypeError, match="one string"):
        ServeOptions(hosts="example.com")


@coroutine
async def test_a_long_message_over_the_budget_is_refused_and_a_short_one_is_served() -> None:
    server = Server("small", max_bytes=1 << 17)

    @server.tool
    def length(text: str) -> int:
        return len(text)

    async with server.listening(ANY) as address:
        async with await Wire.open(address) as wire:
            refused = await wire.stateless(call(1, "length", text="x" * 200_000))
            assert (refused.status, refused.headers.get("retry-after")) == (503, "1")
        async with await Wire.open(address) as wire:
            assert text(await (await wire.stateless(call(1, "length", text="short"))).json()) == "5"
    with pytest.raises(ValueError, match="max_bytes"):
        async with Server("none", max_bytes=0).listening(ANY):
            pass


@coroutine
async def test_a_server_is_not_where_another_listens() -> None:
    server = serving(Counts())
    async with server.listening(ANY) as address:
        with pytest.raises(OSError):
            async with server.listening(address):
                pass
        async with await Wire.open(address) as wire:
            assert text(await (await wire.stateless(call(1, "add", a=1, b=2))).json()) == "3"
    async with server.listening(address) as again:
        assert again == address
    for wrong in ("", "localhost", "ftp://localhost", "http://localhost:99999"):
        with pytest.raises((ValueError, OSError)):
            async with server.listening(wrong):
                pass


@coroutine
async def test_leaving_answers_what_is_under_way() -> None:
    counts = Counts()
    async with serving(counts).listening(ANY) as address:
        wire, late = await Wire.open(address), await Wire.open(address)
        asking = asyncio.ensure_future(wire.stateless(call(1, "wait", seconds=0.3)))
        await counts.reach(active=1)
    assert text(await (await asking).json()) == "waited"
    wire.close()
    late.close()
    with pytest.raises(OSError):
        await Wire.open(address)
    async with serving(counts).listening(ANY, grace=0.2) as address:
        wire = await Wire.open(address)
        asking = asyncio.ensure_future(wire.stateless(call(1, "wait", seconds=60)))
        await counts.reach(active=1)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    await counts.reach(active=0, cancelled=1)
    with pytest.raises((OSError, EOFError)):
        await (await asking).json()
    wire.close()


SERVER = """
import asyncio, sys, time
from mcpbolt import Server

server = Server("process")

@server.tool
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"

@server.tool
def quick() -> str:
    return "quick"

@server.tool(inline=True)
def wedge() -> None:
    while True:
        time.sleep(1)

server.run("http://127.0.0.1:0/mcp", grace=float(sys.argv[1]))
"""


class Process:
    """Such a server."""

    def __init__(self, grace: float) -> None:
        command = [sys.executable, "-c", SERVER, str(grace)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        said = self.process.stderr.readline()
        assert said.startswith("process listens on http://127.0.0.1:")
        self.address = said.split()[-1]

    async def end(self) -> tuple[int, str]:
        _, err = await asyncio.to_thread(self.process.communicate, timeout=20)
        return self.process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@coroutine
async def test_a_signal_ends_the_process_in_good_order(number: signal.Signals) -> None:
    server = Process(grace=5)
    async with await Wire.open(server.address) as wire, await Wire.open(server.address) as other:
        session = await other.begin("2025-11-25")
        stream = await other.send("GET", **session)
        asking = asyncio.ensure_future(wire.stateless(call(1, "wait", seconds=0.5)))
        await asyncio.sleep(0.2)
        os.kill(server.process.pid, number)
        assert text(await (await asking).json()) == "waited"
        assert [event async for event in stream.events()] == []
    assert await server.end() == (0, "")


@coroutine
async def test_a_wedged_handler_does_not_keep_the_process() -> None:
    server = Process(grace=0.2)
    async with await Wire.open(server.address) as wire:
        asking = asyncio.ensure_future(wire.stateless(call(1, "wedge")))
        await asyncio.sleep(0.3)
        os.kill(server.process.pid, signal.SIGTERM)
        # Python's own handler of the signal needs the thread that is wedged.
        status, _ = await server.end()
        asking.cancel()
    assert status == 1


@coroutine
async def test_the_official_client_speaks_with_it() -> None:
    for revision in ("2025-11-25", STATELESS):
        async with serving(Counts()).listening(ANY) as address:
            async with TheirClient(address, mode="legacy" if revision < STATELESS else "auto") as client:
                assert client.protocol_version == revision
                (block,) = (await client.call_tool("add", {"a": 1, "b": 2})).content
                assert block.type == "text" and block.text == "3"
                results = await asyncio.gather(*(client.call_tool("wait", {"seconds": 0.05}) for _ in range(20)))
                assert not any(result.is_error for result in results)


TWICE = """
import signal
from mcpbolt import Server

def own(*_):
    print("own", flush=True)

signal.signal(signal.SIGTERM, own)
server = Server("process")

@server.tool
def quick() -> str:
    return "quick"

for _ in range(4):
    server.run("http://127.0.0.1:0/mcp")
    assert signal.getsignal(signal.SIGTERM) is own
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.set_wakeup_fd(-1) == -1
    print("ended", flush=True)
for _ in range(2):
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_signals_end_each_run_of_a_process_and_are_the_programs_between_them() -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", TWICE], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout and process.stderr
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            assert "listens on" in process.stderr.readline()
            process.send_signal(number)
            ended = process.stdout.readline()
            assert ended == "ended\n", process.stderr.read() if not ended else ended
        for number, said in ((signal.SIGTERM, "own\n"), (signal.SIGINT, "interrupted\n")):
            time.sleep(0.2)
            process.send_signal(number)
            assert process.stdout.readline() == said
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has no timeout before")
@coroutine
async def test_tasks_of_calls_are_tasks_in_every_respect() -> None:
    server = Server("tasks")
    seen: list[str] = []

    @server.tool
    async def limited(seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(60)
        except TimeoutError:
            return "too late"
        except asyncio.CancelledError:
            seen.append("limited")
            raise

    @server.tool
    async def parts(seconds: float) -> str:
        async def part(name: str) -> None:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                seen.append(name)
                raise

        async with asyncio.TaskGroup() as group:
            group.create_task(part("a"))
            group.create_task(part("b"))
        return "whole"

    @server.tool
    async def fails() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    @server.tool
    async def gives_up() -> None:
        task = asyncio.current_task()
        assert task
        task.cancel()
        await asyncio.sleep(60)

    async with server.listening(ANY) as address:
        async with await Wire.open(address) as wire:
            assert text(await (await wire.stateless(call(1, "limited", seconds=0.01))).json()) == "too late"
            assert text(await (await wire.stateless(call(2, "parts", seconds=0.01))).json()) == "whole"
            for name, told in (("fails", "the tool failed unexpectedly"), ("gives_up", "the server cancelled the call")):
                failed = await (await wire.stateless(call(3, name))).json()
                assert failed["result"]["isError"] and text(failed) == told
        for name, cancelled in (("limited", ["limited"]), ("parts", ["a", "b"])):
            seen.clear()
            wire = await Wire.open(address)
            asking = asyncio.ensure_future(wire.stateless(call(4, name, seconds=60)))
            await asyncio.sleep(0.2)
            wire.close()
            while sorted(seen) != cancelled:
                await asyncio.sleep(0.005)
            asking.cancel()


@pytest.mark.parametrize("when", ["begins", "ends", "within"])
@coroutine
async def test_what_fails_in_a_lifespan_is_raised_and_nothing_is_left(when: str) -> None:
    class Failure(Exception):
        pass

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if when == "begins":
            raise Failure
        yield
        if when == "ends":
            raise Failure

    address = None
    with pytest.raises(Failure):
        async with Server("fails", lifespan=lifespan).listening(ANY) as address:
            async with await Wire.open(address) as wire:
                assert (await wire.post(PING)).status == 400
            if when == "within":
                raise Failure
    assert (address is None) == (when == "begins")
    if address is not None:
        with pytest.raises(OSError):
            await Wire.open(address)


def test_a_process_whose_lifespan_fails_says_so() -> None:
    code = """
from contextlib import asynccontextmanager
from mcpbolt import Server

@asynccontextmanager
async def lifespan(server):
    raise RuntimeError("no database")
    yield

Server("fails", lifespan=lifespan).run("http://127.0.0.1:0/mcp")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert "RuntimeError: no database" in done.stderr and "listens" not in done.stderr


@coroutine
async def test_functions_that_block_hold_up_nobody() -> None:
    """The thread that drives the network may have run them before."""
    server = Server("blocks")
    go_on = threading.Event()

    @server.tool
    def block() -> str:
        go_on.wait(20)
        return "blocked"

    @server.tool
    def quick() -> str:
        return "quick"

    async with server.listening(ANY) as address:
        wires = [await Wire.open(address) for _ in range(10)]
        asking = [asyncio.ensure_future(wire.stateless(call(1, "block"))) for wire in wires]
        async with await Wire.open(address) as wire:
            took: list[float] = []
            for number in range(50):
                began = time.monotonic()
                assert text(await (await wire.stateless(call(number, "quick"))).json()) == "quick"
                took.append(time.monotonic() - began)
            assert sorted(took)[25] < 0.05, took
        assert not any(one.done() for one in asking)
        go_on.set()
        assert {text(await (await one).json()) for one in asking} == {"blocked"}
        for wire in wires:
            wire.close()
