"""Tool calls that pass through hooks (`sanitise`, `approval`), a result cache or `Steps` around their function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._attempt import attempt
from ._entry import Entry
from ._errors import ToolError
from ._settings import Settings
from ._signature import Function, is_coroutine_function


def look(entry: Entry, settings: Settings, steps: str | None) -> None:
    """Wraps a tool's function in its hooks. Caching and undoing happen inside the hooks."""
    hooks = [of.get(entry.name, of.get("*")) for of in (settings.sanitise, settings.approval)]
    function, name, kept = entry.function, entry.name, entry.kept
    if hooks == [None, None] and kept is None and steps is None:
        return
    is_async = any(hook is not None and is_coroutine_function(hook) for hook in [function, *hooks])

    async def call(run: Callable[..., Any], pending: _core.Pending) -> Any:
        asked = None if kept is None else pending.ask(kept)
        if asked is None and steps is None:
            return await run(function, **pending.taken())
        found = asked and asked.found()
        if found is not None:
            return found
        return await attempt(run, pending, function, steps, asked)

    async def looked_at(run: Callable[..., Any], pending: _core.Pending) -> Any:
        return await call(run, await _looked_at(name, pending, hooks, run))

    async def beside(pending: _core.Pending) -> Any:
        return await looked_at(_beside, pending)

    def here(pending: _core.Pending) -> Any:
        try:
            looked_at(_here, pending).send(None)
        except StopIteration as done:
            return done.value

    entry.is_looked_at = True
    entry.function, entry.lane = (beside, "task") if is_async else (here, "worker")


async def _looked_at(
    name: str, pending: _core.Pending, hooks: list[Function | None], run: Callable[..., Any]
) -> _core.Pending:
    clean, approve = hooks
    if clean is not None:
        arguments = await run(clean, name, pending.arguments(), pending.context)
        if not isinstance(arguments, dict):
            raise TypeError(f"tool {name!r}: its sanitise hook returned {arguments!r}; return a dict of the arguments")
        pending = pending.cleaned(arguments)
    if approve is not None:
        is_approved = await run(approve, name, pending.arguments(), pending.context)
        if not isinstance(is_approved, bool):
            raise TypeError(f"tool {name!r}: its approval hook returned {is_approved!r}; return True or False")
        if not is_approved:
            raise ToolError("the call was not approved")
    return pending


async def _here(function: Function, /, *arguments: Any, **named: Any) -> Any:
    """Calls a function on a worker thread, where nothing is awaited."""
    return function(*arguments, **named)


async def _beside(function: Function, /, *arguments: Any, **named: Any) -> Any:
    """Calls a function in a task; a plain one on a thread, so that it does not block the event loop."""
    if is_coroutine_function(function):
        return await function(*arguments, **named)
    from ._event_loop import on_thread

    return await on_thread(function, *arguments, **named)
