"""Exceptions of handlers: they are logged, and the hooks of `Server.on_error` are called with those that no client is told
about."""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import TYPE_CHECKING, Any

from ._errors import InvalidArguments, ToolError

if TYPE_CHECKING:
    from ._core import Pending
    from ._call import Call

    OnError = Callable[[BaseException, "Call | None"], object]


def logged(logger: str, what: str, error: BaseException) -> None:
    """Logs an exception with its traceback. Without any configuration of `logging`, it is printed to stderr."""
    from logging import getLogger

    getLogger(logger).error(what, exc_info=error)


class Failures:
    """The log of a server and its hooks.

    Attributes:
        masks: Whether clients are not told the texts of unexpected exceptions.
    """

    def __init__(self, server: str, masks: bool = True) -> None:
        self.logger = f"mcpbolt.server.{server}"
        self.masks = masks
        self.hooks: list[OnError] = []

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is called, and with the call."""
        return bool(self.hooks)

    def warn(self, why: str) -> None:
        """Logs a warning for the author of the server."""
        from logging import getLogger

        getLogger(self.logger).warning(why)

    def __call__(self, error: BaseException, what: str, pending: Pending | None) -> str | None:
        """Logs an unexpected exception and calls the hooks. Returns the text for the client; `None` if it gets the
        general one."""
        logged(self.logger, what, error)
        self.tell(error, pending)
        return self.shown(error, what)

    def shown(self, error: BaseException, what: str) -> str | None:
        return None if self.masks else f"{what}: {error}"

    def expected(self, error: ToolError, what: str, name: str) -> None:
        """Logs an exception that the client is told about, without its traceback, in programs that have configured
        `logging`. Of what the client sent, the line has only the name of the tool or prompt, or the URI of the resource."""
        if (logging := modules.get("logging")) is None:
            return
        logger = logging.getLogger(self.logger)
        if not logger.isEnabledFor(error.log_level) or not logger.hasHandlers():
            return
        if isinstance(error, InvalidArguments):
            what = f"Invalid arguments for tool {name!r}"
            from pydantic import ValidationError

            if isinstance(cause := error.__cause__, ValidationError):
                from ._types import summary

                what = f"{what}: {summary(cause)}"
        logger.log(error.log_level, what)

    def tell(self, error: BaseException, pending: Pending | None) -> None:
        """Calls the hooks; an exception of one is logged."""
        for hook in self.hooks:
            try:
                hook(error, _call(pending))
            except Exception as worse:
                logged(self.logger, "the on_error hook failed", worse)


class Within:
    """Reports of a mounted server, whose failures the hooks of the outer one see too."""

    def __init__(self, inner: Any, outer: Failures) -> None:
        self._inner = inner
        self._outer = outer

    @property
    def has_hooks(self) -> bool:
        return bool(self._inner.has_hooks or self._outer.has_hooks)

    def __call__(self, error: BaseException, what: str, pending: Pending | None) -> str | None:
        self._inner(error, what, pending)
        self._outer.tell(error, pending)
        return self._outer.shown(error, what)

    def expected(self, error: ToolError, what: str, name: str) -> None:
        self._inner.expected(error, what, name)


def _call(pending: Pending | None) -> Call | None:
    if pending is None:
        return None
    from ._call import Call

    return Call._of(pending)
