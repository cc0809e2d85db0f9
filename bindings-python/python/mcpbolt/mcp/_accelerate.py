"""`accelerate`: lets the engine answer parts of a server itself. `report` says which parts, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from ._gate import is_tested

_S = TypeVar("_S")
_accelerated: WeakSet[Any] = WeakSet()


class Report:
    """The parts of a server that the engine answers, and why it does not answer the rest.

    Attributes:
        native: The parts that the engine answers: `"tool add"`, `"resource memo://a"` and so on.
        kept: The parts that the server's own kernel answers, each with the reason.
    """

    def __init__(self) -> None:
        self.native: list[str] = []
        self.kept: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        yield from (f"{name}: native" for name in self.native)
        yield from (f"{name}: kept, {reason}" for name, reason in self.kept.items())

    def __str__(self) -> str:
        return "\n".join(self)


def accelerate(server: _S) -> _S:
    """Lets the engine answer as much as it can of a server that is passed to `serve` or `run` later: tool calls,
    with the same validation and results, resource reads, prompts, and lists.

    All other requests are answered as before: `report` says which, and why. Later additions and removals are
    followed. With an untested version of the packages nothing is accelerated, and a warning says so. Returns
    the server.
    """
    if is_tested(server):
        _accelerated.add(server)
    return server


def is_accelerated(server: object) -> bool:
    return server in _accelerated


def report(server: object) -> Report:
    """Reports which parts of a server the engine would answer if it were served now."""
    made = Report()
    if not is_accelerated(server):
        made.kept["server"] = "it is not accelerated"
        return made
    from ._natives import plan

    for title, how in plan(server).items():
        if isinstance(how, str):
            made.kept[title] = how
        else:
            made.native.append(title)
    return made
