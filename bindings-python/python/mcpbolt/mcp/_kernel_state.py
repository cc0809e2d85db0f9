"""The state of the SDK's part of a server that the contexts of requests use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.shared.transport_context import TransportContext

    from ._http_requests import Requests


class KernelState:
    """The SDK's server, the transport, and the value that the server's lifespan yielded."""

    def __init__(self, server: Server[Any], transport: TransportContext) -> None:
        self.server = server
        self.transport = transport
        self.one_way = replace(transport, can_send_request=False)
        self.state: Any = None
        # The requests of the HTTP application that hands them to the engine, if there is one.
        self.requests: Requests | None = None

    def telling(self, method: str) -> None:
        """Called before a client is sent a notification of that method."""
