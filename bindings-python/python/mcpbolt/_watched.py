"""Watches a client's link from an event loop.

The loop holds only the link's wakeup, not the link. An unreferenced client is therefore garbage collected,
which closes its connection. A client with an awaited answer is kept alive until the answer comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import finalize, ref

from . import _core
from ._wake import watch as watch_wake

if TYPE_CHECKING:
    from ._event_loop import Future, Loop

_waited_for: set[Future[Any]] = set()


class waiting:
    """Keeps a future of the engine alive while a task waits for it, and with it the task, to which event loops hold
    no strong reference."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __enter__(self) -> None:
        _waited_for.add(self._future)

    def __exit__(self, *_: object) -> None:
        _waited_for.discard(self._future)


def watch(loop: Loop, link: _core.Link) -> Callable[[], object]:
    """Has a loop drain a link when something has arrived; returns a function that ends this."""
    wake, weak = link.wake(), ref(link)

    def drain() -> None:
        link = weak()
        if link is not None:
            link.drain()

    def forget_soon() -> None:
        # The collector runs on any thread. The descriptor stays open until the loop has forgotten it.
        try:
            loop.call_soon_threadsafe(forget)
        except RuntimeError:
            pass  # The loop is closed.

    forget = watch_wake(loop, wake, drain)
    end = finalize(link, forget_soon)
    end.atexit = False

    def stop() -> None:
        if end.detach():
            forget()

    return stop
