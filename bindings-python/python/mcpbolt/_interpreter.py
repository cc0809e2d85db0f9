"""The engine's way to Python."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def event_loop() -> AbstractEventLoop:
    """The running event loop of asyncio.

    It has to be asyncio's (or uvloop's): the engine's wake-ups are a descriptor that this loop watches, calls are its
    tasks, and its cancellation is theirs. Other loops have no tasks that a call could be.

    Raises:
        Misuse: There is none.
    """
    from asyncio import get_running_loop

    try:
        return get_running_loop()
    except RuntimeError:
        from ._errors import Misuse

        raise Misuse(
            "there is no event loop of asyncio here, which servers and clients need: under trio run them in a thread"
            " with a loop of its own, or drive a mcpbolt.engine.Connection"
        ) from None


class Interpreter:
    """What calls are carried out with.

    Args:
        state: What the lifespan gave.
        spawn: Starts the task of a call.
        call_soon: That of the event loop.
    """

    __slots__ = ("state", "context", "spawn", "call_soon")

    def __init__(
        self,
        state: object = None,
        spawn: Callable[..., Any] | None = None,
        call_soon: Callable[..., Any] | None = None,
    ) -> None:
        self.state = state
        self.context = copy_context()
        self.spawn = spawn
        self.call_soon = call_soon
