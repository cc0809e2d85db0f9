"""Requests that a handler answers without the kernel around it, and what the handler may ask of the kernel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import ServerRunner, _extract_meta
from mcp.shared.exceptions import MCPError
from mcp_types import ErrorData
from pydantic import ValidationError

from .._errors import HandBack
from ._envelope import Enveloped

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from ._context import Within
    from ._kernel import Kernel

Result = bytes | dict[str, Any]
"""JSON to which the engine adds what the revision asks for, or a result that is whole."""
Handler = Callable[["Handled"], Awaitable[Result]]


class Handled:
    """One such request. What the kernel would have made for it is made when the handler asks for it."""

    __slots__ = ("kernel", "within", "method", "params", "_connection", "_alone", "_runner", "_context")

    def __init__(
        self, kernel: Kernel, within: Within, method: str, params: dict[str, Any], connection: Connection | None
    ) -> None:
        self.kernel = kernel
        self.within = within
        self.method = method
        self.params = params
        self._connection = connection
        # That of this request alone.
        self._alone: Enveloped | None = None
        self._runner: ServerRunner[Any] | None = None
        self._context: ServerRequestContext[Any, Any] | None = None

    @property
    def revision(self) -> str:
        return self.within.request.revision

    @property
    def runner(self) -> ServerRunner[Any]:
        """The kernel of its connection."""
        if self._runner is None:
            connection = self._connection
            if connection is None:
                connection = self._alone = Enveloped(self.within, self.params)
            self._runner = ServerRunner(self.kernel.server, connection, self.kernel.state)
        return self._runner

    @property
    def context(self) -> ServerRequestContext[Any, Any]:
        """What the SDK hands to handlers."""
        if self._context is None:
            meta = _extract_meta(self.params)
            make = self.runner._make_context
            self._context = make(self.within, self.method, self.params, meta, self.revision)
        return self._context

    def whole(self, result: Any) -> dict[str, Any]:
        """A result of the SDK's as it goes on the wire; what a client is to bring back is sealed."""
        if isinstance(result, ErrorData):
            raise MCPError.from_error_data(result)
        made: Any = self.runner._serialize(self.method, self.revision, result)
        for one in self.kernel.server.middleware:
            if isinstance(one, RequestStateBoundary):
                made = one._seal_result(self.context, made, None)
        return cast("dict[str, Any]", made)

    async def close(self) -> None:
        """It is answered."""
        if self._alone is not None:
            await self._alone.close()


class LazyContext(Context[Any, Any]):
    """The context of a tool of `MCPServer`'s, for a request that is handled so."""

    def __init__(self, handled: Handled, server: MCPServer[Any]) -> None:
        super().__init__(mcp_server=server, subscriptions=server._subscriptions)
        self._handled = handled

    _handled: Any

    @property  # type: ignore[misc]
    def _request_context(self) -> Any:  # type: ignore[override]
        return self._handled.context

    @property
    def request_context(self) -> Any:
        return self._handled.context


async def by_handler(handled: Handled) -> dict[str, Any]:
    """As the server's own handler answers it.

    Raises:
        HandBack: The params are for the kernel to refuse.
    """
    entry = handled.kernel.server.get_request_handler(handled.method)
    if entry is None:
        raise HandBack
    try:
        params = entry.params_type.model_validate(handled.params, by_name=False)
    except ValidationError:
        raise HandBack from None
    return handled.whole(await entry.handler(handled.context, params))
