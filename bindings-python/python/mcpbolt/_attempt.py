"""Runs a tool's function, undoes its `Steps` on failure, and caches its result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from . import _core
from ._signature import Function, is_coroutine_function
from ._steps import Steps


async def attempt(
    run: Callable[..., Any],
    pending: _core.Pending,
    function: Function,
    steps: str | None,
    asked: _core.CachedCall | None,
) -> _core.Finished:
    """Calls the function, with `Steps` if it has a parameter for them. Undoes them on failure; caches a successful
    result if `asked` is given."""
    taken = Steps()
    try:
        named = {steps: taken} if steps is not None else {}
        finished = pending.finished(await run(function, **pending.taken(), **named))
    except BaseException:
        await _undo(taken, run, function)
        raise
    if not finished.is_good or pending.context.cancelled:
        await _undo(taken, run, function)
    elif asked is not None:
        asked.keep(finished)
    return finished


async def _undo(steps: Steps, run: Callable[..., Any], function: Function) -> None:
    is_async = is_coroutine_function(function)
    for undo in steps.failed():
        # If one undo function fails, the others still run.
        try:
            undone = undo() if is_async else await run(undo)
            if is_async and isawaitable(undone):
                await undone
        except Exception:
            sys.excepthook(*sys.exc_info())
