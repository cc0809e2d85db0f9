"""Exceptions that no client is told about: they are logged, and the hooks of `Server.on_error` are called with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Pending
    from ._call import Call

    OnError = Callable[[BaseException, "Call | None"], object]


def logged(logger: str, what: str, error: BaseException) -> None:
    """Logs an exception with its traceback. Without any configuration of `logging`, it is printed to stderr."""
    from logging import getLogger

    getLogger(logger).error("%s failed", what, exc_info=error)


class Failures:
    """The log of a server and its hooks."""

    def __init__(self, server: str) -> None:
        self.logger = f"mcpbolt.server.{server}"
        self.hooks: list[OnError] = []

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is called, and with the call."""
        return bool(self.hooks)

    def warn(self, why: str) -> None:
        """Logs a warning for the author of the server."""
        from logging import getLogger

        getLogger(self.logger).warning(why)

    def __call__(self, error: BaseException, what: str, pending: Pending | None) -> None:
        logged(self.logger, what, error)
        self.tell(error, pending)

    def tell(self, error: BaseException, pending: Pending | None) -> None:
        """Calls the hooks; an exception of one is logged."""
        for hook in self.hooks:
            try:
                hook(error, _call(pending))
            except Exception as worse:
                logged(self.logger, "the on_error hook", worse)


class Within:
    """Reports of a mounted server, whose failures the hooks of the outer one see too."""

    def __init__(self, inner: Any, outer: Failures) -> None:
        self._inner = inner
        self._outer = outer

    @property
    def has_hooks(self) -> bool:
        return bool(self._inner.has_hooks or self._outer.has_hooks)

    def __call__(self, error: BaseException, what: str, pending: Pending | None) -> None:
        self._inner(error, what, pending)
        self._outer.tell(error, pending)


def _call(pending: Pending | None) -> Call | None:
    if pending is None:
        return None
    from ._call import Call

    return Call._of(pending)
