"""The requests of an HTTP application that the engine answers now."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import Context, copy_context
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .. import _core

Scope = MutableMapping[str, Any]
MARK = b"x-mcpbolt-request"
"""The header by which a request of the engine is known as one of the application. Those of clients are removed."""


class Requests:
    """The requests of an application that the engine answers now, with their contexts."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[bytes, tuple[Scope, Context]] = {}

    def enter(self, scope: Scope) -> bytes:
        mark = b"%d" % next(self._numbers)
        self._open[mark] = scope, copy_context()
        return mark

    def leave(self, mark: bytes) -> None:
        del self._open[mark]

    def of(self, request: _core.KernelRequest) -> tuple[Scope, Context] | None:
        """The application's request that brought this one."""
        head = request.head()
        marks = [value for name, value in head[2] if name == MARK] if head else []
        return self._open.get(marks[0]) if marks else None
