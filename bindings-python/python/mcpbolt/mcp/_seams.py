"""Puts the engine where the SDK's servers meet their transport: stdin and stdout, and the HTTP application.

FastMCP serves through the same three places. Each function replaces what one module of the SDK has:

    stdio      `stdio_server`: its streams are the engine's, or lead to it
    lowlevel   `Server.run`: a server that is given these streams runs on the engine, accelerated
    http       `StreamableHTTPSessionManager`: the engine answers what the application hands to it
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from types import ModuleType
from typing import Any

import anyio

from . import _gate, _private as private, _said

GRACE = 1.0
"""Seconds that calls in flight have when stdin ends. By themselves the packages cancel them."""


def join(name: str, module: ModuleType) -> None:
    """Replaces the transport in that module, if its release is known."""
    how = _gate.known("mcp")
    if how is None:
        return _said.untouched("mcp")
    if name == "stdio":
        replace(module, "stdio_server", (carried_stdio if how == _gate.CARRIED else led_stdio)(module.stdio_server))
    elif name == "lowlevel" and how == _gate.ACCELERATED:
        module.Server.run = run_on_engine(module.Server.run)
    elif name == "http":
        from . import _manager

        _manager.join(module.StreamableHTTPSessionManager, how)


def replace(module: ModuleType, name: str, new: Any) -> None:
    """Replaces a function, also where other modules have imported it already."""
    old = getattr(module, name)
    for one in [*sys.modules.values()]:
        if vars(one).get(name) is old if isinstance(one, ModuleType) else False:
            setattr(one, name, new)


def is_asyncio() -> bool:
    """Whether the running event loop is asyncio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def obstacle(stdin: object, stdout: object) -> str | None:
    """Why the engine cannot serve stdin and stdout; `None` if it can."""
    if stdin or stdout:
        return "the program has streams of its own"
    if not is_asyncio():
        return "the event loop is not asyncio's"
    return None


def _stdio(original: Callable[..., Any], own: Callable[[], Any]) -> Callable[..., Any]:
    """`stdio_server` that opens the streams of `own` where the engine can serve, and its own ones elsewhere."""

    @asynccontextmanager
    @wraps(original)
    async def stdio_server(stdin: Any = None, stdout: Any = None) -> AsyncIterator[Any]:
        reason = obstacle(stdin, stdout)
        if reason is not None:
            _said.kept("stdio", reason)
        async with own() if reason is None else original(stdin, stdout) as streams:
            yield streams

    return stdio_server


def carried_stdio(original: Callable[..., Any]) -> Callable[..., Any]:
    """`stdio_server` whose messages the engine reads, checks and writes, and any session answers."""
    return _stdio(original, _carried)


@asynccontextmanager
async def _carried() -> AsyncIterator[Any]:
    from .. import _core, _loop
    from .._event_loop import at_last
    from .._running import stray_output
    from ._carried import Carried

    carried = Carried("stdio")

    def start(interpreter: Any) -> Any:
        return _core.Serving.stdio(carried._catalog(), interpreter, GRACE, False)

    with stray_output():
        async with _loop.running(carried, start) as (serving, ended):
            _said.carried("stdio")
            # A client that opens no connection of the handshake era ends, too.
            ended.add_done_callback(lambda _: carried.link.closed())
            try:
                yield carried.link.reading, carried.link.writing
            finally:
                carried.link.give_up()
                serving.stop()
                await at_last(ended)


def led_stdio(original: Callable[..., Any]) -> Callable[..., Any]:
    """`stdio_server` whose streams lead a server to the engine. Anything else that uses them finds the SDK's own."""

    @asynccontextmanager
    async def led() -> AsyncIterator[Any]:
        from ._led import Led

        async with Led(original) as streams:
            yield streams.reading, streams.writing

    return _stdio(original, led)


def run_on_engine(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Server.run` that has the engine serve, if the streams lead there."""

    @wraps(original)
    async def run(
        self: Any, read_stream: Any, write_stream: Any, initialization_options: Any, *args: Any, **named: Any
    ) -> None:
        from ._led import of

        led = of(read_stream, write_stream)
        if led is None:
            return await original(self, read_stream, write_stream, initialization_options, *args, **named)  # type: ignore[no-any-return]
        reason = unfit(self, _gate.ACCELERATED)
        if reason is not None:
            _said.kept("stdio", reason)
            async with led.originals() as (reading, writing):
                return await original(self, reading, writing, initialization_options, *args, **named)  # type: ignore[no-any-return]
        from .. import _loop
        from ._served import ServedWithin
        from ._server import Known

        known = Known(private.owner_of(self))
        served = ServedWithin(known, "stdio", is_accelerated=True, options=initialization_options)
        _said.served("stdio", known.server)
        if not (any(args) or any(named.values())):
            return await _loop.serve(served, GRACE, own=False)
        # `raise_exceptions`: the exception leaves the task group in which the SDK runs its handlers.
        served.kernel.failed = asyncio.get_running_loop().create_future()
        async with anyio.create_task_group():
            await _loop.serve(served, GRACE, False, served.kernel.failed)

    return run


def unfit(server: Any, how: str) -> str | None:
    """Why the engine cannot do that for a low-level server; `None` if it can. The SDK itself is of a known release."""
    is_fastmcp = any(base.__module__.split(".")[0] == "fastmcp" for base in type(server).__mro__)
    if not is_fastmcp or _gate.known("fastmcp") in (how, _gate.ACCELERATED):
        return None
    if _gate.known("fastmcp") is None:
        _said.untouched("fastmcp")
    return _gate.unfit("fastmcp")
