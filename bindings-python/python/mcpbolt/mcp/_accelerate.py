"""Which parts of a server the engine answers itself, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from ._gate import is_tested

_S = TypeVar("_S")
_accelerated: WeakSet[Any] = WeakSet()


class Report:
    """What of a server is answered by the engine, and why not the rest.

    Attributes:
        native: What the engine answers: `"tool add"`, `"resource memo://a"` and so on.
        kept: What goes through the server's own kernel, each with the reason.
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
    """Has the engine answer what it can of a server that `serve` or `run` is given later: calls of tools with
    their own validation and results, reads of resources, prompts, and the lists.

    What cannot be taken over is answered as before, request by request: `report` says what, and why. What is
    registered or removed later counts, too. On a version that is not tested here nothing is taken over, and a
    warning says so. Gives the server back.
    """
    if is_tested(server):
        _accelerated.add(server)
    return server


def is_accelerated(server: object) -> bool:
    return server in _accelerated


def report(server: object) -> Report:
    """What of a server the engine would answer if it were served now."""
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
