"""Calls that are begun without a task: what runs in them cannot tell, and what waits gets one."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from support import coroutine

from mcpbolt._carrier import Carriers

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="there each call is a task")

VARIABLE = contextvars.ContextVar("variable", default=0)


class Job:
    """A job that records its outcome."""

    said: Any = None

    def settle(self, value: object) -> None:
        assert self.said is None
        self.said = value

    def fail(self, error: BaseException) -> None:
        assert self.said is None
        self.said = type(error).__name__


class Turn:
    """Calls that the event loop is told of, as the engine does it: outside of any task."""

    async def __aenter__(self) -> Turn:
        self.loop, self.before = asyncio.get_running_loop(), asyncio.all_tasks()
        self.carriers = Carriers(self.loop)
        # The first call is what a spare task is made for.
        await self.begin(at_once)
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.carriers.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == self.before

    async def begin(self, *functions: Callable[[], Any]) -> list[tuple[Job, Any]]:
        begun = []
        done = self.loop.create_future()

        def drain() -> None:
            for function in functions:
                job: Any = Job()
                begun.append((job, self.carriers.spawn(job, function, {})))
            done.set_result(None)

        self.loop.call_soon(drain)
        await done
        return begun

    async def end(self, function: Callable[[], Any]) -> Any:
        ((job, task),) = await self.begin(function)
        if task is not None:
            await asyncio.wait([task], timeout=20)
        return job.said


async def at_once() -> str:
    assert asyncio.current_task() is not None
    return "at once"


async def fails() -> None:
    raise ValueError


async def waits() -> str:
    task = asyncio.current_task()
    VARIABLE.set(7)
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    assert asyncio.current_task() is task and VARIABLE.get() == 7
    return "waited"


async def in_time() -> None:
    if sys.version_info >= (3, 11):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)


async def in_a_group() -> list[str]:
    if sys.version_info < (3, 11):
        return []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for one in (waits, at_once)]
    return [task.result() for task in tasks]


async def in_a_scope() -> bool:
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(60)
    return scope.cancelled_caught


async def leaves_a_variable() -> int:
    VARIABLE.set(VARIABLE.get() + 1)
    return VARIABLE.get()


async def cancels_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "cancelled"
    return "not"


async def cancels_itself_and_ends() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "ended"


def gives_a_future() -> asyncio.Future[str]:
    return asyncio.ensure_future(waits())


CASES: list[tuple[Callable[[], Any], Any]] = [
    (at_once, "at once"),
    (fails, "ValueError"),
    (waits, "waited"),
    (in_time, "TimeoutError"),
    (in_a_group, ["waited", "at once"]),
    (in_a_scope, True),
    (leaves_a_variable, 1),
    (cancels_itself, "cancelled"),
    (cancels_itself_and_ends, "ended"),
    (lambda: at_once(), "at once"),
    (gives_a_future, "waited"),
]


@coroutine
async def test_a_call_is_in_a_task_whether_it_waits_or_not() -> None:
    async with Turn() as turn:
        for _ in range(3):
            for function, expected in CASES:
                assert await turn.end(function) == expected, function
            begun = await turn.begin(*(function for function, _ in CASES))
            await asyncio.wait([task for _, task in begun if task is not None], timeout=20)
            assert [job.said for job, _ in begun] == [expected for _, expected in CASES]


@coroutine
async def test_what_waits_for_nothing_needs_no_task() -> None:
    async with Turn() as turn:
        begun = await turn.begin(*[at_once] * 100)
        assert all(task is None and job.said == "at once" for job, task in begun)


@pytest.mark.parametrize("turns", [0, 3])
@coroutine
async def test_a_call_is_cancelled_with_what_it_waits_for(turns: int) -> None:
    """Also before its task has had its first turn with it."""
    ended = []

    async def inner() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("inner")

    async def outer() -> None:
        try:
            await asyncio.create_task(inner())
        finally:
            ended.append("outer")

    async with Turn() as turn:
        ((job, task),) = await turn.begin(outer)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=20)
        assert task.cancelled() and job.said == "ToolError"
        assert ended[-1:] == ["outer"]
        assert turns == 0 or ended == ["inner", "outer"]


@coroutine
async def test_a_spare_task_that_somebody_cancels_carries_nothing_any_more() -> None:
    async with Turn() as turn:
        (spare,) = asyncio.all_tasks() - turn.before
        spare.cancel()
        await asyncio.wait([spare], timeout=20)
        for function, expected in CASES:
            assert await turn.end(function) == expected, function
