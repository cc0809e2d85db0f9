"""Serves a server of the official SDK or FastMCP on the engine."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

from .. import _loop
from .._errors import Unsupported
from .._event_loop import shielded
from .._serve_options import ServeOptions
from ._accelerate import is_accelerated, is_known

STDIO = "stdio:"


def made(server: Any, address: str) -> Any:
    """The server as the engine runs it."""
    from ._served import Served
    from ._server import Known

    known = Known(server)
    if address != STDIO:
        known.check_network()
    kind = "stdio" if address == STDIO else "streamable-http"
    return Served(known, kind, is_accelerated=is_accelerated(server))


async def serve(
    server: Any, address: str = STDIO, *, grace: float = 5.0, options: ServeOptions | None = None
) -> None:
    """Serves a server of the official SDK or FastMCP in the running event loop, which must be asyncio's: on stdin
    and stdout until the client closes them, elsewhere until the task is cancelled.

    Args:
        server: An `mcp.server.Server`, `MCPServer` or `fastmcp.FastMCP`.
        address: As for `mcpbolt.Server.run`.
        grace: Seconds that requests in flight have to finish.
        options: Who may connect over the network, and the limits.

    Raises:
        Unsupported: The release of its package is not known, and the package itself has no such address or option.
    """
    if not is_known(server):
        from . import _unchanged

        return await _unchanged.serve(server, address, grace, options)
    served = made(server, address)
    if address == STDIO:
        return await _loop.serve(served, grace, own=False)
    async with _loop.listening(served, address, grace, options) as (_, ended):
        await shielded(ended)


def listening(
    server: Any, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
) -> AbstractAsyncContextManager[str]:
    """Serves in the running event loop while the block runs. Yields the address, with the real port if
    0 was given.

    Raises:
        Unsupported: As for `serve`.
    """
    if not is_known(server):
        from . import _unchanged

        return _unchanged.listening(server, address, grace, options)
    return _loop.address_of(made(server, address), address, grace, options)


def run(
    server: Any,
    address: str = STDIO,
    *,
    grace: float = 5.0,
    options: ServeOptions | None = None,
    workers: int | None = None,
    health: str | None = None,
) -> None:
    """Serves like `serve`, until the process gets a signal or the client closes stdin. Blocks, with its own event loop.
    On stdin and stdout it may end the process, as `Server.run` may. With `workers`, that many processes serve, and `health` says
    how far they are, as with `Server.run`.

    Raises:
        Unsupported: As for `serve`; and if `workers` is given for a server whose requests its own package handles.
    """
    if not is_known(server):
        if workers is not None or health is not None:
            raise Unsupported("workers= is for servers that the engine serves, and this one is served by its own package")
        from . import _unchanged

        return asyncio.run(_unchanged.serve(server, address, grace, options))
    served = made(server, address)
    worker = False
    if workers is not None or health is not None:
        from .._workers import is_worker, supervised

        worker = is_worker(workers)
        if not worker:
            return supervised(served.name, address, workers, grace, health)
    if address != STDIO:

        def ready(at: str) -> None:
            if not worker:
                print(f"{served.name} listens on {at}", file=sys.stderr, flush=True)

        return asyncio.run(_loop.serve_listening(served, address, grace, options, ready, worker))
    from .._running import interrupts_left_to_the_engine

    with interrupts_left_to_the_engine():
        asyncio.run(_loop.serve(served, grace, own=True))
