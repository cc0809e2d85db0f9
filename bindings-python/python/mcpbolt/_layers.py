"""The layers around the function of an entry: hooks, middleware, a result cache, `Steps` and dependencies.

Each layer is called with the call and the rest of the way, and returns what the function would return. The outermost
comes first. Functions that all are plain run on a worker thread, as the function would alone; as soon as one is a
coroutine function, the call is a task of the event loop, and plain functions run on worker threads beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import copy
from typing import Any

from . import _core
from ._entry import Entry
from ._errors import ToolError
from ._lanes import Around, Layer, Rest, Run, calling, here
from ._settings import Settings
from ._signature import Function, is_coroutine_function


def layers(entry: Entry, settings: Settings) -> list[Layer]:
    """The layers that a server puts around one of its entries, or around one of a server that it mounts: first the hook that
    cleans arguments, then middleware, then approval, so that what is approved is what runs."""
    found = []
    name, is_tool = entry.name, entry.kind == "tool"
    if is_tool and (clean := settings.sanitise.get(name, settings.sanitise.get("*"))):
        found.append(Layer(_cleaning(name, clean), is_coroutine_function(clean)))
    if settings.middleware:
        from ._middleware import layer

        found += [layer(entry, one) for one in settings.middleware]
    if is_tool and (approve := settings.approval.get(name, settings.approval.get("*"))):
        found.append(Layer(_approving(name, approve), is_coroutine_function(approve)))
    return found


def layered(entry: Entry, around: Sequence[Layer]) -> Entry:
    """The entry with these layers around its function, and with its own cache, `Steps` and dependencies."""
    if not around and not entry.is_wrapped:
        return entry
    is_async = entry.is_async or any(layer.is_async for layer in around)
    rest = layers_around(_innermost(entry), around)
    made = copy(entry)
    made.is_layered = True
    made.function, made.lane = (_as_task(rest), "task") if is_async else (_on_worker(rest), "worker")
    return made


def layers_around(rest: Rest, around: Sequence[Layer]) -> Rest:
    """The layers, and within them the rest."""
    for layer in reversed(around):
        rest = _within(layer, rest)
    return rest


def _within(layer: Layer, rest: Rest) -> Rest:
    around = layer.around

    def run_within(run: Run, pending: _core.Pending) -> Coroutine[Any, Any, Any]:
        return around(run, pending, rest)

    return run_within


def call_of(entry: Entry) -> Callable[..., Awaitable[Any]]:
    """`call(run, pending, named)` for the function of an entry, with what it depends on."""
    function = entry.function

    async def at_once(_run: Run, _pending: _core.Pending, named: dict[str, Any]) -> Any:
        return function(**named)

    call = at_once if entry.lane == "inline" else calling(function)
    if not entry.dependencies:
        return call
    from ._depends import supplied

    return supplied(entry.dependencies, call)


def _innermost(entry: Entry) -> Rest:
    """Calls the function itself."""
    if entry.wrapped is not None:
        return entry.wrapped
    call, kept, steps, is_async = call_of(entry), entry.kept, entry.steps, entry.lane == "task"
    if kept is None and steps is None:

        async def plain(run: Run, pending: _core.Pending) -> Any:
            return await call(run, pending, pending.taken())

        return plain

    async def attempted(run: Run, pending: _core.Pending) -> Any:
        asked = None if kept is None else pending.ask(kept)
        found = asked and asked.found()
        if found is not None:
            return found
        from ._attempt import attempt

        return await attempt(run, pending, call, is_async, steps, asked)

    return attempted


def _cleaning(name: str, clean: Function) -> Around:
    call = calling(clean)

    async def around(run: Run, pending: _core.Pending, rest: Rest) -> Any:
        arguments = await call(run, pending, {}, name, pending.arguments(), pending.context)
        if not isinstance(arguments, dict):
            raise TypeError(f"tool {name!r}: its sanitise hook returned {_kind(arguments)}; return a dict of the arguments")
        return await rest(run, pending.cleaned(arguments))

    return around


def _approving(name: str, approve: Function) -> Around:
    call = calling(approve)

    async def around(run: Run, pending: _core.Pending, rest: Rest) -> Any:
        is_approved = await call(run, pending, {}, name, pending.arguments(), pending.context)
        if not isinstance(is_approved, bool):
            raise TypeError(f"tool {name!r}: its approval hook returned {_kind(is_approved)}; return True or False")
        if not is_approved:
            raise ToolError("the call was not approved")
        return await rest(run, pending)

    return around


def _kind(value: object) -> str:
    """The kind of a value that errors do not show, since it may be secret."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _as_task(rest: Rest) -> Function:
    # It needs asyncio, which a server without an event loop does not import.
    from ._beside import beside

    async def called(pending: _core.Pending) -> Any:
        return await rest(beside, pending)

    return called


def _on_worker(rest: Rest) -> Function:
    def called(pending: _core.Pending) -> Any:
        try:
            rest(here, pending).send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("a plain function does not wait")

    return called
