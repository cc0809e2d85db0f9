"""`Steps`: tools whose effects are undone when they fail."""

from __future__ import annotations

from collections.abc import Callable


class Steps:
    """The steps that a call has taken, each with a function that undoes it. A tool with a parameter of this hint is
    atomic: unless the call succeeds, all steps are undone, the last one first, before the call is answered.
    """

    __slots__ = ("_undos", "_is_undone")

    def __init__(self) -> None:
        self._undos: list[Callable[[], object]] = []
        self._is_undone = False

    def taken(self, undo: Callable[[], object]) -> None:
        """Records how to undo a step that was just taken; undoes it at once if the call has failed meanwhile. In a
        coroutine function, `undo` may be a coroutine function too.
        """
        if self._is_undone:
            undo()
        else:
            self._undos.append(undo)

    def failed(self) -> list[Callable[[], object]]:
        """Marks the call as failed; returns the functions to call now, in this order."""
        self._is_undone = True
        return self._undos[::-1]
