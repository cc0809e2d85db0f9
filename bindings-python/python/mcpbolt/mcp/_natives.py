"""What the engine answers of a server's, kept true while the server changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json

from .. import _core
from . import _mcpserver
from ._server import Known, is_fastmcp, is_traced


class Native(NamedTuple):
    """A function that takes arguments, a JSON object, and the revision, and gives a result, one too."""

    function: Callable[..., Any]
    lane: str


class Planned(NamedTuple):
    """Something of a server's: how the engine answers it, or why it does not."""

    title: str
    method: str
    name: str
    how: Native | str


_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})


def plan(server: Any) -> list[Planned]:
    """All that is registered."""
    known = Known(server)
    parts = _parts(known)
    if parts is None:
        return [Planned("handlers", "", "", "the server has functions for whole methods, and nothing is known of them")]
    reason = _obstacle(known)
    return [one if reason is None else one._replace(how=reason) for one in parts.plan(server)]


def _parts(known: Known) -> Any:
    if is_fastmcp(known.server):
        from . import _fastmcp

        return _fastmcp
    return None if known.server is known.lowlevel else _mcpserver


def _obstacle(known: Known) -> str | None:
    """Why nothing of a server is taken over."""
    if known.middleware:
        return f"middleware sees each request: {type(known.middleware[0]).__name__}"
    if is_traced():
        return "OpenTelemetry traces each request"
    return None


class Natives:
    """What is taken over of one server that is served."""

    def __init__(self, known: Known, catalog: _core.Catalog) -> None:
        self._known = known
        self._catalog = catalog
        self._parts = _parts(known)
        self._offered: set[tuple[str, str]] = set()
        self._shown: set[tuple[str, str]] = set()
        # Counts the changes: what was listed before one is not shown after it.
        self.version = 0
        if self._parts is not None:
            self._parts.watch(known.server, self.changed)
            self.changed()

    def doubt(self) -> None:
        """A client is told that a list is another now: with FastMCP, that may hold for its session alone, which
        from now on is for the kernel to know."""
        if is_fastmcp(self._known.server) and self._parts is not None:
            self._parts = None
            self.changed()

    def changed(self) -> None:
        """Something was added or removed."""
        self.version += 1
        for method, revision in self._shown:
            self._catalog.show(method, revision, None)
        self._shown.clear()
        planned = plan(self._known.server) if self._parts is not None else []
        now = {(one.method, one.name): one.how for one in planned if isinstance(one.how, Native)}
        for method, name in self._offered - now.keys():
            self._catalog.offer(method, name, None)
        for (method, name), how in now.items():
            self._catalog.offer(method, name, how.function, how.lane)
        self._offered = {*now}

    def listed(self, version: int, method: str, params: Mapping[str, Any] | None, revision: str, result: object) -> None:
        """The kernel has answered: the engine does so from now on, if it was for a whole list."""
        if method not in _LISTS or version != self.version or (params and params.keys() - {"_meta"}):
            return
        if self._parts is not None and _obstacle(self._known) is None and self._parts.lists(self._known.server, method):
            self._catalog.show(method, revision, to_json(result).decode())
            self._shown.add((method, revision))


class Watched(dict[Any, Any]):
    """A registry that tells of its changes."""

    told: Callable[[], None]

    def _changing(name: str) -> Any:  # type: ignore[misc]
        change = getattr(dict, name)

        def method(self: Watched, *arguments: Any, **named: Any) -> Any:
            try:
                return change(self, *arguments, **named)
            finally:
                self.told()

        return method

    __setitem__ = _changing("__setitem__")
    __delitem__ = _changing("__delitem__")
    __ior__ = _changing("__ior__")
    pop = _changing("pop")
    popitem = _changing("popitem")
    clear = _changing("clear")
    update = _changing("update")
    setdefault = _changing("setdefault")


def watch(owner: Any, name: str, told: Callable[[], None]) -> None:
    """Has `told` be called when that registry of `owner` changes, in the event loop that runs now."""
    loop = asyncio.get_running_loop()
    watched = Watched(getattr(owner, name))
    pending = False

    def tell() -> None:
        nonlocal pending
        pending = False
        told()

    watched.told = lambda: told() if _is_here(loop) else loop.call_soon_threadsafe(tell)  # type: ignore[assignment]
    setattr(owner, name, watched)


def _is_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
