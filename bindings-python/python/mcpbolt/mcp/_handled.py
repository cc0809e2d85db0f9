"""Requests that a handler answers without the kernel around it, and the kernel's services for such a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import ServerRunner
from mcp.shared.exceptions import MCPError
from mcp_types import ErrorData
from pydantic import ValidationError

from .._errors import HandBack
from . import _private as private
from ._envelope import Enveloped

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from ._context import Within
    from ._kernel_state import KernelState

Result = bytes | dict[str, Any]
"""JSON to which the engine adds the members that the revision requires, or a complete result."""
Handler = Callable[["Handled"], Awaitable[Result]]


class Handled:
    """A request that is answered without the kernel. The kernel's objects for it are made on first access."""

    __slots__ = ("kernel", "within", "method", "params", "_connection", "_alone", "_runner", "_context")

    def __init__(
        self, kernel: KernelState, within: Within, method: str, params: dict[str, Any], connection: Connection | None
    ) -> None:
        self.kernel = kernel
        self.within = within
        self.method = method
        self.params = params
        self._connection = connection
        # The connection object of an independent request.
        self._alone: Enveloped | None = None
        self._runner: ServerRunner[Any] | None = None
        self._context: ServerRequestContext[Any, Any] | None = None

    @property
    def revision(self) -> str:
        return self.within.request.revision

    @property
    def runner(self) -> ServerRunner[Any]:
        """The kernel of the request's connection."""
        if self._runner is None:
            connection = self._connection
            if connection is None:
                connection = self._alone = Enveloped(self.within, self.params)
            self._runner = ServerRunner(self.kernel.server, connection, self.kernel.state)
        return self._runner

    @property
    def context(self) -> ServerRequestContext[Any, Any]:
        """The context that the SDK passes to handlers."""
        if self._context is None:
            meta = private.meta_of(self.params)
            self._context = private.context_of(self.runner, self.within, self.method, self.params, meta, self.revision)
        return self._context

    def whole(self, result: Any) -> dict[str, Any]:
        """Serializes a result of the SDK for the wire; state that the client must bring back is signed."""
        if isinstance(result, ErrorData):
            raise MCPError.from_error_data(result)
        made: Any = private.serialized(self.runner, self.method, self.revision, result)
        for one in self.kernel.server.middleware:
            if isinstance(one, RequestStateBoundary):
                made = private.sealed(one, self.context, made)
        return cast("dict[str, Any]", made)

    async def close(self) -> None:
        """Closes the connection object after the request is answered."""
        if self._alone is not None:
            await self._alone.close()


class LazyContext(Context[Any, Any]):
    """The context of a tool of an `MCPServer`, for a request that is answered without the kernel."""

    def __init__(self, handled: Handled, server: MCPServer[Any]) -> None:
        super().__init__(mcp_server=server, subscriptions=private.subscriptions(server))
        self._handled = handled

    _handled: Any

    @property  # type: ignore[misc]
    def _request_context(self) -> Any:  # type: ignore[override]
        return self._handled.context

    @property
    def request_context(self) -> Any:
        return self._handled.context


async def by_handler(handled: Handled) -> dict[str, Any]:
    """Answers a request by the server's own handler.

    Raises:
        HandBack: The params are invalid, and the kernel must make the error.
    """
    entry = handled.kernel.server.get_request_handler(handled.method)
    if entry is None:
        raise HandBack
    try:
        params = entry.params_type.model_validate(handled.params, by_name=False)
    except ValidationError:
        raise HandBack from None
    return handled.whole(await entry.handler(handled.context, params))
