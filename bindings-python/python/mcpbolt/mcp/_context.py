"""How the SDK's kernel sends messages to the client: within a request, and outside of any."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT
from starlette.requests import Request

from .._errors import ConnectionClosed, McpError, PeerError
from . import _private as private
from ._arrived import Arrived

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions

    from .. import _core
    from ._kernel_state import KernelState

Params = Mapping[str, Any] | None


class Outbound:
    """Sends messages to the client outside of any request. The kernel's `Outbound`."""

    __slots__ = ("_wire", "_kernel")

    def __init__(self, wire: _core.KernelConnection, kernel: KernelState) -> None:
        self._wire = wire
        self._kernel = kernel

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """Sends a request to the client and waits for its result."""
        return await ask(self._wire, self._wire, method, params, opts)

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """Sends a notification to the client."""
        self._kernel.telling(method)
        self._wire.notify(method, params if params is None else dict(params))

    def notice(self) -> Heard:
        """Makes the context of a notification."""
        return Heard(self._wire, self._kernel)


class Heard(Outbound):
    """The context of a notification."""

    __slots__ = ("transport", "cancel_requested")

    request_id = None
    message_metadata = None

    def __init__(self, wire: _core.KernelConnection, kernel: KernelState) -> None:
        super().__init__(wire, kernel)
        self.transport = kernel.transport
        self.cancel_requested = anyio.Event()

    @property
    def can_send_request(self) -> bool:
        return self.transport.can_send_request

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Does nothing: a notification has no progress."""


class Within:
    """The context of a request: the kernel's `DispatchContext`."""

    __slots__ = (
        "kernel",
        "request",
        "request_id",
        "message_metadata",
        "variables",
        "is_given_up",
        "_transport",
        "_closed",
        "_cancel_requested",
    )

    def __init__(self, kernel: KernelState, request: _core.KernelRequest) -> None:
        self.kernel = kernel
        self.request = request
        self.request_id = request.id
        self.message_metadata: ServerMessageMetadata | None = None
        # The context in which an HTTP application has handed the request over.
        self.variables: Context | None = None
        found = kernel.requests and kernel.requests.of(request)
        if found:
            scope, self.variables = found
            self.message_metadata = ServerMessageMetadata(request_context=Request(scope))
        elif request.has_head:
            self.message_metadata = ServerMessageMetadata(request_context=Arrived(request))
        self._transport: TransportContext = kernel.transport
        self.is_given_up = False
        self._closed = False
        self._cancel_requested: anyio.Event | None = None

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the client cancels the request."""
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
            if self.is_given_up:
                self._cancel_requested.set()
        return self._cancel_requested

    def give_up(self) -> None:
        """Called when the client has cancelled the request."""
        self.is_given_up = True
        if self._cancel_requested is not None:
            self._cancel_requested.set()

    def close(self) -> None:
        """Called when the request is served; nothing more is sent on its behalf."""
        self._closed = True

    def outbound(self) -> Outbound:
        """The way to the client outside of this request."""
        return Outbound(self.request.wire, self.kernel)

    @property
    def transport(self) -> TransportContext:
        """The transport that the request came on, with its HTTP headers."""
        if self.message_metadata is not None and self._transport.headers is None:
            self._transport = replace(self._transport, headers=self.message_metadata.request_context.headers)
        return self._transport

    @property
    def can_send_request(self) -> bool:
        return self._transport.can_send_request and not self._closed

    async def send_raw_request(self, method: str, params: Params, opts: CallOptions | None = None) -> dict[str, Any]:
        """Sends a request to the client on this request's behalf and waits for its result."""
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await ask(self.request, self.request.wire, method, params, opts)

    async def notify(self, method: str, params: Params, opts: CallOptions | None = None) -> None:
        """Sends a notification to the client on this request's behalf."""
        if not self._closed:
            self.kernel.telling(method)
            self.request.notify(method, params if params is None else dict(params))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it."""
        if not self._closed:
            self.request.progress(progress, total, message)


class Alone(Within):
    """The context of a request of 2026-07-28, in which servers must not send requests."""

    __slots__ = ()

    def __init__(self, kernel: KernelState, request: _core.KernelRequest) -> None:
        super().__init__(kernel, request)
        self._transport = kernel.one_way


async def ask(
    asking: _core.KernelRequest | _core.KernelConnection, wire: _core.KernelConnection, method: str, params: Params, opts: CallOptions | None
) -> dict[str, Any]:
    """Sends a request to the client and waits for its result.

    Raises:
        MCPError: The client answered with an error or not in time, or the connection ended.
    """
    opts = opts or {}
    members = dict(params or {})
    meta = dict(members.get("_meta") or {})
    private.inject_trace_context(meta)
    if meta:
        members["_meta"] = meta
    else:
        members.pop("_meta", None)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[dict[str, Any]] = loop.create_future()
    report = opts.get("on_progress")

    def progressed(progress: float, total: float | None, message: str | None) -> None:
        assert report is not None
        loop.create_task(report(progress, total, message))

    try:
        number = asking.ask(method, members or None, future, progressed if report else None)
        try:
            with anyio.fail_after(opts.get("timeout")):
                return await future
        finally:
            if not future.done() or future.cancelled():
                wire.forget(number)
    except TimeoutError:
        raise MCPError(code=REQUEST_TIMEOUT, message=f"Request {method!r} timed out") from None
    except PeerError as error:
        raise MCPError(code=error.code or 0, message=error.message, data=error.data) from None
    except ConnectionClosed:
        raise MCPError(code=CONNECTION_CLOSED, message="Connection closed") from None
    except McpError as error:
        raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
