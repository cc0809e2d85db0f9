"""mcpbolt under the official SDK and FastMCP.

Needs the package `mcp`, which nothing else here imports.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._client import stdio_client as stdio_client

_HOMES = {
    "stdio_client": "_client",
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
