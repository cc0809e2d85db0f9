"""Where functions run: on a worker thread, or in a task of the event loop with plain functions beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from . import _core
from ._signature import Function, is_coroutine_function

Run = Callable[..., Awaitable[Any]]
"""`run(pending, function, named, *arguments)` calls a plain function where it belongs: on this worker thread, or on
another one beside the event loop."""
Rest = Callable[[Run, _core.Pending], Coroutine[Any, Any, Any]]
Around = Callable[[Run, _core.Pending, Rest], Coroutine[Any, Any, Any]]


class Layer(NamedTuple):
    """Something around a function: `around(run, pending, rest)`."""

    around: Around
    is_async: bool


def calling(function: Function) -> Callable[..., Awaitable[Any]]:
    """`call(run, pending, named, *arguments)` for a function, plain or not."""
    if not is_coroutine_function(function):
        return lambda run, pending, named, *arguments: run(pending, function, named, *arguments)

    async def awaited(_run: Run, _pending: _core.Pending, named: dict[str, Any], *arguments: Any) -> Any:
        return await function(*arguments, **named)

    return awaited


async def here(_pending: _core.Pending, function: Function, named: dict[str, Any], /, *arguments: Any) -> Any:
    """Calls a plain function on this worker thread, where nothing is awaited."""
    return function(*arguments, **named)


async def at_end(run: Run, pending: _core.Pending, function: Function, /, *arguments: Any) -> Any:
    """Calls a plain function that cleans up after a call. It is called even if the task is cancelled, which in a scope of
    trio or anyio stops every wait."""
    if run is here:
        return function(*arguments)
    from ._event_loop import shield_of_task

    with shield_of_task():
        return await run(pending, function, {}, *arguments)
