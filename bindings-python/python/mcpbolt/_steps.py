"""Tools that are undone where they fail."""

from __future__ import annotations

from collections.abc import Callable


class Steps:
    """The steps that a call has taken, each with how it is taken back. A tool with a parameter of this hint is atomic:
    unless its call comes to a good end, all are taken back, the last one first, before it is answered.
    """

    __slots__ = ("_undos", "_is_undone")

    def __init__(self) -> None:
        self._undos: list[Callable[[], object]] = []
        self._is_undone = False

    def taken(self, undo: Callable[[], object]) -> None:
        """Notes how a step that was just taken is taken back; at once, if the call has failed meanwhile. Of a coroutine
        function it may be one, too.
        """
        if self._is_undone:
            undo()
        else:
            self._undos.append(undo)

    def failed(self) -> list[Callable[[], object]]:
        """What is to be called now, in this order."""
        self._is_undone = True
        return self._undos[::-1]
