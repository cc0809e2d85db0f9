"""`Interpreter`: the Python functions that the engine calls to run handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any


def close_here(session: Any) -> None:
    """Cleans up the values of a session that has ended, where there is no event loop."""
    session.close_here()


class Interpreter:
    """The state and functions with which the engine runs handlers.

    Args:
        state: The value that the lifespan yielded.
        states: The values that the lifespans of mounted servers yielded, by `Entry.owner`.
        spawn: Starts the task of a call.
        call_soon: `call_soon` of the event loop.
        greet: Called on each thread of the engine that is about to run functions.
        leave: Called with the values of a session that has ended.
    """

    __slots__ = ("state", "states", "context", "spawn", "call_soon", "greet", "leave")

    def __init__(
        self,
        state: object = None,
        states: Mapping[int, object] = {},
        spawn: Callable[..., Any] | None = None,
        call_soon: Callable[..., Any] | None = None,
        greet: Callable[[], object] | None = None,
        leave: Callable[[Any], object] = close_here,
    ) -> None:
        self.state = state
        self.states = dict(states)
        self.context = copy_context()
        self.spawn = spawn
        self.call_soon = call_soon
        self.greet = greet
        self.leave = leave
