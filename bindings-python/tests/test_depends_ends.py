"""Values that `Depends` supplies are cleaned up in time, whatever is cancelled, kept or waited for meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import pytest

from mcpbolt import Call, Client, Context, Depends, Server
from support import coroutine


@coroutine
async def test_a_cancelled_call_is_cleaned_up_after_its_plain_function_has_ended() -> None:
    server = Server("cancelled")
    events: list[str] = []
    begun, told, go, closed = (threading.Event() for _ in range(4))

    async def transaction() -> AsyncIterator[None]:
        try:
            yield
        finally:
            events.append("rolled back")
            closed.set()

    @server.tool
    def work(one: Annotated[None, Depends(transaction)], context: Context) -> None:
        begun.set()
        while not context.cancelled:
            time.sleep(0.01)
        told.set()
        go.wait(30)
        events.append("worked")

    @server.tool
    async def turns() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async with Client(server) as caller:
        call = asyncio.ensure_future(caller.call_tool("work"))
        await asyncio.to_thread(begun.wait, 30)
        call.cancel()
        await asyncio.to_thread(told.wait, 30)
        # By now the event loop has handled the cancellation, which came before.
        await caller.call_tool("turns")
        assert events == []
        go.set()
        await asyncio.to_thread(closed.wait, 30)
    assert events == ["worked", "rolled back"]


@pytest.mark.parametrize("scope", ["call", "session"])
@coroutine
async def test_a_value_that_is_made_while_its_call_is_cancelled_is_cleaned_up(scope: Any) -> None:
    server = Server("cancelled")
    events: list[str] = []
    begun, go, closed = (threading.Event() for _ in range(3))

    def connect(context: Context) -> Iterator[None]:
        begun.set()
        while not context.cancelled:
            time.sleep(0.01)
        go.wait(30)
        try:
            yield
        except GeneratorExit:
            events.append("dropped")
            raise
        finally:
            closed.set()

    @server.tool
    async def work(one: Annotated[None, Depends(connect, scope=scope)]) -> None:
        raise AssertionError("it was cancelled")

    async with Client(server) as caller:
        call = asyncio.ensure_future(caller.call_tool("work"))
        await asyncio.to_thread(begun.wait, 30)
        call.cancel()
        go.set()
        if scope == "call":
            await asyncio.to_thread(closed.wait, 30)
    assert closed.is_set() and events == []


@coroutine
async def test_a_generator_keeps_the_decorators_around_it() -> None:
    server = Server("decorated")
    events: list[str] = []

    def noted(function: Any) -> Any:
        @wraps(function)
        def generator() -> Iterator[str]:
            events.append("open")
            yield from function()
            events.append("close")

        return generator

    def counted(function: Any) -> Any:
        @wraps(function)
        def plain() -> Any:
            events.append("called")
            return function()

        return plain

    def value() -> Iterator[str]:
        yield "value"

    async def soon() -> AsyncIterator[str]:
        yield "soon"

    manager = counted(contextmanager(counted(noted(value))))

    @server.tool
    def work(one: Annotated[str, Depends(noted(value))]) -> str:
        return one

    @server.tool
    def within(one: Annotated[str, Depends(manager)]) -> str:
        return one

    @server.tool
    def later(one: Annotated[str, Depends(counted(soon))]) -> str:
        return one

    async with Client(server) as caller:
        assert (await caller.call_tool("work")).text == "value"
        assert events == ["open", "close"]
        events.clear()
        assert (await caller.call_tool("within")).text == "value"
        assert events == ["called", "called", "open", "close"]
        events.clear()
        assert (await caller.call_tool("later")).text == "soon"
        assert events == ["called"]


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_a_session_ends_though_an_exception_and_its_call_are_kept(is_async: bool) -> None:
    server = Server("keeps")
    closed = threading.Event()
    kept: list[Any] = []

    def connection() -> Iterator[None]:
        yield
        closed.set()

    @server.on_error
    def note(error: BaseException, call: Call | None) -> None:
        kept.append((error, call))

    if is_async:

        @server.middleware
        async def watch(call: Call, next: Any) -> Any:
            kept.append(call)
            return await next(call)

    @server.tool
    def work(one: Annotated[None, Depends(connection, scope="session")]) -> None:
        raise OSError("broken")

    async with server.listening("ws://127.0.0.1:0/mcp") as address:
        async with Client(address) as caller:
            assert (await caller.call_tool("work")).is_error
        assert await asyncio.to_thread(closed.wait, 30)
    assert kept


@coroutine
async def test_a_value_of_a_session_is_made_though_all_threads_wait_for_it() -> None:
    server = Server("batch")
    gate = threading.Event()

    async def first() -> None:
        # After the turn of the event loop in which it asks for the connection.
        asyncio.get_running_loop().call_soon(gate.set)

    def connect() -> int:
        return 7

    def wait() -> None:
        gate.wait(30)

    db = Depends(connect, scope="session")

    @server.tool
    async def report(one: Annotated[None, Depends(first)], value: Annotated[int, db]) -> int:
        return value

    @server.tool
    def query(one: Annotated[None, Depends(wait)], value: Annotated[int, db]) -> int:
        return value

    async with Client(server) as caller:
        queries = [asyncio.ensure_future(caller.call_tool("query")) for _ in range(60)]
        answers = await asyncio.wait_for(asyncio.gather(caller.call_tool("report"), *queries), 60)
        assert {answer.text for answer in answers} == {"7"}


@coroutine
async def test_the_end_of_a_session_is_kept_while_it_waits() -> None:
    server = Server("waits")
    waiting: list[Any] = []
    closed = asyncio.Event()

    async def connection() -> AsyncIterator[None]:
        yield
        # Only the task that waits refers to the future, and event loops know tasks weakly.
        future = asyncio.get_running_loop().create_future()
        waiting.append(weakref.ref(future))
        await future
        closed.set()

    @server.tool
    async def work(one: Annotated[None, Depends(connection, scope="session")]) -> None:
        pass

    async with server.listening("ws://127.0.0.1:0/mcp") as address:
        async with Client(address) as caller:
            await caller.call_tool("work")
        while not waiting:
            await asyncio.sleep(0.01)
        gc.collect()
        future = waiting[0]()
        assert future is not None
        future.set_result(None)
        await closed.wait()
