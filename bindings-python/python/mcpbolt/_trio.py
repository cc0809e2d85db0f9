"""The substitute for an event loop under trio.

Calls and connection watchers are system tasks, since tasks of asyncio belong to their loop and not to another task.
When the scope that serves is cancelled, calls in flight can therefore still end gracefully within the grace period.
Each call has a cancel scope, which is cancelled when the client cancels the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from traceback import print_exc
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, current_trio_token, spawn_system_task, wait_readable

from . import _core
from ._carrier import settled
from ._errors import RequestCancelled

if TYPE_CHECKING:
    from ._event_loop import Future as AnyFuture

_T = TypeVar("_T")


class Loop:
    """The event loop functions of the running trio task."""

    def __init__(self) -> None:
        self._token = current_trio_token()
        self._readers: dict[int, trio.CancelScope] = {}

    def create_future(self) -> Future[Any]:
        return Future(self)

    def create_task(self, work: Coroutine[Any, Any, None]) -> trio.CancelScope:
        return _started(work, copy_context())

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        try:
            self._token.run_sync_soon(_told, function, *arguments)
        except trio.RunFinishedError:
            pass  # No task is left to tell.

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, function: Callable[[], object]) -> trio.CancelScope:
        return _started(_later(delay, function), copy_context())

    def add_reader(self, fd: int, ready: Callable[[], object]) -> None:
        scope = self._readers[fd] = trio.CancelScope()
        spawn_system_task(_watch, scope, fd, ready, context=copy_context())

    def remove_reader(self, fd: int) -> None:
        self._readers.pop(fd).cancel()


class Future(Generic[_T]):
    """The part of `asyncio.Future` that the engine and this package use."""

    __slots__ = ("_loop", "_settled", "_result", "_error", "_is_cancelled", "_callbacks")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._settled = trio.Event()
        self._result: _T
        self._error: BaseException | None = None
        self._is_cancelled = False
        self._callbacks: list[Callable[[Any], object]] = []

    def __await__(self) -> Generator[Any, None, _T]:
        try:
            return (yield from self.waited().__await__())
        except BaseException:
            self.cancel()
            raise

    async def waited(self) -> _T:
        """Waits for the result. If the wait is cancelled, the future is not."""
        await self._settled.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def done(self) -> bool:
        return self._settled.is_set()

    def cancelled(self) -> bool:
        return self._is_cancelled

    def exception(self) -> BaseException | None:
        return self._error

    def set_result(self, result: _T) -> None:
        self._result = result
        self._settle()

    def set_exception(self, exception: BaseException) -> None:
        self._error = exception
        self._settle()

    def cancel(self) -> bool:
        if self.done():
            return False
        self._is_cancelled = True
        self.set_exception(RequestCancelled("no task waits for the answer any more"))
        return True

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        if self.done():
            self._loop.call_soon(function, self)
        else:
            self._callbacks.append(function)

    def _settle(self) -> None:
        self._settled.set()
        for function in self._callbacks:
            self._loop.call_soon(function, self)


class Calls:
    """Starts calls, each with a copy of the context variables at construction."""

    def __init__(self) -> None:
        self._context = copy_context()

    def spawn(
        self, job: _core.Job, function: Callable[..., Awaitable[Any]], arguments: dict[str, Any]
    ) -> trio.CancelScope:
        """Starts a call; returns the cancel scope that cancels it."""
        return _started(settled(job, _called(function, arguments), trio.Cancelled), self._context.copy(), function)

    def close(self) -> None:
        """Does nothing: there are no spare tasks to end."""


def shielded(future: AnyFuture[_T]) -> Awaitable[_T]:
    assert isinstance(future, Future)
    return future.waited()


async def _called(function: Callable[..., Awaitable[Any]], arguments: dict[str, Any]) -> Any:
    await checkpoint_if_cancelled()
    return await function(**arguments)


def _started(work: Coroutine[Any, Any, None], context: Context, name: object = None) -> trio.CancelScope:
    scope = trio.CancelScope()
    spawn_system_task(_carry, scope, work, name=name, context=context)
    return scope


async def _carry(scope: trio.CancelScope, work: Coroutine[Any, Any, None]) -> None:
    with scope:
        try:
            await work
        except trio.Cancelled:
            raise
        except BaseException:
            print_exc()


async def _later(delay: float, function: Callable[[], object]) -> None:
    await trio.sleep(delay)
    function()


async def _watch(scope: trio.CancelScope, fd: int, ready: Callable[[], object]) -> None:
    with scope:
        # After the cancellation the descriptor may be closed and reused.
        while not scope.cancel_called:
            await wait_readable(fd)
            if not scope.cancel_called:
                _told(ready)


def _told(function: Callable[..., object], *arguments: Any) -> None:
    """Calls a callback; prints any exception, which would otherwise end the whole trio run."""
    try:
        function(*arguments)
    except BaseException:
        print_exc()
