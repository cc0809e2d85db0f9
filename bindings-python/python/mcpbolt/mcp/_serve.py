"""Serves a server of the official SDK or FastMCP on the engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from .. import _core, _loop
from .._errors import Unsupported
from .._event_loop import asyncio_loop, shielded
from .._serve_options import ServeOptions
from .._settings import Settings
from ._accelerate import is_accelerated
from ._gate import is_tested


class Served:
    """A server of the SDK or FastMCP with the interface of `mcpbolt.Server` that `mcpbolt._loop` needs."""

    def __init__(self, server: Any, address: str) -> None:
        from mcp.shared.transport_context import TransportContext

        from ._kernel import Kernel
        from ._server import Known

        self._known = known = Known(server)
        self._kind = "stdio" if address == "stdio:" else "streamable-http"
        if self._kind != "stdio":
            known.check_network()
        self.name = known.lowlevel.name
        transport = TransportContext(kind=self._kind, can_send_request=True)
        self._kernel = Kernel(known.lowlevel, known.options(self._kind), transport, known.takes_pings)
        lowlevel = known.lowlevel
        settings = Settings(
            name=self.name,
            version=lowlevel.version,
            implementation=lowlevel.server_info_stamp,
            kernel=self._kernel,
        )
        self._made = _core.Catalog(settings, [])

    def _catalog(self) -> _core.Catalog:
        return self._made

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[Any]:
        asyncio_loop("a server of the official SDK or FastMCP")
        async with self._known.lifespan(self._kind) as state:
            self._kernel.begin(state)
            if is_accelerated(self._known.server):
                from ._natives import Natives

                self._kernel.natives = Natives(self._known, self._made)
            try:
                yield state
            finally:
                await self._kernel.close()


async def serve(
    server: Any, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None
) -> None:
    """Serves a server of the official SDK or FastMCP in the running event loop, which must be asyncio's: on stdin
    and stdout until the client closes them, elsewhere until the task is cancelled.

    Args:
        server: An `mcp.server.Server`, `MCPServer` or `fastmcp.FastMCP`.
        address: As for `mcpbolt.Server.run`.
        grace: Seconds that requests in flight have to finish.
        options: Who may connect over the network, and the limits.
    """
    if not is_tested(server):
        return await unchanged(server, address)
    served = Served(server, address)
    if address == "stdio:":
        return await _loop.serve(served, grace, own=False)
    async with _loop.listening(served, address, grace, options) as (_, ended):
        await shielded(ended)


def listening(
    server: Any, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
) -> AbstractAsyncContextManager[str]:
    """Serves in the running event loop while the block runs. Yields the address, with the real port if
    0 was given."""
    return _loop.address_of(Served(server, address), address, grace, options)


def run(server: Any, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None) -> None:
    """Serves like `serve`, until the process gets a signal or the client closes stdin. Blocks, with its own event loop.
    On stdin and stdout it may end the process, as `Server.run` may."""
    if not is_tested(server):
        return asyncio.run(unchanged(server, address))
    served = Served(server, address)
    if address != "stdio:":

        def ready(at: str) -> None:
            print(f"{served.name} listens on {at}", file=sys.stderr, flush=True)

        return asyncio.run(_loop.serve_listening(served, address, grace, options, ready))
    from .._running import interrupts_left_to_the_engine

    with interrupts_left_to_the_engine():
        asyncio.run(_loop.serve(served, grace, own=True))


async def unchanged(server: Any, address: str) -> None:
    """Serves a server with its own package, without the engine.

    Raises:
        Unsupported: Its own package cannot serve at this address.
    """
    if address == "stdio:":
        if hasattr(server, "run_stdio_async"):
            await server.run_stdio_async()
            return
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return
    from urllib.parse import urlsplit

    url = urlsplit(address)
    if url.scheme != "http":
        raise Unsupported(f"{address} needs a tested version")
    import uvicorn

    app = server.http_app if hasattr(server, "http_app") else server.streamable_http_app
    config = uvicorn.Config(app(), host=url.hostname or "127.0.0.1", port=url.port or 80, log_level="warning")
    await uvicorn.Server(config).serve()
