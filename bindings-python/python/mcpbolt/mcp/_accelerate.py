"""`accelerate`: lets the engine answer parts of a server itself. `report` says which parts, and why not the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from ._gate import unfit

_S = TypeVar("_S")
_accelerated: WeakSet[Any] = WeakSet()


class Report:
    """The parts of a server that the engine answers, and why it does not answer the rest.

    Attributes:
        native: The parts that the engine answers: `"tool add"`, `"resource memo://a"` and so on.
        direct: The parts whose handlers answer without the kernel around them, with the SDK's context if they take it.
        kept: The parts that the server's own kernel answers, each with the reason.
    """

    def __init__(self) -> None:
        self.native: list[str] = []
        self.direct: list[str] = []
        self.kept: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        yield from (f"{name}: native" for name in self.native)
        yield from (f"{name}: direct" for name in self.direct)
        yield from (f"{name}: kept, {reason}" for name, reason in self.kept.items())

    def __str__(self) -> str:
        return "\n".join(self)


def accelerate(server: _S) -> _S:
    """Lets the engine answer as much as it can of a server that is passed to `serve` or `run` later: tool calls,
    with the same validation and results, resource reads, prompts, and lists.

    All other requests are answered as before: `report` says which, and why. Later additions and removals are
    followed. Under an unknown release of its packages nothing is accelerated, and a warning says so. Returns
    the server.
    """
    if is_known(server):
        _accelerated.add(server)
    return server


def is_accelerated(server: object) -> bool:
    return server in _accelerated


def packages(server: object) -> list[str]:
    """The packages that a server is made with."""
    is_fastmcp = any(base.__module__.split(".")[0] == "fastmcp" for base in type(server).__mro__)
    return ["mcp", *(["fastmcp"] if is_fastmcp else [])]


def is_known(server: object) -> bool:
    """Whether the engine can answer for a server under the installed releases of its packages; warns once if not."""
    reasons = [reason for package in packages(server) if (reason := unfit(package))]
    if reasons and not _warned:
        _warned.append(True)
        warnings.warn(f"{reasons[0]}: the server runs as it would without mcpbolt", stacklevel=3)
    return not reasons


_warned: list[bool] = []


def report(server: object) -> Report:
    """Reports which parts of a server the engine would answer if it were served now."""
    if is_accelerated(server):
        return reported(server)
    made = Report()
    made.kept["server"] = "it is not accelerated"
    return made


def reported(server: object) -> Report:
    from ._natives import plan
    from ._plan import Direct

    made = Report()
    for title, how in plan(server).items():
        if isinstance(how, str):
            made.kept[title] = how
        else:
            (made.direct if isinstance(how, Direct) else made.native).append(title)
    return made
