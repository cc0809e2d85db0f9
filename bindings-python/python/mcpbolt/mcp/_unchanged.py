"""Serves a server with its own package, under a release that this package does not accelerate."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from .._errors import Unsupported
from .._serve_options import ServeOptions

# What uvicorn can do, too.
_KEPT = frozenset({"anonymous", "tls"})


async def serve(server: Any, address: str, grace: float, options: ServeOptions | None) -> None:
    """Serves until the client closes stdin, or the task is cancelled.

    Raises:
        Unsupported: The package has no such address or option.
    """
    if address != "stdio:":
        made, _ = http(server, address, grace, options)
        await made.serve()
        return
    if hasattr(server, "run_stdio_async"):
        await server.run_stdio_async()
        return
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


@asynccontextmanager
async def listening(server: Any, address: str, grace: float, options: ServeOptions | None) -> AsyncIterator[str]:
    """Serves over HTTP while the block runs; yields the address.

    Raises:
        Unsupported: The package has no such address or option.
    """
    made, path = http(server, address, grace, options)
    socket = made.config.bind_socket()
    host, port = socket.getsockname()[:2]
    scheme = "https" if made.config.is_ssl else "http"
    serving = asyncio.ensure_future(made.serve(sockets=[socket]))
    try:
        while not made.started:
            if serving.done():
                await serving
                raise OSError(f"{address}: the server has ended before it listened")
            await asyncio.sleep(0.01)
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}"
    finally:
        made.should_exit = True
        await serving


def http(server: Any, address: str, grace: float, options: ServeOptions | None) -> tuple[Any, str]:
    """The server's own HTTP application, ready to be served by uvicorn, and its path."""
    import uvicorn

    url = urlsplit(address)
    given = {name for name, value in (options or ServeOptions())._fields().items() if value is not None}
    tls = options.tls if options else None
    if url.scheme != ("https" if tls else "http"):
        raise Unsupported(f"{address}: under this release of its package the server has HTTP addresses only")
    if given - _KEPT:
        names = ", ".join(sorted(given - _KEPT))
        raise Unsupported(f"options {names}: under this release of its package the server has none of them; leave them out")
    host, port = url.hostname or "127.0.0.1", url.port if url.port is not None else 80
    if not (options and options.anonymous) and not is_local(host):
        raise PermissionError(
            f"{address} can be reached by other machines, and the engine's checks of credentials are not there; "
            "pass `anonymous=True` to serve everybody"
        )
    path = url.path or "/mcp"
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        application(server, path),
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=max(1, round(grace)),
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return uvicorn.Server(config), path


def application(server: Any, path: str) -> Any:
    """The server's own application, with its endpoint at that path."""
    if hasattr(server, "http_app"):
        return server.http_app(path=path)
    settings = getattr(server, "settings", None)
    if settings is not None and hasattr(settings, "streamable_http_path"):
        settings.streamable_http_path = path
        return server.streamable_http_app()
    if hasattr(server, "streamable_http_app"):
        return server.streamable_http_app(streamable_http_path=path)
    raise Unsupported(f"under this release of its package a {type(server).__name__} has no HTTP application")


def is_local(host: str) -> bool:
    """Whether only programs of this machine reach the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
