"""Runs a server on the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _core
from ._carrier import Carriers
from ._event_loop import at_last, event_loop, pause, shield_of_task, shielded
from ._interpreter import Interpreter
from ._serve_options import ServeOptions, serve_options
from ._wake import watch

if TYPE_CHECKING:
    from ._event_loop import Future, Loop
    from ._trio import Calls


class Counts(NamedTuple):
    """Counters of a served address. Reading them is cheap and does not disturb the server.

    Members named `open_…` are current values, the others totals since the start. `http_errors` counts HTTP requests
    answered with a status of 400 or more; bytes are those of the sockets, without the overhead of TLS.
    """

    open_connections: int
    connections: int
    websockets: int
    http_requests: int
    http_errors: int
    open_sessions: int
    sessions: int
    open_calls: int
    calls: int
    bytes_read: int
    bytes_written: int


class ServedAddress(str):
    """The address that a running server listens on, with counters of its traffic."""

    _counter: _core.Counter

    @property
    def counts(self) -> Counts:
        """The counters of the address at this moment."""
        return Counts(*self._counter.counts())


Start = Callable[[Interpreter], _core.Serving]


@asynccontextmanager
async def running(server: Any, start: Start) -> AsyncIterator[tuple[_core.Serving, Future[None]]]:
    """Runs a server while the block runs; yields it and a future that is done when it has ended."""
    loop = event_loop()
    async with lifespan(server) as entered:
        state, states = entered if server._mounts else (entered, {})
        ended: Future[None] = loop.create_future()
        calls = carriers(loop)
        greet = getattr(server, "greet", None)
        sessions = Sessions(loop, server._settings.failed)
        serving = start(Interpreter(state, states, calls.spawn, loop.call_soon, greet, sessions.leave))

        left = False

        def drain() -> None:
            if not serving.drain() and not ended.done():
                ended.set_result(None)
            if left and not serving.has_tasks:
                forget()

        forget = watch(loop, serving.wake(), drain)
        try:
            yield serving, ended
        finally:
            await sessions.over(serving)
            # MCP tasks go on after the block, and still get the client's answers and cancellations.
            left = True
            drain()
            serving.close()
            calls.close()


def carriers(loop: Loop) -> Carriers | Calls:
    """Makes the object that starts calls on this loop."""
    if isinstance(loop, asyncio.AbstractEventLoop):
        return Carriers(loop)
    from ._trio import Calls

    return Calls()


def lifespan(server: Any) -> AbstractAsyncContextManager[Any]:
    """The lifespan of a server, or an empty context if it has none. With mounted servers it yields two values: its state, and
    those of the mounted ones by their `id`."""
    if server._mounts:
        return _lifespans(server)
    if server._lifespan is None:
        return nullcontext()
    made: AbstractAsyncContextManager[Any] = server._lifespan(server)
    return made


@asynccontextmanager
async def _lifespans(server: Any) -> AsyncIterator[tuple[Any, dict[int, Any]]]:
    """Enters the lifespans of a server and of those that it mounts, those first."""
    from ._mount import lifespans

    async with AsyncExitStack() as stack:
        states = {id(one): await stack.enter_async_context(one._lifespan(one)) for one in reversed(lifespans(server))}
        yield states.get(id(server)), states


class Sessions:
    """Cleans up the values of the sessions of a running server."""

    PATIENCE = 5.0
    """Seconds that calls may hold a session after the server has ended."""

    def __init__(self, loop: Loop, failed: Callable[..., object]) -> None:
        self._loop = loop
        self._failed = failed
        # The sessions that are being closed, and their tasks, which event loops know weakly.
        self._closing: dict[Any, object] = {}

    def leave(self, session: Any) -> None:
        """Cleans up the values of a session that has ended."""
        self._closing[session] = None
        task = self._loop.create_task(self._close(session))
        # A task that starts at once may have ended.
        if session in self._closing:
            self._closing[session] = task

    async def _close(self, session: Any) -> None:
        try:
            await session.close()
        except Exception as error:
            self._failed(error, "the end of a session failed", None)
        finally:
            del self._closing[session]

    async def over(self, serving: _core.Serving) -> None:
        """Waits until all sessions are cleaned up."""
        if not (self._closing or serving.keeps_some):
            return  # without waiting, which a run of trio that has ended does not allow
        end = monotonic() + self.PATIENCE
        with shield_of_task():
            while (self._closing or serving.keeps_some) and monotonic() < end:
                await pause(0.002)


async def serve(server: Any, grace: float, own: bool, failed: asyncio.Future[None] | None = None) -> None:
    """Serves on stdin and stdout until the input ends; cancelling it shuts down gracefully, and so does `failed`, whose
    exception is raised."""
    from ._running import stray_output

    def start(interpreter: Interpreter) -> _core.Serving:
        return _core.Serving.stdio(server._catalog(), interpreter, grace, own)

    with stray_output():
        async with running(server, start) as (serving, ended):
            try:
                if failed is None:
                    await shielded(ended)
                else:
                    await asyncio.wait([cast("asyncio.Future[None]", ended), failed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                serving.stop()
                await at_last(ended)
    if failed is not None and failed.done():
        failed.result()


@asynccontextmanager
async def listening(
    server: Any,
    address: str,
    grace: float,
    options: ServeOptions | None,
    own: _core.Termination | None = None,
    worker: bool = False,
) -> AsyncIterator[tuple[_core.Serving, Future[None]]]:
    """Runs a server on the network, perhaps as one of several processes; shuts it down gracefully at the end of the block, or
    on a signal noted in `own`."""

    def start(interpreter: Interpreter) -> _core.Serving:
        return _core.Serving.network(server._catalog(), interpreter, address, serve_options(options, grace), own, worker)

    async with running(server, start) as (serving, ended):
        try:
            yield serving, ended
        finally:
            serving.stop()
            await at_last(ended)


@asynccontextmanager
async def address_of(server: Any, address: str, grace: float, options: ServeOptions | None) -> AsyncIterator[ServedAddress]:
    """Runs a server on the network while the block runs; yields its address."""
    async with listening(server, address, grace, options) as (serving, _):
        served = ServedAddress(serving.address)
        served._counter = serving.counter()
        yield served


async def serve_listening(
    server: Any,
    address: str,
    grace: float,
    options: ServeOptions | None,
    ready: Callable[[str], object],
    worker: bool = False,
) -> None:
    """Serves on the network until the process gets a signal, or its supervisor ends it; calls `ready` with the address first."""
    from ._running import ended_by_signals

    with ended_by_signals() as own:
        async with listening(server, address, grace, options, own, worker) as (serving, ended):
            ready(serving.address)
            await shielded(ended)
