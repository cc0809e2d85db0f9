"""`Depends`: parameters of a function that the server supplies, such as a database session."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from threading import Event, Lock
from typing import Any, Literal

from . import _core
from ._event_loop import shield_of_task
from ._lanes import Run, at_end, calling, here
from ._signature import Function, Signature, name_of

Scope = Literal["call", "session"]


def Depends(function: Function, *, scope: Scope = "call") -> Any:
    """Marks a parameter that the server supplies: `db: Annotated[Db, Depends(connect)]`, or `db: Db = Depends(connect)`.
    It is not part of the schema.

    Args:
        function: Makes the value. A plain function, a coroutine function, or a generator of either kind, which
            yields the value and goes on when the value is needed no longer, with the exception if the call failed.
            Its own parameters are a `Context`, further dependencies, or have defaults.
        scope: "call": made once for each call, however many functions need it, and cleaned up before the call is
            answered. "session": made once for each connection or session, at the first call that needs it, and
            cleaned up at its end. From 2026-07-28 on, each call over HTTP is a session of its own.

    Raises:
        TypeError: A parameter of `function` cannot be supplied.
    """
    return Dependency(function, scope)


overrides: ContextVar[Mapping[Function, Dependency]] = ContextVar("overrides", default={})
"""In tests: for the function of a dependency, the dependency that replaces it."""


def overriding(functions: Mapping[Function, Function]) -> dict[Function, Dependency]:
    """Overrides: functions that take the place of others.

    Raises:
        TypeError: One waits, and the other does not.
    """
    made = {}
    for function, instead in functions.items():
        made[function] = Dependency(instead, "call")
        if made[function].is_async and not Dependency(function, "call").is_async:
            raise TypeError(
                f"{name_of(instead)} waits, and {name_of(function)} does not; make it a plain function or generator"
            )
    return made


class Dependency:
    """A function that makes a value, and what it needs itself."""

    __slots__ = ("function", "scope", "needs", "context", "kind", "is_async", "call")

    def __init__(self, function: Function, scope: Scope) -> None:
        if scope not in ("call", "session"):
            raise ValueError(f"Depends: the scope is \"call\" or \"session\", not {scope!r}")
        self.function = function
        self.scope = scope
        signature = Signature(function)
        self.needs, self.context = signature.dependencies, signature.context
        name = name_of(function)
        for parameter, default in signature.parameters.items():
            if not signature.has_default(default):
                raise TypeError(
                    f"dependency {name!r}: parameter {parameter!r} cannot be supplied; make it a Context, a dependency,"
                    " or give it a default"
                )
        for needed in self.needs.values():
            if scope == "session" and needed.scope == "call":
                raise TypeError(
                    f"dependency {name!r} is made once for each session, but needs {needed.function!r}, which is made for"
                    " each call"
                )
        self.kind = _kind(function)
        self.call: Callable[..., Any] = function if self.kind != "function" else calling(function)
        self.is_async: bool
        is_awaited = self.kind == "async generator" or self.kind == "function" and signature.is_async
        self.is_async = is_awaited or any(needed.is_async for needed in self.needs.values())

    async def make(self, run: Run, pending: _core.Pending, values: Values, exits: list[Exit]) -> Any:
        """Makes the value; what is to be done at its end is added to `exits`."""
        named = await values.of(run, pending, self.needs)
        if self.context is not None:
            named[self.context] = pending.context
        if self.kind == "generator":
            return await run(pending, self._entered, named, exits)
        if self.kind == "async generator":
            made = self.call(**named)
            manager = made if hasattr(made, "__aenter__") else asynccontextmanager(lambda: made)()
            value = await manager.__aenter__()
            exits.append(Exit(manager.__aexit__, True))
            return value
        return await self.call(run, pending, named)

    def _entered(self, exits: list[Exit], /, **named: Any) -> Any:
        made = self.call(**named)
        manager = made if hasattr(made, "__enter__") else contextmanager(lambda: made)()
        value = manager.__enter__()
        # Here, since a task that is cancelled meanwhile does not get the value.
        exits.append(Exit(manager.__exit__, False))
        return value


def _kind(function: Function) -> Literal["async generator", "generator", "function"]:
    """The kind of a function. A decorated function, as by `contextlib`, is a generator if the function inside is one."""
    for one in (function, inspect.unwrap(function)):
        if inspect.isasyncgenfunction(one):
            return "async generator"
        if inspect.isgeneratorfunction(one):
            return "generator"
    return "function"


def taken(signature: Signature) -> dict[str, Dependency]:
    """Removes the parameters that are dependencies, and returns these."""
    found = {}
    for name, default in list(signature.parameters.items()):
        hint = signature.hints.get(name)
        marks = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
        dependency = next((one for one in (default, *marks) if isinstance(one, Dependency)), None)
        if dependency is not None:
            found[name] = dependency
            del signature.parameters[name]
    return found


def supplied(needs: dict[str, Dependency], call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Calls a function with the values that it needs, and cleans up after it."""

    async def called(run: Run, pending: _core.Pending, named: dict[str, Any]) -> Any:
        values = Values()
        error: BaseException | None = None
        try:
            return await call(run, pending, named | await values.of(run, pending, needs))
        except BaseException as raised:
            error = raised
            raise
        finally:
            if values.exits:
                await ended(values.exits, error, lambda function, *how: at_end(run, pending, function, *how))
            # Its traceback refers to this frame, which would be a cycle.
            error = None

    return called


class Exit(typing.NamedTuple):
    """The end of a generator."""

    function: Callable[..., Any]
    is_async: bool


async def ended(exits: list[Exit], error: BaseException | None, run: Callable[..., Awaitable[Any]]) -> None:
    """Ends generators, the last one first, each with the exception so far. One that swallows the exception does not
    change the outcome.

    Raises:
        BaseException: The exception of a generator, if it is not the one that it got.
    """
    before = error
    while exits:
        function, is_async = exits.pop()
        how = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        try:
            if is_async:
                # In a scope of trio or anyio that is cancelled, every wait would end at once.
                with shield_of_task():
                    await function(*how)
            else:
                await run(function, *how)
        except BaseException as other:
            error = other
    if error is not None and error is not before:
        try:
            raise error
        finally:
            error = before = None


class Values:
    """The values that one call has got."""

    __slots__ = ("exits", "_made")

    def __init__(self) -> None:
        self.exits: list[Exit] = []
        self._made: dict[Function, Any] = {}

    async def of(self, run: Run, pending: _core.Pending, needs: dict[str, Dependency]) -> dict[str, Any]:
        return {name: await self._one(run, pending, needed) for name, needed in needs.items()}

    async def _one(self, run: Run, pending: _core.Pending, needed: Dependency) -> Any:
        function = needed.function
        if function not in self._made:
            if needed.scope == "session":
                session: Session = pending.session(Session)
                value = await session.value(run, pending, needed)
            else:
                value = await overrides.get().get(function, needed).make(run, pending, self, self.exits)
            self._made[function] = value
        return self._made[function]


class Session:
    """The values of a session, each made once, whichever call or thread needs it first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[Function, Any] = {}
        self._making: dict[Function, list[Callable[[], object]]] = {}
        self._values = Values()

    async def value(self, run: Run, pending: _core.Pending, needed: Dependency) -> Any:
        function = needed.function
        while True:
            with self._lock:
                if function in self._made:
                    return self._made[function]
                waiting = self._making.get(function)
                if waiting is None:
                    self._making[function] = []
                    break
                wait, wake = _waiter(run, pending)
                waiting.append(wake)
            await wait()
        made: dict[Function, Any] = {}
        exits: list[Exit] = []
        try:
            made[function] = await overrides.get().get(function, needed).make(run, pending, self._values, exits)
            return made[function]
        finally:
            self._done(function, made, exits)

    def _done(self, function: Function, made: dict[Function, Any], exits: list[Exit]) -> None:
        with self._lock:
            self._made |= made
            self._values.exits += exits
            waiting = self._making.pop(function)
        for wake in waiting:
            wake()

    def close_here(self) -> None:
        """Cleans up at the end of the session, on this thread, without an event loop."""
        try:
            ended(self._values.exits, None, _called).send(None)
        except StopIteration:
            pass

    async def close(self) -> None:
        """Cleans up at the end of the session. Plain generators end on a thread."""
        from ._event_loop import on_thread

        await ended(self._values.exits, None, on_thread)


async def _called(function: Function, *arguments: Any) -> Any:
    return function(*arguments)


def _waiter(run: Run, pending: _core.Pending) -> tuple[Callable[[], Coroutine[Any, Any, None]], Callable[[], object]]:
    """A way to wait, and one to end the waiting from any thread."""
    if run is here:
        there = Event()

        async def block() -> None:
            # The value may be made by a plain function that waits for a worker thread.
            pending.aside(there.wait)

        return block, there.set
    from ._event_loop import arrival

    future, wake = arrival()

    async def wait() -> None:
        await future

    return wait, wake
