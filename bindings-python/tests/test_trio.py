"""Servers and clients under trio: alone, and with the other side on asyncio."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import pytest

from mcpbolt import (
    CarrierError,
    Client,
    ConnectionClosed,
    Context,
    Depends,
    Elicited,
    ElicitationRequest,
    Misuse,
    PeerError,
    Policy,
    RequestTimeout,
    Sampled,
    SamplingRequest,
    Server,
    Steps,
    TaskLimits,
    ToolError,
)
from mcpbolt._event_loop import on_thread
from support import SECONDS, Raw, client
from support import coroutine as on_asyncio

anyio = pytest.importorskip("anyio")
trio = pytest.importorskip("trio")

HERE = Path(__file__)
ERAS = ["2025-11-25", "2026-07-28"]
HTTP = "http://127.0.0.1:0/mcp"


def on_trio(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine under trio."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def main() -> None:
            with trio.fail_after(SECONDS):
                await test(*args, **kwargs)

        trio.run(main)

    return run


def tools() -> Server:
    """Its tools need trio, but for those that are plain functions."""
    server = Server("trio")

    @server.tool
    async def nap(seconds: float) -> str:
        await trio.sleep(seconds)
        return "slept"

    @server.tool
    async def grouped(count: int) -> int:
        done = 0

        async def one() -> None:
            nonlocal done
            await anyio.sleep(0.01)
            done += 1

        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one)
        return done

    @server.tool
    async def hurried() -> str:
        with anyio.move_on_after(0.05) as scope:
            await anyio.sleep_forever()
        return f"given up: {scope.cancelled_caught}"

    @server.tool
    async def threaded() -> int:
        return await anyio.to_thread.run_sync(lambda: 7)

    @server.tool
    async def fails(how: str) -> str:
        if how == "told":
            raise ToolError("no such film")
        if how == "grouped":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                raise ValueError("secret")
        if how == "cancelled":
            with trio.CancelScope() as scope:
                scope.cancel()
                await trio.sleep(0)
            return "went on"
        raise SystemExit("secret")

    @server.tool
    async def counts(context: Context) -> str:
        for step in range(3):
            context.progress(step, 3)
            await trio.sleep(0)
        return "counted"

    @server.tool
    def block(seconds: float) -> str:
        time.sleep(seconds)
        return "blocked"

    @server.resource("notes://{name}")
    async def note(name: str) -> str:
        await trio.sleep(0)
        return f"note of {name}"

    @server.prompt
    async def greeting(name: str) -> str:
        await trio.sleep(0)
        return f"greet {name}"

    @server.tool
    async def forever(path: str) -> str:
        """Writes to a file how it ends."""
        try:
            Path(path).write_text("begun")
            await trio.sleep_forever()
        except trio.Cancelled:
            Path(path).write_text("cancelled")
            raise
        return "never"

    return server


PROGRAM = f"""
import sys
sys.path.insert(0, {str(HERE.parent)!r})
import functools, trio
from test_trio import tools
"""
STDIO = [sys.executable, "-c", PROGRAM + "trio.run(functools.partial(tools().serve, grace=0.5))"]
NETWORK = PROGRAM + """
async def main():
    async with tools().listening('http://127.0.0.1:0/mcp') as address:
        print(address, flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
trio.run(main)
"""
ASYNCIO = [
    sys.executable,
    "-c",
    """
import asyncio, pathlib
from mcpbolt import Server
server = Server('asyncio')
@server.tool
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return 'slept'
@server.tool
async def forever(path: str) -> str:
    try:
        pathlib.Path(path).write_text('begun')
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        pathlib.Path(path).write_text('cancelled')
        raise
    return 'never'
asyncio.run(server.serve())
""",
]


async def said(path: Path, text: str) -> None:
    """Waits until the file has that."""
    while not path.exists() or path.read_text() != text:
        await anyio.sleep(0.01)


async def used(served: Any, revision: str | None = None) -> None:
    """Uses a server of those tools as a client, wherever each of them runs."""
    reported: list[float] = []
    async with client(served, revision=revision) as here:
        assert (await here.call_tool("nap", {"seconds": 0.01})).text == "slept"
        assert (await here.call_tool("grouped", {"count": 5})).text == "5"
        assert (await here.call_tool("hurried")).text == "given up: True"
        assert (await here.call_tool("threaded")).text == "7"
        assert (await here.call_tool("block", {"seconds": 0})).text == "blocked"
        assert (await here.read_resource("notes://today"))[0].text == "note of today"
        assert (await here.get_prompt("greeting", {"name": "Ada"})).messages[0].content.text == "greet Ada"
        assert len(await here.list_tools()) == 8
        counted = await here.call_tool("counts", on_progress=lambda far, of, text: reported.append(far))
        assert (counted.text, reported) == ("counted", [0, 1, 2])
        told = await here.call_tool("fails", {"how": "told"})
        assert (told.is_error, told.text) == (True, "no such film")
        for how in ("grouped", "exit"):
            failed = await here.call_tool("fails", {"how": how})
            assert (failed.is_error, failed.text) == (True, "the tool failed unexpectedly")
        assert (await here.call_tool("fails", {"how": "cancelled"})).text == "went on"
        with pytest.raises(RequestTimeout):
            await here.call_tool("nap", {"seconds": 30}, timeout=0.05)
        with pytest.raises(PeerError):
            await here.request("no/such_method")
        assert (await here.call_tool("nap", {"seconds": 0})).text == "slept"


@pytest.mark.parametrize("run", [on_trio, on_asyncio], ids=["trio", "asyncio"])
@pytest.mark.parametrize("revision", ERAS)
def test_a_process_under_trio_serves_clients_on_either(run: Any, revision: str) -> None:
    run(used)(STDIO, revision)


@pytest.mark.parametrize("run", [on_trio, on_asyncio], ids=["trio", "asyncio"])
def test_a_server_under_trio_serves_http(run: Any) -> None:
    """And its scope ends with the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", NETWORK], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdin and process.stdout
            run(used)(process.stdout.readline().strip())
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()


@on_trio
async def test_both_sides_share_a_run() -> None:
    await used(tools())
    async with tools().listening(HTTP) as address:
        await used(address)


@on_trio
async def test_calls_are_made_side_by_side() -> None:
    answers: list[str] = []
    async with tools().listening(HTTP) as address, Client(address) as client:

        async def one(name: str, seconds: float) -> None:
            answers.append((await client.call_tool(name, {"seconds": seconds})).text)

        began = time.monotonic()
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(one, "nap", 0.2)
                nursery.start_soon(one, "block", 0.02)
        assert sorted(answers) == ["blocked"] * 20 + ["slept"] * 20
        assert time.monotonic() - began < 3


@pytest.mark.parametrize("run", [on_trio, on_asyncio], ids=["trio", "asyncio"])
@pytest.mark.parametrize("served", [STDIO, ASYNCIO], ids=["to_trio", "to_asyncio"])
def test_a_client_whose_scope_is_cancelled_gives_the_call_up(run: Any, served: Any, tmp_path: Path) -> None:
    """R-CAN-01: the handler is cancelled with it, and both go on."""
    path = tmp_path / "said"

    async def given_up() -> None:
        async with client(served) as here, anyio.create_task_group() as group:
            group.start_soon(here.call_tool, "forever", {"path": str(path)})
            await said(path, "begun")
            group.cancel_scope.cancel()
        # The block is left behind the scope; another client finds nothing wrong.
        async with client(served) as here:
            path.unlink()
            with anyio.move_on_after(0.2) as scope:
                await here.call_tool("forever", {"path": str(path)})
            assert scope.cancelled_caught
            await said(path, "cancelled")
            assert (await here.call_tool("nap", {"seconds": 0})).text == "slept"

    run(given_up)()


@on_trio
async def test_cancelling_the_block_of_a_client_ends_its_child(tmp_path: Path) -> None:
    path, pid = tmp_path / "said", 0
    lines: list[str] = []
    code = "import os, sys; print(os.getpid(), file=sys.stderr, flush=True)\n" + STDIO[2]
    with trio.CancelScope() as scope:
        async with client([sys.executable, "-c", code], on_stderr=lines.append) as here, trio.open_nursery() as nursery:
            nursery.start_soon(here.call_tool, "forever", {"path": str(path)})
            await said(path, "begun")
            pid = int(lines[0])
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("run", [on_trio, on_asyncio], ids=["trio", "asyncio"])
@pytest.mark.parametrize("how", ["listening", "serve"])
def test_cancelling_who_serves_answers_what_is_in_flight(run: Any, how: str, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/socket"
    answers: list[str] = []
    ends: list[str] = []

    async def main() -> None:
        server, begun, scope = Server("ending"), anyio.Event(), anyio.CancelScope()

        @server.tool
        async def slow() -> str:
            begun.set()
            await anyio.sleep(0.2)
            ends.append("call")
            return "in time"

        async def serve() -> None:
            with scope:
                if how == "serve":
                    await server.serve(address, grace=10)
                async with server.listening(address, grace=10):
                    await anyio.sleep_forever()
            ends.append("server")

        async def call() -> None:
            while not os.path.exists(address.partition(":")[2]):
                await anyio.sleep(0.01)
            async with Client(address) as client:
                answers.append((await client.call_tool("slow")).text)

        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            group.start_soon(call)
            await begun.wait()
            scope.cancel()
        assert scope.cancelled_caught

    run(main)()
    assert (answers, ends) == (["in time"], ["call", "server"])


@pytest.mark.parametrize("address", [HTTP, "tcp:127.0.0.1:0"])
@pytest.mark.parametrize("run", [on_trio, on_asyncio], ids=["trio", "asyncio"])
def test_serve_ends_with_its_scope(run: Any, address: str) -> None:
    """On asyncio it is a scope of anyio's."""

    async def ended() -> None:
        with anyio.move_on_after(0.1) as scope:
            await tools().serve(address, grace=1)
        assert scope.cancelled_caught

    run(ended)()


@on_trio
async def test_what_outlasts_the_grace_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "said"
    async with trio.open_nursery() as nursery:
        async with tools().listening(HTTP, grace=0.2) as address:

            async def call() -> None:
                async with Client(address) as client:
                    with pytest.raises((CarrierError, ConnectionClosed)):
                        await client.call_tool("forever", {"path": str(path)})

            nursery.start_soon(call)
            await said(path, "begun")
        await said(path, "cancelled")


def test_the_end_of_input_answers_what_is_in_flight(tmp_path: Path) -> None:
    """Calls that are not done within the grace period are cancelled."""
    path = tmp_path / "said"
    with Raw(STDIO, subprocess.PIPE) as server:
        server.call(1, "nap", seconds=0.2)
        server.call(2, "block", seconds=0.2)
        server.call(3, "forever", path=str(path))
        status, answers, stderr = server.end(10)
        assert sorted(answer["id"] for answer in answers) == [1, 2], stderr
        assert (status, stderr) == (0, "")
    assert path.read_text() == "cancelled"


def test_an_interrupt_ends_a_server_in_good_order() -> None:
    """Trio raises it in the task that serves; what is in flight is answered first."""
    with Raw(STDIO, subprocess.PIPE) as server:
        server.call(1, "nap", seconds=0.2)
        server.call(2, "nap", seconds=0)
        assert server.receive()["id"] == 2
        server.process.send_signal(signal.SIGINT)
        assert server.receive()["id"] == 1
        _, _, stderr = server.end(10)
        assert stderr.rstrip().endswith("KeyboardInterrupt") and "TrioInternalError" not in stderr


@on_trio
async def test_a_run_may_end_with_calls_in_flight() -> None:
    """The client is never left; what is at work for it ends with the run."""
    code = PROGRAM + (
        "from mcpbolt import Client\n"
        "async def main():\n"
        "    client = Client(tools())\n"
        "    await client.__aenter__()\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(client.call_tool, 'nap', {'seconds': 60})\n"
        "        await trio.sleep(0.1)\n"
        "        nursery.cancel_scope.cancel()\n"
        "    print('out')\n"
        "trio.run(main)"
    )
    done = await trio.run_process([sys.executable, "-c", code], capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"")


@pytest.mark.parametrize("revision", ERAS)
@on_trio
async def test_handlers_ask_their_client(revision: str) -> None:
    """R-SMP-01, R-ELI-01: the client's handlers are trio's tasks, too; questions side by side go out together."""
    server = Server("asks")

    @server.tool
    async def ask(context: Context) -> str:
        await trio.sleep(0)
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        answers: dict[str, str] = {}

        async def sample() -> None:
            answers["model"] = (await context.sample("hello", max_tokens=5)).text

        async def elicit() -> None:
            answers["user"] = (await context.elicit("who?", form)).content["name"]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sample)
            nursery.start_soon(elicit)
        return f"{answers['model']}, {answers['user']}"

    @server.tool
    def wait(context: Context) -> str:
        return context.sample("wait", max_tokens=5).wait().text

    async def model(request: SamplingRequest) -> Sampled:
        await trio.sleep(0.01)
        return Sampled(f"{request.messages[0].content.text}!", "m")

    async def user(request: ElicitationRequest) -> Elicited:
        await trio.sleep(0.01)
        return Elicited("accept", {"name": "Ada"})

    async with Client(server, revision=revision, on_sampling=model, on_elicitation=user) as client:
        assert (await client.call_tool("ask")).text == "hello!, Ada"
        assert (await client.call_tool("wait")).text == "wait!"


@on_trio
async def test_a_question_that_is_given_up_cancels_who_answers(capsys: pytest.CaptureFixture[str]) -> None:
    server, asked, cancelled = Server("asks"), trio.Event(), trio.Event()

    @server.tool
    async def hurried(context: Context) -> str:
        with trio.move_on_after(0.1) as scope:
            await context.sample("x", max_tokens=1)
        return str(scope.cancelled_caught)

    @server.tool
    async def ask(context: Context) -> str:
        return (await context.sample("x", max_tokens=1)).text

    async def never(request: SamplingRequest) -> Sampled:
        asked.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    async with Client(server, revision="2025-11-25", on_sampling=never) as client:
        assert (await client.call_tool("hurried")).text == "True"
        await cancelled.wait()

    async def fails(request: SamplingRequest) -> Sampled:
        raise ValueError("told on stderr")

    async with Client(server, revision="2025-11-25", on_sampling=fails) as client:
        refused = await client.call_tool("ask")
        assert refused.is_error
    assert "ValueError: told on stderr" in capsys.readouterr().err


CONTEXT: ContextVar[str] = ContextVar("CONTEXT", default="none")


@on_trio
async def test_variables_and_the_lifespan_reach_every_call() -> None:
    """And a lifespan's nursery takes what calls leave behind."""

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[Any]:
        CONTEXT.set("of the lifespan")
        async with trio.open_nursery() as nursery:
            yield nursery
            nursery.cancel_scope.cancel()

    server, left = Server("variables", lifespan=lifespan), trio.Event()

    @server.tool
    async def look(context: Context) -> str:
        seen = CONTEXT.get()
        CONTEXT.set("of the call")
        context.state.start_soon(trio.sleep_forever)
        context.state.start_soon(trio.lowlevel.checkpoint)
        left.set()
        return seen

    async with Client(server) as client:
        for _ in range(3):
            assert (await client.call_tool("look")).text == "of the lifespan"
        assert left.is_set()


@on_trio
async def test_a_cancelled_task_does_not_wait_for_a_thread() -> None:
    CONTEXT.set("of the task")
    blocked = threading.Event()

    def look(name: str, *, block: bool) -> tuple[str, str, bool]:
        return name, CONTEXT.get(), blocked.wait(SECONDS if block else 0)

    assert await on_thread(look, "quick", block=False) == ("quick", "of the task", False)
    began = time.monotonic()
    with trio.move_on_after(0.05) as scope:
        await on_thread(look, "slow", block=True)
    assert scope.cancelled_caught and time.monotonic() - began < 5
    blocked.set()


@pytest.mark.parametrize("revision", ERAS)
@on_trio
async def test_tasks_are_followed(revision: str) -> None:
    server = Server("tasks", task_limits=TaskLimits(poll_interval=0.01))

    @server.tool(task="optional")
    async def film(context: Context, seconds: float) -> str:
        context.begin_task()
        context.progress(1, 2, "half")
        await trio.sleep(seconds)
        return "watched"

    async with Client(server, revision=revision, tasks=True) as client:
        task = await client.start_tool("film", {"seconds": 0.1})
        states = [info.status async for info in task]
        assert (states[0], states[-1]) == ("working", "completed")
        assert (await task).text == "watched"
        endless = await client.start_tool("film", {"seconds": 60})
        with trio.move_on_after(0.1) as scope:
            async for _ in endless:
                pass
        assert scope.cancelled_caught
        await endless.cancel()
        while (await endless.info()).status != "cancelled":
            await trio.sleep(0.01)


@on_trio
async def test_changes_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of a callback is logged, and the run goes on."""
    server, told = Server("changes", list_changes=True), trio.Event()

    @server.tool
    def first() -> str:
        return "1"

    def changed(kind: str) -> None:
        told.set()
        raise ValueError(f"told of {kind}")

    async with Client(server, revision="2026-07-28", on_list_changed=changed) as client:
        async with client.listen(tools=True) as listening:

            @server.tool
            def second() -> str:
                return "2"

            await told.wait()
            with trio.move_on_after(0.05) as scope:
                await listening.ended()
            assert scope.cancelled_caught
        assert len(await client.list_tools()) == 2
    assert "ValueError: told of tools" in caplog.text


@on_trio
async def test_a_server_that_dies_is_told_of() -> None:
    closed: list[ConnectionClosed] = []
    code = STDIO[2].replace("trio.run(", "import os, threading; threading.Timer(1, os._exit, (1,)).start(); trio.run(")
    async with client([sys.executable, "-c", code], on_closed=closed.append) as here:
        with pytest.raises(ConnectionClosed):
            await here.call_tool("nap", {"seconds": 60})
        while not closed:
            await trio.sleep(0.01)


@on_trio
async def test_an_address_where_nobody_is_fails() -> None:
    with pytest.raises(ConnectionRefusedError):
        async with Client("tcp:127.0.0.1:1"):
            pass


@on_trio
async def test_what_needs_asyncio_says_so() -> None:
    pytest.importorskip("mcp")
    from mcp import StdioServerParameters
    from mcp.server.mcpserver import MCPServer

    import mcpbolt.mcp

    async def asgi() -> None:
        async with Server("asgi").asgi().lifespan():
            pass

    async def request() -> None:
        scope = {"type": "http", "path": "/mcp", "method": "POST", "headers": []}
        await Server("asgi").asgi()(scope, None, None)  # type: ignore[arg-type]

    async def under_the_sdk() -> None:
        async with mcpbolt.mcp.stdio_client(StdioServerParameters(command="true")):
            pass

    async def over_http() -> None:
        async with mcpbolt.mcp.streamable_http_client("http://127.0.0.1:1/mcp"):
            pass

    for needs in (asgi, request, under_the_sdk, over_http, functools.partial(mcpbolt.mcp.serve, MCPServer("sdk"), HTTP)):
        with pytest.raises(Misuse, match="needs an event loop of asyncio"):
            await needs()


def test_without_any_loop_there_is_a_clear_error() -> None:
    with pytest.raises(Misuse, match="asyncio or trio"):
        Client(Server("alone")).__aenter__().send(None)


def test_trio_may_be_a_guest_of_asyncio() -> None:
    """The loop of a task is known even if both run in one thread."""
    import asyncio

    async def main() -> None:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[Any] = loop.create_future()
        server = Server("host")

        @server.tool
        async def nap() -> str:
            await asyncio.sleep(0.01)
            return "asyncio's"

        async def guest(address: str) -> str:
            async with Client(address) as client, Client(tools()) as own:
                assert (await own.call_tool("nap", {"seconds": 0})).text == "slept"
                return (await client.call_tool("nap")).text

        async with server.listening(HTTP) as address:
            trio.lowlevel.start_guest_run(
                guest, address, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=over.set_result
            )
            async with Client(address) as client:
                assert (await client.call_tool("nap")).text == "asyncio's"
            assert (await over).unwrap() == "asyncio's"

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_nothing_of_trio_is_imported_on_asyncio() -> None:
    code = (
        "import asyncio, sys\n"
        "from mcpbolt import Client, Server\n"
        "server = Server('plain')\n"
        "@server.tool\n"
        "async def one() -> int:\n"
        "    return 1\n"
        "async def main():\n"
        "    async with server.listening('http://127.0.0.1:0/mcp') as address, Client(address) as client:\n"
        "        print((await client.call_tool('one')).text)\n"
        "asyncio.run(main())\n"
        "print({'trio', 'anyio', 'sniffio', 'mcpbolt._trio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert (done.stdout, done.stderr) == ("1\nset()\n", "")


@on_trio
async def test_calls_are_looked_at_and_bounded_by_a_policy() -> None:
    """Plain hooks beside coroutine functions run on threads, with the variables of the call."""
    CONTEXT.set("of the server")
    threads: list[tuple[str, bool]] = []

    def approve(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        threads.append((CONTEXT.get(), threading.current_thread() is threading.main_thread()))
        return bool(arguments["seconds"] >= 0)

    async def clean(tool: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        await trio.sleep(0)
        return {"seconds": arguments["seconds"] - 1}

    server = Server("disk", approval={"nap": approve}, sanitise={"nap": clean}, policy=Policy(timeouts={"nap": 0.2}))
    ends: list[str] = []

    @server.tool
    async def nap(seconds: float) -> str:
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            ends.append("cancelled")
            raise
        return "slept"

    async with Client(server) as client:
        assert (await client.call_tool("nap", {"seconds": 1})).text == "slept"
        assert (await client.call_tool("nap", {"seconds": 0})).text == "the call was not approved"
        assert threads == [("of the server", False)] * 2
        assert (await client.call_tool("nap", {"seconds": 60})).is_error
        while ends != ["cancelled"]:
            await trio.sleep(0.01)


@on_trio
async def test_a_cancelled_call_is_cleaned_up_and_its_steps_are_undone() -> None:
    """In a cancelled scope of trio every wait ends at once, but not those for what cleans up."""
    events: list[str] = []

    def plain() -> Iterator[None]:
        try:
            yield
        finally:
            events.append("plain")

    async def soon() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await trio.sleep(0)
            events.append("soon")

    server = Server("cancelled")

    @server.tool
    async def waits(first: Annotated[None, Depends(plain)], second: Annotated[None, Depends(soon)], steps: Steps) -> None:
        async def undo() -> None:
            await trio.sleep(0)
            events.append("undone")

        steps.taken(lambda: events.append("undone at once"))
        steps.taken(undo)
        events.append("begun")
        await trio.sleep(60)

    @server.tool
    def blocks(first: Annotated[None, Depends(plain)], second: Annotated[None, Depends(soon)], steps: Steps, context: Context) -> None:
        steps.taken(lambda: events.append("undone"))
        events.append("begun")
        while not context.cancelled:
            time.sleep(0.01)

    async def until(*expected: str) -> None:
        with trio.move_on_after(10):
            while tuple(events) != expected:
                await trio.sleep(0.01)
        assert events == [*expected]
        events.clear()

    async with Client(server) as client:
        for tool, ends in (
            ("waits", ["soon", "plain", "undone", "undone at once"]),
            ("blocks", ["soon", "plain", "undone"]),
        ):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.call_tool, tool)
                    while events != ["begun"]:
                        await trio.sleep(0.01)
                    scope.cancel()
            await until("begun", *ends)


@on_trio
async def test_every_plain_generator_ends_when_many_calls_are_cancelled_at_once() -> None:
    """Also those whose end no thread has begun yet when the scope of their call stops every wait."""
    begun, ended = 0, 0

    def plain() -> Iterator[None]:
        nonlocal ended
        try:
            yield
        except trio.Cancelled:  # not one that is only collected
            ended += 1
            raise

    server = Server("cancelled")

    @server.tool
    async def waits(one: Annotated[None, Depends(plain)]) -> None:
        nonlocal begun
        begun += 1
        await trio.sleep(60)

    async with Client(server) as client:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(40):
                    nursery.start_soon(client.call_tool, "waits")
                while begun < 40:
                    await trio.sleep(0.01)
                scope.cancel()
        with trio.move_on_after(10):
            while ended < 40:
                await trio.sleep(0.01)
    assert ended == 40
