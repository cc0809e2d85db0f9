"""Assembles fronts from their parts, and runs them on an event loop, which is imported only then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import finalize

from . import _core
from ._hooks import HookRunner, interests
from ._server import Server
from .chain import External, Front, Middleware, Rule

if TYPE_CHECKING:
    from ._event_loop import Future, Loop
    from ._interpreter import Interpreter
    from ._loop import ServedAddress


def fronts(external: External) -> Iterator[Front]:
    """The fronts between an external server and the servers at the ends."""
    if isinstance(external._end, Front):
        yield external._end
        for one in external._end._externals:
            yield from fronts(one)


def ends(front: Front) -> Iterator[External]:
    """The servers at the ends of a chain."""
    for one in front._externals:
        if isinstance(one._end, Front):
            yield from ends(one._end)
        else:
            yield one


def _servers(front: Front) -> Iterator[Server]:
    """The servers of this program in a chain: at its ends, and those whose policies fronts have."""
    for one in [front, *(inner for external in front._externals for inner in fronts(external))]:
        if one._server is not None:
            yield one._server
    for end in ends(front):
        if isinstance(end._within, Server):
            yield end._within


class _Assembly:
    """The parts of a chain that run. `servers` are those of this program, by their `id`."""

    def __init__(self, servers: Mapping[int, _core.Serving], runner: HookRunner | None) -> None:
        self._servers = servers
        self._runner = runner
        self._handoffs = _core.Handoffs() if runner is None else runner.native

    def external(self, external: External, front: Front) -> _core.External:
        """The engine's external server."""
        end = external._end
        if isinstance(end, Front):
            made = _core.External.chain(external.name, self.front(end), external._settings)
        elif isinstance(end, Server):
            made = _core.External.server(external.name, self._servers[id(end)], external._settings, external._is_own)
        else:
            assert external._native is not None
            made = external._native
        rules = [rule._made(external.name, front._failed, self._runner) for rule in external._rules]
        return made.ruled(rules) if rules else made

    def front(self, front: Front) -> _core.Front:
        """The engine's front."""
        of_program = [one for one in front._middleware if isinstance(one, Middleware)]
        made = _core.Front(
            [self.external(one, front) for one in front._externals],
            [self._middleware(one, front) for one in front._middleware],
            self._handoffs,
            front._settings,
            front._audit,
            front._failed,
            front._max_hops,
            front._patience,
            None if front._server is None else self._servers[id(front._server)],
            front._telemetry,
        )
        if self._runner is not None:
            self._runner.add(made.numbers, of_program, front._failed, front._hook_timeout)
        return made

    def _middleware(self, one: Middleware | _core.Prefix | Rule, front: Front) -> tuple[bool, bool] | _core.Prefix | _core.Rule:
        if isinstance(one, Middleware):
            return interests(one)
        return one if isinstance(one, _core.Prefix) else one._made(front.name, front._failed, self._runner)


def assembled_alone(front: Front) -> _core.Front:
    """The engine's front, without an event loop, which it does not need."""
    return _Assembly({}, None).front(front)


@asynccontextmanager
async def assembled(front: Front) -> AsyncIterator[_core.Front]:
    """The engine's front, whose servers of this program and whose middleware run while the block runs."""
    from ._event_loop import event_loop

    loop = event_loop()
    async with AsyncExitStack() as stack:
        for end in ends(front):
            if end._oauth:
                end._oauth.bind(loop)
        servers: dict[int, _core.Serving] = {}
        for server in _servers(front):
            if id(server) not in servers:
                servers[id(server)] = await stack.enter_async_context(_within(server))
        runner = HookRunner(loop)
        stack.callback(runner.close)
        yield _Assembly(servers, runner).front(front)


# The tasks that keep fronts, by the futures of their ends: event loops know tasks weakly.
_keeping: dict[object, object] = {}


class Kept:
    """The engine's front of a client in this program, assembled until the client is closed or collected.

    A task assembles it, which nothing of the client refers to: the generators of a client that is collected end all at once, and
    those within others could not end what they run.
    """

    def __init__(self, front: Front) -> None:
        from ._event_loop import event_loop

        self._loop = loop = event_loop()
        self._front = front
        self._made: Future[_core.Front] = loop.create_future()
        self._over: Future[None] = loop.create_future()
        self._ended: Future[None] = loop.create_future()
        self._dropped = finalize(self, _end_soon, loop, self._over)
        self._dropped.atexit = False

    async def __aenter__(self) -> _core.Front:
        _keeping[self._ended] = None
        task = self._loop.create_task(_keep(self._front, self._made, self._over, self._ended))
        # A task that starts at once may have ended.
        if self._ended in _keeping:
            _keeping[self._ended] = task
        try:
            return await self._made
        except BaseException:
            _end(self._over)
            raise

    async def __aexit__(self, *_: object) -> None:
        from ._event_loop import at_last

        self._dropped.detach()
        _end(self._over)
        await at_last(self._ended)


async def _keep(front: Front, made: Future[_core.Front], over: Future[None], ended: Future[None]) -> None:
    """Assembles a front, and takes it apart when `over` is done."""
    try:
        async with assembled(front) as native:
            if not made.done():
                made.set_result(native)
            await over
    except Exception as error:
        (ended if made.done() else made).set_exception(error)
    except BaseException:
        made.cancel()
        ended.cancel()
        raise
    else:
        ended.set_result(None)
    finally:
        _keeping.pop(ended, None)


def _end(over: Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def _end_soon(loop: Loop, over: Future[None]) -> None:
    # The collector runs on any thread.
    try:
        loop.call_soon_threadsafe(_end, over)
    except RuntimeError:
        pass  # The loop is closed.


@asynccontextmanager
async def _within(server: Server) -> AsyncIterator[_core.Serving]:
    """Runs a server that is reached from within this program."""
    from ._event_loop import at_last
    from ._loop import running

    def start(interpreter: Interpreter) -> _core.Serving:
        return _core.Serving.within(server._catalog(), interpreter)

    async with running(server, start) as (serving, ended):
        try:
            yield serving
        finally:
            serving.stop()
            await at_last(ended)


@asynccontextmanager
async def serving(
    front: Front, address: str, options: str, own: _core.Termination | None = None, worker: bool = False
) -> AsyncIterator[tuple[_core.ServedFront, Future[None]]]:
    """Serves a front; shuts it down gracefully at the end of the block, or on a signal noted in `own`."""
    from ._event_loop import at_last, event_loop
    from ._wake import watch

    loop = event_loop()
    ended: Future[None] = loop.create_future()
    async with assembled(front) as native:
        served = _core.ServedFront(native, address, options, own, worker)

        def look() -> None:
            if served.is_over() and not ended.done():
                ended.set_result(None)

        forget = watch(loop, served.wake(), look)
        look()
        try:
            yield served, ended
        finally:
            served.stop()
            await at_last(ended)
            forget()
            served.close()


@asynccontextmanager
async def address_of(front: Front, address: str, options: str) -> AsyncIterator[ServedAddress]:
    """Serves a front while the block runs; yields its address."""
    from ._loop import ServedAddress

    async with serving(front, address, options) as (served, _):
        at = ServedAddress(served.address)
        at._counter = served.counter()
        yield at


@asynccontextmanager
async def endpoint(front: Front, options: str) -> AsyncIterator[_core.Endpoint]:
    """The HTTP endpoint of a front, for an ASGI application."""
    # A server without tools, by which the loop learns that there is more of an answer.
    async with assembled(front) as native, _within(Server("mcpbolt")) as pump:
        yield _core.mount_front(native, pump, options)
