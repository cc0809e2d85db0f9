"""Chains: a server towards clients whose messages go to another server, through middleware.

    from mcpbolt.chain import External, Front, Middleware

    class Loud(Middleware):
        async def request(self, message, next):
            response = await next(message)
            print(message["method"], "error" in response)
            return response

    Front(External("https://example.com/mcp"), middleware=[Loud()]).run()

Each side speaks its own revision, with its own ids and progress tokens. Messages that no middleware of the program sees
are passed on by the engine as the bytes that came, without the interpreter.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal

from . import _core
from ._auth import ApiKey, Basic, Bearer, ConnectOptions, connect_options
from ._core import Prefix, to_json
from ._desk import Desk, Direction, Next, interests
from ._failures import Failures
from ._oauth import OAuth
from ._options import options as set_options
from ._serve_options import ServeOptions, serve_options
from ._server import Server
from ._settings import Policy, Settings

if TYPE_CHECKING:
    from ._content import Wire
    from ._event_loop import Future
    from ._interpreter import Interpreter
    from ._loop import ServedAddress

__all__ = ["Direction", "External", "Front", "Isolation", "Middleware", "Next", "Prefix"]

Isolation = Literal["session", "principal", "shared"]


class External:
    """A server that a chain ends at. A front connects to it when clients need it, and again when a connection was lost.

    Args:
        server: An address, or the words of a command line, as for a `Client`; a `Server` of this program, which runs while
            the front is served; or another `Front`.
        name: The name that stands in errors. By default that of the server, without arguments, paths and queries.
        prefix: What clients see before the names and URIs of the server: `find` becomes `library_find`, and `book://list`
            becomes `book://library/list`. Servers that are joined to one front need one each; one of them may do without.
        headers: Further headers of each request, for HTTP and WebSocket.
        auth: Credentials, as for a `Client`. Those that clients send are never passed on.
        connect_timeout: Seconds within which an address must be connected; 30 by default.
        root_certificates: A PEM file of certificates to trust in addition to the system's.
        certificate: The client certificate: the PEM files of the certificate and its key.
        options: Further options of the transport.
        cwd: The working directory of children.
        env: Environment variables of children, which otherwise inherit only a few.
        inherit_env: Names of more variables that children inherit.
        opening: "probe", "handshake" or "stateless", as for a `Client`. By default connections open in the era of the
            client, so that nothing needs to be translated, and else in the other one.
        revision: The one protocol revision to speak with the server; any by default.
        isolation: Which clients share a connection to the server, and thus its process if it is a command. "session": each
            session has one of its own; the default. "principal": the sessions of a verified client share one, if they declare
            the same capabilities. "shared": all clients share one; a server of a revision before 2026-07-28 is told that they
            answer no questions. Requests of 2026-07-28 over HTTP have no session: they share connections as far as the server
            can tell their clients apart.
        max_connections: How many connections to the server may be open at a time; 10,000 by default, and 256 for commands. A
            client that would need another one gets an error of an overloaded server.
        timeout: Seconds that a request waits for its answer, which reports of progress restart; 60 by default. Then it
            is cancelled, and its sender gets an error.
        max_timeout: Seconds that a request waits in all.
    """

    def __init__(
        self,
        server: Server | Front | str | Sequence[str | PathLike[str]],
        *,
        name: str | None = None,
        prefix: str | None = None,
        headers: Mapping[str, str] = {},
        auth: Bearer | Basic | ApiKey | OAuth | None = None,
        connect_timeout: float | None = None,
        root_certificates: str | PathLike[str] | None = None,
        certificate: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        options: ConnectOptions | None = None,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: Sequence[str] = (),
        opening: Literal["probe", "handshake", "stateless"] | None = None,
        revision: str | None = None,
        isolation: Isolation | None = None,
        max_connections: int | None = None,
        timeout: float | None = None,
        max_timeout: float | None = None,
    ) -> None:
        settings = set_options(
            opening=opening,
            revision=revision,
            prefix=prefix,
            isolation=isolation,
            max_connections=max_connections,
            timeout=timeout,
            max_timeout=max_timeout,
        )
        if prefix is not None:
            Prefix(prefix)
        self._prefix = prefix
        self._settings = to_json(settings)
        self._within = server if isinstance(server, (Server, Front)) else None
        self._oauth = auth if isinstance(auth, OAuth) else None
        self._native: _core.External | None = None
        if isinstance(server, (Server, Front)):
            self.name = name or server.name
            return
        if isinstance(server, str):
            server = _core.command_of(server) or server
        if isinstance(server, str):
            connect = connect_options(headers, auth, connect_timeout, root_certificates, certificate, options)
            login = self._oauth.native if self._oauth else None
            self._native = _core.External.at(name, server, to_json(connect), login, self._settings)
        else:
            command = [fspath(word) for word in server]
            directory = None if cwd is None else fspath(cwd)
            more = list((env or {}).items())
            self._native = _core.External.command(name, command, directory, more, list(inherit_env), self._settings)
        self.name = self._native.name

    def _needs_loop(self) -> bool:
        within = self._within
        is_bound = self._oauth is not None
        return is_bound or isinstance(within, Server) or (isinstance(within, Front) and within._needs_loop())


class Middleware:
    """A part of a chain that sees its messages, in both directions: `next.direction` says in which. Each hook that a class
    does not have is skipped, without the interpreter.

    Messages are dicts, as JSON-RPC has them: `jsonrpc`, `id`, `method`, `params`, `result`, `error`. The `id` is the one of
    the sender; requests of several senders may have the same. What is passed on unchanged goes on byte for byte. Requests
    meet the middleware of a front in its order, responses and the server's messages in the reverse order. Reports of progress
    and cancellations are not shown, as each side has its own.

    Hooks are coroutine functions, each call of which is a task of the event loop. A task is cancelled when the sender of
    its request cancels it. An exception in a hook is an error for the sender of the request: a `ProtocolError`, `PeerError`
    or `ToolError` with its text, any other one without, and logged.
    """

    async def request(self, message: Wire, next: Next) -> Wire:
        """Handles a request. Returns the response, which is what `await next(message)` gives, or one of its own.

        `next` gives an error of the other side as a response with `error`, and raises an `McpError` if there is no
        response: the server cannot be reached, or does not answer in time. Left to itself, this exception becomes an
        error that says so.
        """
        return await next(message)

    async def response(self, message: Wire, next: Next) -> object:
        """Handles a response to a request that this middleware passed on, before `request` gets it. What is given to `next`
        is passed on."""
        return await next(message)

    async def notification(self, message: Wire, next: Next) -> object:
        """Handles a notification. One that is not given to `next` is dropped. Messages that come while this waits may
        overtake it."""
        return await next(message)


class Front:
    """A server towards its clients that passes their requests on to an `External`, or to several that are joined, through
    middleware.

        Front(External(server)).join(External("https://example.com/mcp", prefix="far")).run()

    Args:
        middleware: `Middleware`, from the clients to the server; and `Prefix`, the engine's own.
        policy: What clients may do, and how they are verified: without a `verifier`.
        max_hops: How many fronts a request may pass before it is refused as one that goes in a circle.
        patience: Seconds that each of several servers has to add its part to a list, and to what the front offers; 5 by
            default.
        mask_error_details: Whether the texts of unexpected exceptions of middleware are kept from clients.
    """

    def __init__(
        self,
        external: External,
        *,
        middleware: Sequence[Middleware | Prefix] = (),
        policy: Policy | None = None,
        max_hops: int = 16,
        patience: float | None = None,
        mask_error_details: bool = True,
    ) -> None:
        if policy is not None and policy.verifier is not None:
            raise ValueError("policy: a front has no verifier= of the program; use jwt=, keys= or resource=")
        self._externals = [external]
        self._patience = set_options(patience=patience).get("patience")
        self._middleware = list(middleware)
        self._max_hops = max_hops
        self._failed = Failures(external.name, mask_error_details)
        self._settings = Settings(policy=policy, name=external.name, version=_core.__version__).json
        self._audit = None if policy is None else policy.audit

    @property
    def name(self) -> str:
        """The name of the first server."""
        return self._externals[0].name

    def join(self, external: External) -> Front:
        """Adds another server, before the front is served. Returns the front.

        Clients see the tools, prompts and resources of all: lists are merged, and each call goes to the server whose `prefix`
        its name has, or else to the one without a prefix. A server that fails, or that is late, is left out of lists and
        named in their `_meta`, as `dev.mcpbolt/partial`.

        Raises:
            ValueError: If two servers have the same name, no prefix, or prefixes that could make the same names: one is the
                other, in either case, or is the other and `_` and more. If the front would lead to itself.
        """
        if any(front is self for front in _fronts(external)):
            raise ValueError(f"the server {external.name!r} leads to this front itself; join the servers behind it")
        joined = [*self._externals, external]
        _core.check_joined([(one.name, one._prefix) for one in joined])
        self._externals = joined
        return self

    def run(self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None) -> None:
        """Serves as `Server.run` does. Blocks. An event loop is started only if there is middleware of the program, or a
        `Server` at the end."""
        from ._running import ended_by_signals, stray_output

        def ready(at: str) -> None:
            if address != "stdio:":
                print(f"{self.name} is reached at {at}", file=sys.stderr, flush=True)

        with ended_by_signals() as own, stray_output():
            if self._needs_loop():
                import asyncio

                return asyncio.run(self._run(address, serve_options(options, grace), own, ready))
            served = _core.ServedFront(_assembled(self, {}, None), address, serve_options(options, grace), own)
            try:
                ready(served.address)
                served.wait()
            finally:
                served.close()

    async def _run(
        self, address: str, options: str, own: _core.Termination | None, ready: Callable[[str], object]
    ) -> None:
        from ._event_loop import shielded

        async with _serving(self, address, options, own) as (served, ended):
            ready(served.address)
            await shielded(ended)

    async def serve(
        self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> None:
        """Serves in the running event loop, as `Server.serve` does."""
        from ._event_loop import shielded
        from ._running import stray_output

        if address == "stdio:":
            with stray_output():
                async with _serving(self, address, serve_options(options, grace)) as (_, ended):
                    return await shielded(ended)
        async with _serving(self, address, serve_options(options, grace)) as (_, ended):
            await shielded(ended)

    def listening(
        self, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> AbstractAsyncContextManager[ServedAddress]:
        """Serves in the running event loop while the block runs. Yields the address, as `Server.listening` does."""
        return _address(self, address, serve_options(options, grace))

    def _needs_loop(self) -> bool:
        has_program = any(isinstance(one, Middleware) for one in self._middleware)
        return has_program or any(one._needs_loop() for one in self._externals)


def _ends(front: Front) -> list[External]:
    """The servers at the ends of a chain."""
    return [
        end
        for one in front._externals
        for end in (_ends(one._within) if isinstance(one._within, Front) else [one])
    ]


def _fronts(external: External) -> Iterator[Front]:
    """The fronts between an external server and the servers at the ends."""
    if isinstance(external._within, Front):
        yield external._within
        for one in external._within._externals:
            yield from _fronts(one)


def _joined(external: External, servers: Mapping[int, _core.Serving], desk: Desk | None) -> _core.External:
    """The engine's external server."""
    within = external._within
    if isinstance(within, Front):
        return _core.External.chain(external.name, _assembled(within, servers, desk), external._settings)
    if isinstance(within, Server):
        return _core.External.server(external.name, servers[id(within)], external._settings)
    assert external._native is not None
    return external._native


def _assembled(front: Front, servers: Mapping[int, _core.Serving], desk: Desk | None) -> _core.Front:
    """The engine's front. `servers` are those of this program at the ends, running, by their `id`."""
    natives = [_joined(external, servers, desk) for external in front._externals]
    seats = [interests(one) if isinstance(one, Middleware) else one for one in front._middleware]
    at = _core.Desk() if desk is None else desk.native
    made = _core.Front(
        natives, seats, at, front._settings, front._audit, front._failed, front._max_hops, front._patience
    )
    if desk is not None:
        desk.sit(made.seats, [one for one in front._middleware if isinstance(one, Middleware)], front._failed)
    return made


@asynccontextmanager
async def assembled(front: Front) -> AsyncIterator[_core.Front]:
    """The engine's front, whose servers of this program and whose middleware run while the block runs."""
    from ._event_loop import event_loop

    loop = event_loop()
    async with AsyncExitStack() as stack:
        servers: dict[int, _core.Serving] = {}
        for end in _ends(front):
            if end._oauth:
                end._oauth.bind(loop)
            if isinstance(end._within, Server) and id(end._within) not in servers:
                servers[id(end._within)] = await stack.enter_async_context(_within(end._within))
        desk = Desk(loop)
        stack.callback(desk.close)
        yield _assembled(front, servers, desk)


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
async def _serving(
    front: Front, address: str, options: str, own: _core.Termination | None = None
) -> AsyncIterator[tuple[_core.ServedFront, Future[None]]]:
    """Serves a front; shuts it down gracefully at the end of the block, or on a signal noted in `own`."""
    from ._event_loop import at_last, event_loop
    from ._wake import watch

    loop = event_loop()
    ended: Future[None] = loop.create_future()
    async with assembled(front) as native:
        served = _core.ServedFront(native, address, options, own)

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
async def _address(front: Front, address: str, options: str) -> AsyncIterator[ServedAddress]:
    from ._loop import ServedAddress

    async with _serving(front, address, options) as (served, _):
        at = ServedAddress(served.address)
        at._counter = served.counter()
        yield at
