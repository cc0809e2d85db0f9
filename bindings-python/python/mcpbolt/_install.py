"""`install`: has the engine serve wherever a program would serve with the official SDK or FastMCP.

An import hook waits for the few modules of the SDK in which a server meets its transport, and replaces the transport
when they are imported. Nothing is imported here on its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from types import ModuleType

from ._heap import uncollected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

# The modules in which a server meets its transport. `mcpbolt.mcp._seams` has the function for each.
SEAMS = {
    "mcp.server.stdio": "stdio",
    "mcp.server.lowlevel.server": "lowlevel",
    "mcp.server.streamable_http_manager": "http",
}
# The modules whose import fills the heap. It stays until the program ends, so nothing there is worth collecting.
LARGE = frozenset({"mcp", "fastmcp", "fastmcp.server.server"})
_OFF = frozenset({"off", "0", "no", "false"})


def is_off() -> bool:
    """Whether the environment switches the engine off."""
    return os.environ.get("MCPBOLT", "").strip().lower() in _OFF


def install() -> None:
    """Has the engine serve stdin and stdout and HTTP wherever this program would serve them with the official SDK
    (`mcp`) or FastMCP, with everything that `mcpbolt.mcp.accelerate` takes over.

    Call it before the program imports either package: `import mcpbolt; mcpbolt.install()`. It does nothing the second
    time, and with `MCPBOLT=off` in the environment. `MCPBOLT_REPORT=1` prints what runs where, and why, to stderr.
    Under an unknown release of a package the program runs as it would without mcpbolt, and one line on stderr says so.
    """
    hook(exempts=False)


def hook(*, exempts: bool) -> None:
    """Does what `install` does. With `exempts`, what the import of a large module leaves is exempt from garbage collection:
    for when the program has made nothing yet."""
    if is_off() or any(isinstance(one, Hook) for one in sys.meta_path):
        return
    for name in SEAMS:
        if (module := sys.modules.get(name)) is not None:
            joined(module)
    sys.meta_path.insert(0, Hook(exempts))


def joined(module: ModuleType) -> None:
    """Replaces the transport in a module that is imported."""
    from .mcp import _seams

    _seams.join(SEAMS[module.__name__], module)


class Hook:
    """Finds the modules of `SEAMS` and `LARGE` as the other finders do, to have them loaded by `Joining`."""

    def __init__(self, exempts: bool) -> None:
        self._exempts = exempts

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name not in SEAMS and name not in LARGE:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = Joining(spec.loader, self._exempts)  # type: ignore[assignment]
                return spec
        return None


class Joining:
    """The loader of such a module. A large one is loaded while the garbage collector waits; in one of `SEAMS` the transport is
    replaced then."""

    def __init__(self, loader: Any, exempts: bool) -> None:
        self._loader = loader
        self._exempts = exempts

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        # The attributes of the module are the same as without this package.
        module.__spec__.loader = module.__loader__ = self._loader
        with uncollected(kept=self._exempts) if module.__name__ in LARGE else nullcontext():
            self._loader.exec_module(module)
        if module.__name__ in SEAMS:
            joined(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
