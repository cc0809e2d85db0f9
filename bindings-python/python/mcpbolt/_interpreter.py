"""`Interpreter`: the Python functions that the engine calls to run handlers."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any


class Interpreter:
    """The state and functions with which the engine runs handlers.

    Args:
        state: The value that the lifespan yielded.
        spawn: Starts the task of a call.
        call_soon: `call_soon` of the event loop.
        greet: Called on each thread of the engine that is about to run functions.
    """

    __slots__ = ("state", "context", "spawn", "call_soon", "greet")

    def __init__(
        self,
        state: object = None,
        spawn: Callable[..., Any] | None = None,
        call_soon: Callable[..., Any] | None = None,
        greet: Callable[[], object] | None = None,
    ) -> None:
        self.state = state
        self.context = copy_context()
        self.spawn = spawn
        self.call_soon = call_soon
        self.greet = greet
