"""Runs calls of coroutine functions without a task for those that never wait.

One spare task waits. A coroutine starts at once, as if it ran in that task. If it finishes without waiting, the task
stays spare for the next call; if it waits, the task becomes its own, and another spare one is made. So `current_task`,
timeouts, task groups and context variables work as in any task, and a call that never waits costs no task and no turn
of the event loop.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import _enter_task, _leave_task, current_task
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from types import CoroutineType, coroutine
from typing import Any, cast

from . import _core
from ._errors import ToolError

# Whether tasks can be created with a given context.
HAS_CONTEXTS = sys.version_info >= (3, 11)
Function = Callable[..., Awaitable[Any]]
Begun = Coroutine[Any, Any, Any]


async def called(function: Function, arguments: dict[str, Any]) -> Any:
    return await function(**arguments)


async def settled(
    job: _core.Job, call: Awaitable[Any], cancelled: type[BaseException] = asyncio.CancelledError
) -> None:
    """Runs a call and answers with its outcome; `cancelled` is the exception that the loop cancels tasks with."""
    try:
        value = await call
    except cancelled:
        job.fail(ToolError("the server cancelled the call"))
        raise
    except BaseException as error:
        job.fail(error)
    else:
        job.settle(value)


class Carrier:
    """A task that waits for a call to continue, in a scope."""

    __slots__ = ("context", "scope", "is_ready", "task", "_go", "_rest")

    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context, scope: Any) -> None:
        self.context = context
        self.scope = scope
        # Before its first turn a cancellation would end the task without running `_carry`.
        self.is_ready = False
        self._go: asyncio.Future[None] = loop.create_future()
        self._rest: Callable[[BaseException | None], Awaitable[Any]] | None = None
        if HAS_CONTEXTS:
            self.task = loop.create_task(self._carry(), context=context)  # type: ignore[call-arg, unused-ignore]
        else:
            self.task = context.run(loop.create_task, self._carry())

    @property
    def is_spare(self) -> bool:
        return not self._go.done()

    def go(self, rest: Callable[[BaseException | None], Awaitable[Any]] | None) -> None:
        """Continues a call that has started and waits, or, with `None`, ends the task. `rest` gets the cancellation
        that came meanwhile, if any."""
        self._rest = rest
        if not self._go.done():
            self._go.set_result(None)

    async def _carry(self) -> None:
        with self.scope:
            self.is_ready = True
            cancelled = None
            try:
                await self._go
            except asyncio.CancelledError as error:
                cancelled = error
            if self._rest is not None:
                await self._rest(cancelled)
            elif cancelled is not None:
                raise cancelled


@coroutine
def _rest(begun: Begun, waits: Any, cancelled: BaseException | None) -> Generator[Any, Any, Any]:
    """Continues a coroutine that waits for something. If its task was cancelled meanwhile, so is the awaited future."""
    is_over = cancelled is not None and not (isinstance(waits, asyncio.Future) and waits.cancel())
    error = cancelled if is_over else None
    while True:
        try:
            if error is not None:
                waits = begun.throw(error)
                error = None
        except StopIteration as done:
            return done.value
        try:
            yield waits
        except BaseException as thrown:
            error = thrown
        else:
            return (yield from cast(Any, begun))


class Carriers:
    """Starts calls on an event loop, each in a scope, such as a cancel scope of anyio."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, scope: Callable[[], AbstractContextManager[Any]] = nullcontext
    ) -> None:
        self._loop = loop
        self._scope = scope
        self._context = copy_context()
        self._has_spares = HAS_CONTEXTS
        self._spare: Carrier | None = None

    def spawn(self, job: _core.Job, function: Function, arguments: dict[str, Any]) -> asyncio.Task[None] | None:
        """Starts a call; returns the task that it runs in, or `None` if it is over."""
        loop, spare = self._loop, self._ready()
        if spare is None:
            return loop.create_task(settled(job, called(function, arguments)))
        task, run = spare.task, spare.context.run
        value: Any = None
        failure: BaseException | None = None
        begun: Any = None
        _enter_task(loop, task)
        try:
            begun = run(function, **arguments)
            if type(begun) is not CoroutineType:
                begun = _awaited(begun)
            waits = run(begun.send, None)
        except StopIteration as done:
            value = done.value
        except BaseException as error:
            failure = error
        else:
            self._go_on(spare, lambda cancelled: settled(job, _rest(begun, waits, cancelled)))
            return task
        finally:
            _leave_task(loop, task)
        self._done_with(spare)
        if failure is None:
            job.settle(value)
        elif isinstance(failure, asyncio.CancelledError):
            job.fail(ToolError("the server cancelled the call"))
        else:
            job.fail(failure)
        # Its traceback refers to this frame, which would be a cycle.
        failure = None
        return None

    def carry(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> Carrier | None:
        """Starts a coroutine that reports its own outcome, perhaps in a context of its own; returns the carrier that it
        runs in, or `None` if it is over."""
        if context is not None:
            own = Carrier(self._loop, context, self._scope())
            own.go(lambda cancelled: work)
            return own
        loop, spare = self._loop, self._ready()
        if spare is None:
            carrier = self._made()
            carrier.go(lambda cancelled: work)
            return carrier
        _enter_task(loop, spare.task)
        try:
            waits = spare.context.run(work.send, None)
        except (StopIteration, asyncio.CancelledError):
            pass
        else:
            self._go_on(spare, lambda cancelled: _rest(work, waits, cancelled))
            return spare
        finally:
            _leave_task(loop, spare.task)
        self._done_with(spare)
        return None

    def _ready(self) -> Carrier | None:
        """The spare task, if it has had its first turn (a task made in this turn has not) and no task runs now."""
        spare = self._spare
        if spare is not None and not spare.is_spare:
            # It was cancelled from outside.
            spare = None
        if spare is not None and spare.is_ready and current_task(self._loop) is None:
            return spare
        if spare is None and self._has_spares:
            self._spare = self._made()
        return None

    def _made(self) -> Carrier:
        return Carrier(self._loop, self._context.copy(), self._scope())

    def _go_on(self, spare: Carrier, rest: Callable[[BaseException | None], Awaitable[Any]]) -> None:
        spare.go(rest)
        self._spare = self._made()

    def _done_with(self, spare: Carrier) -> None:
        """Keeps the task for the next call, unless this one left context variables behind or used the task up."""
        if not spare.is_spare or self._is_changed(spare.context):
            spare.go(None)
            self._spare = None

    def _is_changed(self, context: Context) -> bool:
        """Whether a call has left context variables behind. Comparing is fast, since the two contexts nearly always
        share their contents."""
        try:
            return context != self._context
        except Exception:
            return True

    def close(self) -> None:
        """Ends the spare task, and makes no more."""
        self._has_spares = False
        if self._spare is not None:
            self._spare.go(None)
            self._spare = None


async def _awaited(awaited: Awaitable[Any]) -> Any:
    return await awaited
