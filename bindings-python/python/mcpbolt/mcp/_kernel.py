"""Connects the official SDK's kernel, its request handling, to the engine's connections.

A connection of the handshake era is a `Dispatcher` that `serve_connection` drives. A request of 2026-07-28
is independent and has its own kernel, as `serve_one` would make it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, serve_connection
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED
from pydantic_core import from_json, to_json

from .. import _core
from .._carrier import Carrier, Carriers
from .._errors import HandBack
from . import _private as private
from ._context import Alone, Outbound, Within
from ._envelope import Enveloped
from ._handled import Handled, Result
from ._kernel_state import KernelState
from ._observed import is_traced
from ._outgoing import is_unexpected, refusal

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions
    from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest

    from ._natives import Natives

logger = logging.getLogger(__name__)
_TELEMETRY = private.telemetry()

Params = Mapping[str, Any] | None
_LISTEN = "subscriptions/listen"


class Kernel(KernelState):
    """The SDK's part of a server: the engine passes it all messages that it does not answer itself."""

    def __init__(
        self, server: Server[Any], options: InitializationOptions, transport: TransportContext, takes_pings: bool
    ) -> None:
        super().__init__(Untraced(server), transport)  # type: ignore[arg-type]
        self.options = options
        self.takes_pings = takes_pings
        self.natives: Natives | None = None
        # Done with the first exception of a handler that nobody expects, if such an exception ends the server.
        self.failed: asyncio.Future[None] | None = None
        self._carriers: Carriers | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def open(self, wire: _core.KernelConnection) -> Peer:
        """Starts a connection of the handshake era."""
        return Peer(self, wire)

    def request(self, request: _core.KernelRequest) -> Running:
        """Starts an independent request of 2026-07-28."""
        return self.start(Running(self, Alone(self, request), self._alone))

    def telling(self, method: str) -> None:
        if self.natives and method.endswith("/list_changed"):
            self.natives.doubt()

    def serving(self, meta: object) -> None:
        """Called before a request is passed to the kernel."""
        self.server.has_context = isinstance(meta, dict) and "traceparent" in meta  # type: ignore[attr-defined]

    async def _alone(self, context: Alone, method: str, params: Params) -> Result:
        if (result := await self.handled(context, method, params)) is not None:
            return result
        self.serving(params and params.get("_meta"))
        connection = Enveloped(context, params)
        runner = ServerRunner(self.server, connection, self.state)
        try:
            return await runner.on_request(context, method, params)
        finally:
            # Breaks a reference cycle, which includes the connection.
            del runner.on_request
            await connection.close()

    async def handled(
        self, context: Within, method: str, params: Params, connection: Connection | None = None
    ) -> Result | None:
        """Answers a request whose handler does not need the kernel around it; `None` if the kernel must answer."""
        handler = self.natives and self.natives.handler(context.request.revision, method, params)
        if not handler:
            return None
        handled = Handled(self, context, method, dict(params or {}), connection)
        try:
            return await handler(handled)
        except HandBack:
            return None
        finally:
            await handled.close()

    def begin(self, state: Any) -> None:
        """Called when the server starts, with the value that its lifespan yielded."""
        self.state = state
        # `anyio.CancelScope()` needs a running task; the backend's class, which it returns, does not.
        scope = type(anyio.CancelScope())
        self._carriers = Carriers(asyncio.get_running_loop(), scope)

    def start(self, running: Running) -> Running:
        running.carrier = self.keep(running.carry_out(), running.variables)
        return running

    def keep(self, work: Coroutine[Any, Any, None], variables: Context | None = None) -> Carrier | None:
        """Runs a coroutine in the background, until the server ends at the latest, perhaps in a context of its own.
        Returns its carrier, or `None` if it is over."""
        assert self._carriers is not None
        carrier = self._carriers.carry(self._go_on(work), variables)
        if carrier is not None:
            self.tasks.add(carrier.task)
        return carrier

    async def _go_on(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            # Cheaper than a done callback.
            self.tasks.discard(asyncio.current_task())

    def fail(self, error: Exception) -> None:
        """Called with each exception of a handler, after the client was told."""
        if self.failed is not None and not self.failed.done() and is_unexpected(error):
            self.failed.set_exception(error)

    async def close(self) -> None:
        """Cancels everything in the background, and waits for it to end."""
        if self._carriers is not None:
            self._carriers.close()
        tasks = [*self.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Untraced:
    """A server without OpenTelemetry spans while they would have no effect: no tracer is installed, and the
    request has no trace context. Spans are half the cost of a small request."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self.has_context = False
        # Used by each request; other attributes are found by `__getattr__`.
        self.get_request_handler = server.get_request_handler
        self.get_notification_handler = server.get_notification_handler
        self.cache_hints = server.cache_hints

    @property
    def middleware(self) -> list[Any]:
        """The middleware; the kernel reads it at the start of each request."""
        whole: list[Any] = self._server.middleware
        if self.has_context or is_traced():
            return whole
        return [one for one in whole if type(one) is not _TELEMETRY]

    @property
    def server_info_stamp(self) -> dict[str, Any]:
        """A copy of the server's info for one answer."""
        source: dict[str, Any] = private.info(self._server)
        if all(type(value) is str for value in source.values()):
            return source.copy()
        return self._server.server_info_stamp

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class Running:
    """A request that the kernel answers. The engine calls `cancel` when the client cancels it."""

    __slots__ = ("carrier", "_kernel", "_context", "_handle", "_is_ending")

    def __init__(self, kernel: Kernel, context: Within, handle: Callable[..., Awaitable[Result]]) -> None:
        # Set if the request has to wait for something.
        self.carrier: Carrier | None = None
        self._kernel = kernel
        self._context = context
        self._handle = handle
        self._is_ending = False

    @property
    def variables(self) -> Context | None:
        """The context that the request runs in, if it has one of its own."""
        return self._context.variables

    def cancel(self) -> None:
        """Cancels the request; no answer is sent."""
        self._context.give_up()
        if self.carrier is not None:
            self.carrier.scope.cancel()

    def draining(self) -> None:
        """Called when the connection starts to drain: ends a subscription, which would stay open for ever."""
        self._is_ending = self._context.request.method == _LISTEN
        if self._is_ending and self.carrier is not None:
            self.carrier.scope.cancel()

    async def carry_out(self) -> None:
        context = self._context
        request = context.request
        if context.is_given_up:
            return request.give_up()
        if self._is_ending:
            return request.refuse(CONNECTION_CLOSED, "Connection closed")
        natives = self._kernel.natives
        version = natives.version if natives else 0
        method, params = request.method, request.params()
        try:
            try:
                result = await self._handle(context, method, params)
            finally:
                context.close()
            _answer(request, result)
            if natives and not isinstance(result, bytes):
                natives.listed(version, method, params, request.revision, result)
        except asyncio.CancelledError:
            # The client cancelled it and gets no answer, or the server ends.
            if not context.is_given_up:
                request.refuse(CONNECTION_CLOSED, "Connection closed")
            raise
        except Exception as error:
            told = refusal(error, method, isinstance(context, Alone))
            request.refuse(told.code, told.message, told.data)
            self._kernel.fail(error)
        finally:
            request.give_up()


def _answer(request: _core.KernelRequest, result: Result) -> None:
    if isinstance(result, bytes):
        return request.answer_native(result)
    try:
        request.answer(result)
    except (TypeError, ValueError):
        # The SDK lets pydantic serialize values that JSON does not have.
        request.answer(from_json(to_json(result)))


class Peer:
    """A connection of the handshake era, as a `Dispatcher` of the SDK."""

    def __init__(self, kernel: Kernel, wire: _core.KernelConnection) -> None:
        self._kernel = kernel
        self._outbound = Outbound(wire, kernel)
        self.send_raw_request = self._outbound.send_raw_request
        self.notify = self._outbound.notify
        self._ended = asyncio.Event()
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        # Messages that wait until the kernel is ready, or the handshake is answered; `None` if none need to wait.
        self._waiting: list[Callable[[], object]] | None = []
        self._connection = Connection.for_loop(self, session_id=wire.session_id)
        kernel.keep(
            serve_connection(
                kernel.server,
                self,
                connection=self._connection,
                lifespan_state=kernel.state,
                init_options=kernel.options,
            )
        )

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Passes messages to the kernel until the connection has ended."""
        self._on_request, self._on_notify = on_request, on_notify
        task_status.started()
        self._go_on()
        await self._ended.wait()

    def _go_on(self) -> None:
        """Starts the waiting messages, in order; after an `initialize` the later ones wait again."""
        waiting, self._waiting = self._waiting or [], None
        for index, one in enumerate(waiting):
            one()
            if self._waiting is not None:
                self._waiting = [*self._waiting, *waiting[index + 1 :]]
                return

    def request(self, request: _core.KernelRequest) -> Running:
        running = Running(self._kernel, Within(self._kernel, request), self._handle)
        self._in_turn(lambda: self._start(running, request.method))
        return running

    def _start(self, running: Running, method: str) -> None:
        if method == "initialize":
            self._waiting = []
            running.carrier = self._kernel.keep(self._open(running), running.variables)
        else:
            self._kernel.start(running)

    async def _open(self, running: Running) -> None:
        try:
            await running.carry_out()
        finally:
            self._go_on()

    def _in_turn(self, begin: Callable[[], object]) -> None:
        if self._waiting is None:
            begin()
        else:
            self._waiting.append(begin)

    async def _handle(self, context: Within, method: str, params: Params) -> Result:
        result = await self._kernel.handled(context, method, params, self._connection)
        if result is not None:
            return result
        assert self._on_request is not None
        self._kernel.serving(params and params.get("_meta"))
        return await self._on_request(context, method, params)

    def notice(self, method: str, params: Params) -> None:
        """Passes a notification of the client to the kernel, in turn."""
        self._in_turn(lambda: self._kernel.keep(self._hear(method, params)))

    async def _hear(self, method: str, params: Params) -> None:
        assert self._on_notify is not None
        try:
            await self._on_notify(self._outbound.notice(), method, params)
        except Exception:
            logger.exception("notification handler for %r raised", method)

    def closed(self) -> None:
        """Called when the connection has ended."""
        self._ended.set()
