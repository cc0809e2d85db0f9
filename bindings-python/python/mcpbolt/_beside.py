"""Calls plain functions on worker threads, for tasks of the event loop."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Lock
from typing import Any

from . import _core
from ._event_loop import arrival, at_last, event_loop
from ._signature import Function


async def beside(pending: _core.Pending, function: Function, named: dict[str, Any], /, *arguments: Any) -> Any:
    """Calls a plain function on a worker thread, so that it does not block the event loop. A cancelled task waits until
    the function has ended, since what is cleaned up after it may still be in use; one that has not begun never does."""
    future = event_loop().create_future()
    call = _Call(function, arguments)
    pending.beside(call, named, copy_context(), future)
    try:
        return await future
    except BaseException:
        await call.over()
        raise


class _Call:
    """A call of a plain function on a thread, for a task that may be cancelled."""

    __slots__ = ("_function", "_arguments", "_turn", "_is_over", "_tell")

    def __init__(self, function: Function, arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments
        # Taken once: by the thread that calls the function, or by the task that gives the call up before.
        self._turn = Lock()
        self._is_over = False
        self._tell: Callable[[], object] | None = None

    def __call__(self, /, **named: Any) -> Any:
        if not self._turn.acquire(blocking=False):
            return None
        try:
            return self._function(*self._arguments, **named)
        finally:
            self._is_over = True
            if self._tell is not None:
                self._tell()

    async def over(self) -> None:
        """Waits until the function has ended, if it has begun. A task that is cancelled once more waits no longer."""
        if self._turn.acquire(blocking=False) or self._is_over:
            return
        future, self._tell = arrival()
        if not self._is_over:
            await at_last(future)
