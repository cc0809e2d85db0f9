"""Runs servers and clients written for the official SDK or FastMCP on the native engine.

    from mcp.server import MCPServer
    from mcpbolt.mcp import run

    server = MCPServer("calculator")
    ...
    run(server)

Requires the package `mcp`, which no other part of mcpbolt imports.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._accelerate import accelerate as accelerate, Report as Report, report as report
    from ._client import stdio_client as stdio_client
    from ._http_client import streamable_http_client as streamable_http_client
    from ._serve import listening as listening, run as run, serve as serve

_HOMES = {
    "stdio_client": "_client",
    "streamable_http_client": "_http_client",
    "serve": "_serve",
    "run": "_serve",
    "listening": "_serve",
    "accelerate": "_accelerate",
    "report": "_accelerate",
    "Report": "_accelerate",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
