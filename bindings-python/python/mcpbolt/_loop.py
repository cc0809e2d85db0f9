"""A server on the running event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from typing import Any

from . import _core
from ._errors import ToolError

Start = Callable[..., _core.Serving]


def spawner(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """What starts the task of one call."""

    async def carry_out(job: _core.Job, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        try:
            value = await function(**arguments)
        except asyncio.CancelledError:
            job.fail(ToolError("the server cancelled the call"))
            raise
        except BaseException as error:
            job.fail(error)
        else:
            job.settle(value)

    if sys.version_info >= (3, 12):

        def spawn(job: _core.Job, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
            return asyncio.Task(carry_out(job, function, arguments), loop=loop, eager_start=True)

    else:

        def spawn(job: _core.Job, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
            return loop.create_task(carry_out(job, function, arguments))

    return spawn


@asynccontextmanager
async def running(server: Any, start: Start) -> AsyncIterator[tuple[_core.Serving, asyncio.Future[None]]]:
    """A connection of a server, and the future of its end."""
    loop = asyncio.get_running_loop()
    async with lifespan(server) as state:
        ended = loop.create_future()
        serving = start(state, copy_context(), spawner(loop), loop.call_soon)

        left = False

        def drain() -> None:
            if not serving.drain() and not ended.done():
                ended.set_result(None)
            if left and not serving.has_tasks:
                loop.remove_reader(fd)

        fd = serving.fileno()
        loop.add_reader(fd, drain)
        try:
            yield serving, ended
        finally:
            # Tasks of the protocol go on, and hear of their answers and of being given up.
            left = True
            drain()
            serving.close()


def lifespan(server: Any) -> AbstractAsyncContextManager[Any]:
    """What the server's lifespan gives, or nothing."""
    if server._lifespan is None:
        return _nothing()
    made: AbstractAsyncContextManager[Any] = server._lifespan(server)
    return made


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield None


async def serve(server: Any, grace: float, own: bool) -> None:
    """Serves on stdin and stdout until the wire ends; a cancellation ends it in good order."""
    from ._running import stray_output

    def start(*interpreter: Any) -> _core.Serving:
        return _core.Serving.stdio(server._catalog(), grace, own, *interpreter)

    with stray_output():
        async with running(server, start) as (serving, ended):
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                serving.stop()
                await ended
                raise
