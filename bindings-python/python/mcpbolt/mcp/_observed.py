"""The observers of a server's requests, besides their handlers: middleware, OpenTelemetry, debug messages. The kernel answers
the requests of a method that something observes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.request_state import RequestStateBoundary

from . import _private as private
from ._server import is_fastmcp

if TYPE_CHECKING:
    from ._server import Known

_BUILT_IN = (private.telemetry(), RequestStateBoundary)
# The SDK's debug messages that name each request: the logger, by method.
_RESOURCES = "mcp.server.mcpserver.resources.resource_manager"
_LOGGERS = dict.fromkeys(("resources/read", "resources/list", "resources/templates/list"), _RESOURCES)


def observer(known: Known, method: str) -> str | None:
    """What observes each request of a method, as a reason for the kernel to answer it; `None` if nothing does."""
    loggers, makes_spans = _LOGGERS, True
    found = [one for one in known.lowlevel.middleware if type(one) not in _BUILT_IN]
    if is_fastmcp(known.server):
        from . import _fast_observed as fast

        loggers, makes_spans = fast.LOGGERS, fast.makes_spans()
        found = [one for one in found if type(one) is not fast.Dispatch]
        found += [one for one in known.server.middleware if fast.sees(one, method)]
    if found:
        return f"middleware sees each request: {getattr(found[0], '__qualname__', type(found[0]).__qualname__)}"
    if makes_spans and is_traced():
        return "OpenTelemetry traces each request"
    if known.server is not known.lowlevel and method in loggers:
        if logging.getLogger(loggers[method]).isEnabledFor(logging.DEBUG):
            return "debug messages name each request"
    return None


def answers_pings(known: Known) -> bool:
    """Whether the engine may answer pings: the program neither handles nor observes them."""
    entry = known.lowlevel.get_request_handler("ping")
    return entry is not None and entry.handler is private.ping_handler() and observer(known, "ping") is None


def is_traced() -> bool:
    """Whether a tracer of OpenTelemetry is installed, so that the kernel makes a span for each request."""
    trace = sys.modules.get("opentelemetry.trace")
    return trace is not None and private.has_tracer(trace)


def tracer_listeners() -> list[Callable[[], None]]:
    """The functions that are called after a tracer of OpenTelemetry is installed, which a program may do late."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    return [] if trace is None else private.tracer_listeners(trace)
