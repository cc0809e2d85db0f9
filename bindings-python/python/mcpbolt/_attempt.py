"""Runs a tool's function, undoes its `Steps` on failure, and caches its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from . import _core
from ._event_loop import shield_of_task
from ._lanes import at_end
from ._steps import Steps


async def attempt(
    run: Callable[..., Awaitable[Any]],
    pending: _core.Pending,
    call: Callable[..., Awaitable[Any]],
    is_async: bool,
    steps: str | None,
    asked: _core.CachedCall | None,
) -> _core.Finished:
    """Calls the function, with `Steps` if it has a parameter for them. Undoes them on failure; caches a successful
    result if `asked` is given."""
    taken = Steps()
    try:
        named = {steps: taken} if steps is not None else {}
        finished = pending.finished(await call(run, pending, pending.taken() | named))
    except BaseException:
        await _undo(taken, run, pending, is_async)
        raise
    if not finished.is_good or pending.context.cancelled:
        await _undo(taken, run, pending, is_async)
    elif asked is not None:
        asked.keep(finished)
    return finished


async def _undo(steps: Steps, run: Callable[..., Awaitable[Any]], pending: _core.Pending, is_async: bool) -> None:
    for undo in steps.failed():
        # If one undo function fails, the others still run.
        try:
            if not is_async:
                await at_end(run, pending, undo)
            elif isawaitable(undone := undo()):
                # In a scope of trio or anyio that is cancelled, every other wait would end at once.
                with shield_of_task():
                    await undone
        except Exception as error:
            pending.failed(error, "an undo function failed")
