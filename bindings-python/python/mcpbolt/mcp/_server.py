"""`Known`: access to the parts of a server of the official SDK or FastMCP that this package uses."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.models import InitializationOptions

from .._errors import Unsupported
from . import _private as private


class Known:
    """A server of the SDK or FastMCP, and the SDK's low-level server within it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        if isinstance(server, Server):
            self.lowlevel: Server[Any] = server
        elif isinstance(server, MCPServer):
            self.lowlevel = private.lowlevel_of(server)
        elif is_fastmcp(server):
            self.lowlevel = private.fastmcp_lowlevel_of(server)
        else:
            raise TypeError(f"expected a Server, MCPServer or FastMCP, not {type(server).__name__}")

    def check_network(self) -> None:
        """Refuses a server with authorization or routes of its own, which the engine's HTTP server would leave out.

        Raises:
            Unsupported: The server has them.
        """
        server = self.server
        settings = getattr(server, "settings", None)
        if getattr(settings, "auth", None) is not None or getattr(server, "auth", None) is not None:
            raise Unsupported("the server has authorization of its own: serve its own application")
        routes = private.routes(server)
        if routes:
            raise Unsupported("the server has routes of its own: serve its own application")

    def options(self, kind: str) -> InitializationOptions:
        """The options of the handshake."""
        if is_fastmcp(self.server):
            from ._fastmcp import options

            return options(self.server, kind)
        return self.lowlevel.create_initialization_options()

    @asynccontextmanager
    async def lifespan(self, kind: str) -> AsyncIterator[Any]:
        """Enters the server's lifespan; yields its value."""
        if is_fastmcp(self.server):
            from ._fastmcp import running

            async with running(self.server, kind), self.lowlevel.lifespan(self.lowlevel) as state:
                yield state
        else:
            async with self.lowlevel.lifespan(self.lowlevel) as state:
                yield state


def is_fastmcp(server: object) -> bool:
    """Whether a server is a `FastMCP`. Imports nothing: for such a server the package is imported already."""
    module = sys.modules.get("fastmcp.server.server")
    return module is not None and isinstance(server, module.FastMCP)
