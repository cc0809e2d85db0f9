"""Parameters that the server supplies: `Depends`."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest

from mcpbolt import Call, Client, CompletionRequest, Context, Depends, PeerError, Results, Server, Steps, ToolError
from support import client, coroutine


def number() -> int:
    return 7


async def later() -> str:
    await asyncio.sleep(0)
    return "later"


@coroutine
async def test_values_are_supplied_and_are_not_part_of_the_schema() -> None:
    server = Server("supplied")

    @server.tool
    def plain(x: int, n: Annotated[int, Depends(number)]) -> str:
        return f"{x} {n}"

    @server.tool
    async def soon(x: int, n: int = Depends(number), s: str = Depends(later)) -> str:
        return f"{x} {n} {s}"

    @server.tool
    def mixed(s: Annotated[str, Depends(later)], x: int = 1) -> str:
        return f"{s} {x} {threading.current_thread() is threading.main_thread()}"

    @server.resource("memo://{name}")
    def memo(name: str, n: Annotated[int, Depends(number)]) -> str:
        return f"{name} {n}"

    @server.resource("one://")
    def one(n: Annotated[int, Depends(number)]) -> str:
        return str(n)

    @server.prompt
    def poem(about: str, s: Annotated[str, Depends(later)]) -> str:
        return f"{about} {s}"

    @server.completion
    def complete(request: CompletionRequest, n: Annotated[int, Depends(number)]) -> list[str]:
        return [f"{request.value}{n}"]

    async with Client(server) as caller:
        for tool in await caller.list_tools():
            assert [*tool.input_schema["properties"]] == ["x"], tool.name
        assert (await caller.call_tool("plain", {"x": 1})).text == "1 7"
        assert (await caller.call_tool("plain", {"x": 1, "n": 9})).is_error
        assert (await caller.call_tool("soon", {"x": 2})).text == "2 7 later"
        assert (await caller.call_tool("mixed")).text == "later 1 False"
        assert (await caller.read_resource("memo://a"))[0].text == "a 7"
        assert (await caller.read_resource("one://"))[0].text == "7"
        (listed,) = await caller.list_prompts()
        assert [argument.name for argument in listed.arguments] == ["about"]
        assert (await caller.get_prompt("poem", {"about": "x"})).messages[0].text == "x later"
        assert (await caller.complete(listed, "about", "a")).values == ["a7"]


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_a_generator_goes_on_after_the_call_with_what_it_raised(is_async: bool) -> None:
    server = Server("cleaned")
    events: list[str] = []

    def first() -> Iterator[str]:
        events.append("open first")
        try:
            yield "1"
        except OSError as error:
            events.append(f"first sees {error}")
            raise
        finally:
            events.append("close first")

    async def second(before: Annotated[str, Depends(first)], context: Context) -> AsyncIterator[str]:
        events.append("open second")
        try:
            yield before + "2"
        finally:
            await asyncio.sleep(0)
            events.append("close second")

    @contextmanager
    def second_plain(before: Annotated[str, Depends(first)], context: Context) -> Iterator[str]:
        events.append("open second")
        try:
            yield before + "2"
        finally:
            events.append("close second")

    needed = second if is_async else second_plain

    @server.tool
    def work(value: Annotated[str, Depends(needed)], same: Annotated[str, Depends(first)], fail: bool = False) -> str:
        events.append(f"work {value} {same}")
        if fail:
            raise OSError("broken")
        return value

    async with Client(server) as caller:
        assert (await caller.call_tool("work")).text == "12"
        assert events == ["open first", "open second", "work 12 1", "close second", "close first"]
        events.clear()
        assert (await caller.call_tool("work", {"fail": True})).is_error
        assert events[-3:] == ["close second", "first sees broken", "close first"]


@coroutine
async def test_a_clean_up_that_fails_fails_the_call_and_the_others_still_run() -> None:
    server = Server("commits")
    closed: list[str] = []

    def connection() -> Iterator[str]:
        try:
            yield "connection"
        finally:
            closed.append("connection")

    def transaction(connection: Annotated[str, Depends(connection)]) -> Iterator[str]:
        yield "transaction"
        raise ToolError("the commit was refused")

    def swallowing() -> Iterator[None]:
        try:
            yield
        except OSError:
            pass

    @server.tool
    def write(within: Annotated[str, Depends(transaction)]) -> str:
        return "written"

    @server.tool
    def broken(within: Annotated[None, Depends(swallowing)]) -> str:
        raise OSError

    async with Client(server) as caller:
        assert (await caller.call_tool("write")).text == "the commit was refused"
        assert closed == ["connection"]
        assert (await caller.call_tool("broken")).text == "the tool failed unexpectedly"


@coroutine
async def test_a_cancelled_call_is_cleaned_up_after() -> None:
    server = Server("cancelled")
    closed = asyncio.Event()
    begun = asyncio.Event()

    @asynccontextmanager
    async def lasting() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)
            closed.set()

    @server.tool
    async def wait(one: Annotated[None, Depends(lasting)]) -> None:
        begun.set()
        await asyncio.sleep(60)

    async with Client(server) as caller:
        call = asyncio.ensure_future(caller.call_tool("wait"))
        await begun.wait()
        call.cancel()
        await closed.wait()


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_a_value_of_a_session_is_made_once_and_cleaned_up_at_its_end(is_async: bool) -> None:
    server = Server("sessions")
    events: list[str] = []

    def plain(context: Context) -> Iterator[int]:
        events.append("open")
        threading.Event().wait(0.05)
        yield len(events)
        events.append("close")

    async def soon(context: Context) -> AsyncIterator[int]:
        events.append("open")
        await asyncio.sleep(0.05)
        yield len(events)
        await asyncio.sleep(0)
        events.append("close")

    db = Depends(soon if is_async else plain, scope="session")

    @server.tool
    def one(value: Annotated[int, db]) -> str:
        return str(value)

    @server.tool
    async def two(value: Annotated[int, db]) -> str:
        return str(value)

    async with server.listening("ws://127.0.0.1:0/mcp") as address:
        async with Client(address) as caller:
            answers = await asyncio.gather(*(caller.call_tool(tool) for tool in ["one", "two"] * 10))
            assert {answer.text for answer in answers} == {"1"} and events == ["open"]
        while events != ["open", "close"]:
            await asyncio.sleep(0.01)
        async with Client(address) as caller:
            assert (await caller.call_tool("one")).text == "3"
    assert events == ["open", "close"] * 2


@coroutine
async def test_over_http_a_session_is_one_and_from_2026_on_each_call() -> None:
    server = Server("sessions")
    events: list[str] = []

    def made() -> Iterator[int]:
        events.append("open")
        yield events.count("open")
        events.append("close")

    @server.tool
    def which(value: Annotated[int, Depends(made, scope="session")]) -> str:
        return str(value)

    async with server.listening("http://127.0.0.1:0/mcp") as address:
        async with Client(address, revision="2025-11-25") as caller:
            assert [(await caller.call_tool("which")).text for _ in range(3)] == ["1"] * 3
        async with Client(address, revision="2026-07-28") as caller:
            assert [(await caller.call_tool("which")).text for _ in range(3)] == ["2", "3", "4"]
    assert events.count("open") == events.count("close") == 4


SESSION = """
import sys
from typing import Annotated
from mcpbolt import Depends, Server
server = Server("stdio")

def db():
    print("open", file=sys.stderr, flush=True)
    yield 1
    print("close", file=sys.stderr, flush=True)

@server.tool
def read(db: Annotated[int, Depends(db, scope="session")]) -> str:
    return str(db)

server.run()
"""


@coroutine
async def test_a_session_without_an_event_loop_is_cleaned_up_too() -> None:
    lines: list[str] = []
    async with client([sys.executable, "-c", SESSION], on_stderr=lines.append) as caller:
        for _ in range(3):
            assert (await caller.call_tool("read")).text == "1"
    assert lines == ["open", "close"]


@coroutine
async def test_a_value_that_cannot_be_made_is_tried_again() -> None:
    server = Server("flaky")
    tries: list[int] = []

    def flaky() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("not yet")
        return 7

    @server.tool
    def read(value: Annotated[int, Depends(flaky, scope="session")]) -> str:
        return str(value)

    async with Client(server) as caller:
        assert (await caller.call_tool("read")).text == "not yet"
        assert (await caller.call_tool("read")).text == "7"
        assert (await caller.call_tool("read")).text == "7"
    assert len(tries) == 2


@coroutine
async def test_it_goes_with_steps_a_cache_and_middleware() -> None:
    server = Server("all of it")
    events: list[str] = []
    kept = Results(60, scope="public")

    def db() -> Iterator[str]:
        events.append("open")
        try:
            yield "db"
        finally:
            events.append("close")

    @server.middleware
    async def watch(call: Call, next: Any) -> Any:
        events.append("before")
        reply = await next(call)
        events.append("after")
        return reply

    @server.tool(kept=kept)
    def read(x: int, steps: Steps, db: Annotated[str, Depends(db)]) -> str:
        steps.taken(lambda: events.append("undone"))
        if x < 0:
            raise ToolError("negative")
        return f"{x} {db}"

    async with Client(server) as caller:
        for _ in range(2):
            assert (await caller.call_tool("read", {"x": 1})).text == "1 db"
        assert events == ["before", "open", "close", "after", "before", "after"]
        assert (await caller.call_tool("read", {"x": -1})).text == "negative"
        # A clean-up that fails fails the call, so that steps are undone after it.
        assert events[-3:] == ["open", "close", "undone"]


@coroutine
async def test_a_handler_that_asks_in_rounds_is_cleaned_up_after_each() -> None:
    server = Server("rounds")
    events: list[str] = []

    def db() -> Iterator[str]:
        events.append("open")
        try:
            yield "db"
        finally:
            events.append("close")

    form = {"type": "object", "properties": {"yes": {"type": "boolean"}}}

    @server.tool
    def ask(context: Context, db: Annotated[str, Depends(db)]) -> str:
        return str(context.elicit("well?", form).wait().content["yes"])

    async with Client(server, revision="2026-07-28", on_elicitation=lambda _: {"yes": True}) as caller:
        assert (await caller.call_tool("ask")).text == "True"
    assert events == ["open", "close"] * 2


def test_what_cannot_be_supplied_is_refused() -> None:
    def needs(x: int) -> int:
        return x

    def of_call() -> int:
        return 1

    def of_session(one: Annotated[int, Depends(of_call)]) -> int:
        return one

    with pytest.raises(TypeError, match="dependency '.*needs': parameter 'x' cannot be supplied"):
        Depends(needs)
    with pytest.raises(TypeError, match="once for each session, but needs"):
        Depends(of_session, scope="session")
    with pytest.raises(ValueError, match="the scope is"):
        Depends(of_call, scope="program")  # type: ignore[arg-type]


@coroutine
async def test_a_dependency_that_raises_answers_the_call() -> None:
    server = Server("guards")

    def guard(context: Context) -> None:
        if context.principal is None:
            raise ToolError("who are you?")

    @server.tool
    def work(_: Annotated[None, Depends(guard)]) -> str:
        return "done"

    @server.resource("memo://one")
    def one(_: Annotated[None, Depends(guard)]) -> str:
        return "1"

    async with Client(server) as caller:
        assert (await caller.call_tool("work")).text == "who are you?"
        with pytest.raises(PeerError, match="who are you"):
            await caller.read_resource("memo://one")
