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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal

from . import _core
from ._approver import ApprovalCall
from ._auth import ApiKey, Basic, Bearer, ConnectOptions, connect_options
from ._core import Prefix, to_json
from ._failures import Failures
from ._oauth import OAuth
from ._options import options as set_options
from ._passing import Direction, Middleware, Next
from ._rules import (
    Approval,
    Breaker,
    CallReports,
    Masking,
    PinDrift,
    Pins,
    Retry,
    Rule,
    UpstreamCall,
    tool_pin,
)
from ._serve_options import ServeOptions, serve_options
from ._server import Server
from ._settings import Policy, Settings

if TYPE_CHECKING:
    from ._asgi import AsgiApp
    from ._loop import ServedAddress

__all__ = [
    "Approval",
    "ApprovalCall",
    "Breaker",
    "CallReports",
    "Direction",
    "External",
    "Front",
    "Isolation",
    "Masking",
    "Middleware",
    "Next",
    "PinDrift",
    "Pins",
    "Prefix",
    "Retry",
    "Rule",
    "UpstreamCall",
    "tool_pin",
]

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
        rules: Middleware of the engine for this server alone, between that of the front and the server. Requests meet
            the rules in their order. They know the server's own names.
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
        rules: Sequence[Rule] = (),
    ) -> None:
        self._options = set_options(
            opening=opening,
            revision=revision,
            prefix=prefix,
            isolation=isolation,
            max_connections=max_connections,
            timeout=timeout,
            max_timeout=max_timeout,
        )
        self._rules = list(rules)
        self._within = server if isinstance(server, (Server, Front)) else None
        self._is_own = False
        self._oauth = auth if isinstance(auth, OAuth) else None
        self._make: Callable[[str], _core.External] | None = None
        if isinstance(server, str):
            server = _core.command_of(server) or server
        if isinstance(server, str):
            connect = to_json(connect_options(headers, auth, connect_timeout, root_certificates, certificate, options))
            at, login = server, self._oauth.native if self._oauth else None
            self._make = lambda settings: _core.External.at(name, at, connect, login, settings)
        elif not isinstance(server, (Server, Front)):
            command = [fspath(word) for word in server]
            directory = None if cwd is None else fspath(cwd)
            more, inherited = list((env or {}).items()), list(inherit_env)
            self._make = lambda settings: _core.External.command(name, command, directory, more, inherited, settings)
        if self._within is not None:
            self.name = name or self._within.name
        self._prepare()

    def _prepare(self) -> None:
        """Makes the engine's part anew, from the options."""
        prefix = self._options.get("prefix")
        if prefix is not None:
            Prefix(prefix)
        self._settings = to_json(self._options)
        self._native = self._make and self._make(self._settings)
        if self._native is not None:
            self.name = self._native.name

    @property
    def _prefix(self) -> str | None:
        prefix: str | None = self._options.get("prefix")
        return prefix

    def _at(self, prefix: str) -> External:
        """The same with that prefix."""
        made = copy(self)
        made._options = self._options | {"prefix": prefix}
        made._prepare()
        return made

    def _mount(self, server: object, prefix: str) -> None:
        from ._mounted import mount

        mount(server, prefix, self)

    @classmethod
    def _own(cls, server: Server) -> External:
        """A server of the program without the external servers that are mounted in it, for the front before them."""
        made = cls(server)
        made._is_own = True
        return made

    @property
    def _end(self) -> Server | Front | None:
        """The server of this program, or the front before it and others."""
        within = self._within
        if isinstance(within, Server) and within._front is not None and not self._is_own:
            front: Front = within._front
            return front
        return within

    def _needs_loop(self) -> bool:
        end = self._end
        has_program = isinstance(end, Server) or (isinstance(end, Front) and end._needs_loop())
        return has_program or self._oauth is not None or any(rule._needs_loop for rule in self._rules)


class Front:
    """A server towards its clients that passes their requests on to an `External`, or to several that are joined, through
    middleware.

        Front(External(server)).join(External("https://example.com/mcp", prefix="far")).run()

    Args:
        middleware: `Middleware`, from the clients to the server; and the engine's own: `Prefix`, and rules such as `Masking`.
        policy: What clients may do, and how they are verified.
        max_hops: How many fronts a request may pass before it is refused as one that goes in a circle.
        patience: Seconds that each of several servers has to add its part to a list, to what the front offers and to a stream
            of changes; 5 by default.
        hook_timeout: Seconds that a hook of middleware may take, without the time that it waits for the answer of `next`; 60 by
            default, `None` for no limit. Then its task is cancelled, and the sender of the request gets an error that names the
            middleware; a notification is dropped. A hook that blocks the event loop is not ended by it.
        mask_error_details: Whether the texts of unexpected exceptions of middleware are kept from clients.
        telemetry: Makes spans and metrics of all requests and sessions, of clients and to servers, with the program's OpenTelemetry, as
            for a `Server`. Each request then waits until Python has begun its spans, so that the server is told of the right one.

    Raises:
        ModuleNotFoundError: `telemetry` is set, and OpenTelemetry's API is not installed.
    """

    def __init__(
        self,
        external: External,
        *,
        middleware: Sequence[Middleware | Prefix | Rule] = (),
        policy: Policy | None = None,
        max_hops: int = 16,
        patience: float | None = None,
        hook_timeout: float | None = 60.0,
        mask_error_details: bool = True,
        telemetry: bool = False,
    ) -> None:
        if hook_timeout is not None and not 0 < hook_timeout < float("inf"):
            raise ValueError(f"hook_timeout: a positive number of seconds, or None, not {hook_timeout}")
        self._externals = [external]
        self._patience = set_options(patience=patience).get("patience")
        self._middleware = list(middleware)
        self._max_hops = max_hops
        self._hook_timeout = hook_timeout
        self._failed = Failures(external.name, mask_error_details)
        settings = Settings(policy=policy, name=external.name, version=_core.__version__, telemetry=telemetry)
        self._settings, self._telemetry = settings.json, settings.telemetry
        self._audit = None if policy is None else policy.audit
        # The server whose policy the front has, and in whose name it speaks: one without tools, on whose threads a verifier of
        # the program runs; or the one that external servers are mounted in.
        self._server = None if policy is None or policy.verifier is None else _nameless(policy)

    @classmethod
    def _of(cls, server: Server) -> Front:
        """A front before a server of the program, in its name and with its policy."""
        made = cls(External._own(server))
        made._server, made._failed = server, server._settings.failed
        made._telemetry = server._settings.telemetry
        return made

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
        from ._assembled import fronts

        if any(front is self for front in fronts(external)):
            raise ValueError(f"the server {external.name!r} leads to this front itself; join the servers behind it")
        joined = [*self._externals, external]
        _core.check_joined([(one.name, one._prefix) for one in joined])
        self._externals = joined
        return self

    def run(
        self,
        address: str = "stdio:",
        *,
        grace: float = 5.0,
        options: ServeOptions | None = None,
        workers: int | None = None,
        health: str | None = None,
    ) -> None:
        """Serves as `Server.run` does, also with several processes. Blocks. An event loop is started only if there is middleware of the program, or a
        `Server` at the end."""
        worker = False
        if workers is not None or health is not None:
            from ._workers import is_worker, supervised

            worker = is_worker(workers)
            if not worker:
                return supervised(self.name, address, workers, grace, health)
        self._serves(address, serve_options(options, grace), "is reached at", worker)

    def _serves(self, address: str, options: str, said: str, worker: bool = False) -> None:
        from ._assembled import assembled_alone
        from ._running import ended_by_signals, stray_output

        def ready(at: str) -> None:
            if address != "stdio:" and not worker:
                print(f"{self.name} {said} {at}", file=sys.stderr, flush=True)

        with ended_by_signals() as own, stray_output():
            if self._needs_loop():
                import asyncio

                return asyncio.run(self._run(address, options, own, ready, worker))
            served = _core.ServedFront(assembled_alone(self), address, options, own, worker)
            try:
                ready(served.address)
                served.wait()
            finally:
                served.close()

    async def _run(
        self,
        address: str,
        options: str,
        own: _core.Termination | None,
        ready: Callable[[str], object],
        worker: bool,
    ) -> None:
        from ._assembled import serving
        from ._event_loop import shielded

        async with serving(self, address, options, own, worker) as (served, ended):
            ready(served.address)
            await shielded(ended)

    async def serve(
        self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> None:
        """Serves in the running event loop, as `Server.serve` does."""
        from ._assembled import serving
        from ._event_loop import shielded
        from ._running import stray_output

        if address == "stdio:":
            with stray_output():
                async with serving(self, address, serve_options(options, grace)) as (_, ended):
                    return await shielded(ended)
        async with serving(self, address, serve_options(options, grace)) as (_, ended):
            await shielded(ended)

    def listening(
        self, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> AbstractAsyncContextManager[ServedAddress]:
        """Serves in the running event loop while the block runs. Yields the address, as `Server.listening` does."""
        from ._assembled import address_of

        return address_of(self, address, serve_options(options, grace))

    def asgi(self, path: str = "/mcp", *, grace: float = 5.0, options: ServeOptions | None = None) -> AsgiApp:
        """Makes an ASGI application of the front, as `Server.asgi` does of a server. Requests and answers pass through
        Python, on the event loop."""
        from ._asgi import AsgiApp
        from ._assembled import endpoint

        return AsgiApp(self, path, grace, options, endpoint)

    def _needs_loop(self) -> bool:
        has_program = self._server is not None or any(
            isinstance(one, Middleware) or isinstance(one, Rule) and one._needs_loop for one in self._middleware
        )
        return has_program or any(one._needs_loop() for one in self._externals)

    @property
    def _lifespan(self) -> object:
        """The lifespan of a server at an end; `None` if no server there has one."""
        from ._assembled import ends

        servers = (end._within for end in ends(self))
        return next((one._lifespan for one in servers if isinstance(one, Server) and one._lifespan), None)


def _nameless(policy: Policy) -> Server:
    """A server that offers nothing, with that policy, which introduces itself as fronts do."""
    return Server("mcpbolt", _core.__version__, policy=policy)
