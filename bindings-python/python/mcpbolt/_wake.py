"""Has an event loop drain an object of the engine when something has arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._event_loop import Loop


def watch(loop: Loop, wake: _core.Wake, ready: Callable[[], object]) -> Callable[[], None]:
    """Calls `ready` on the loop whenever the wakeup is raised; returns a function that ends this, on the loop too.

    The loop watches the wakeup's descriptor. Where there is none, as loops of other systems than Linux may not be able to
    watch it, a thread waits for the wakeup.
    """
    descriptor = wake.fileno()
    if descriptor is None:
        return _by_thread(loop, wake, ready)
    loop.add_reader(descriptor, ready)
    # The wakeup keeps the descriptor open, whose number would be another one's before the loop has forgotten it.
    watched = [(descriptor, wake)]

    def forget() -> None:
        if watched:
            descriptor, _kept = watched.pop()
            loop.remove_reader(descriptor)

    return forget


def _by_thread(loop: Loop, wake: _core.Wake, ready: Callable[[], object]) -> Callable[[], None]:
    from contextvars import copy_context
    from threading import Thread

    # As of a loop that watches a descriptor, not those of the thread.
    variables = copy_context()
    over: list[bool] = []

    def call() -> None:
        if not over:
            variables.run(ready)

    def wait() -> None:
        count = 0
        while (more := wake.after(count)) is not None:
            count = more
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:
                return  # The loop is closed.

    # The interpreter does not wait for it at its end.
    Thread(target=wait, name="mcpbolt-wake", daemon=True).start()

    def forget() -> None:
        over.append(True)
        wake.end()

    return forget
