"""The event loop that servers and clients run on: asyncio's (uvloop's too), or its substitute under trio."""

from __future__ import annotations

import sys
from asyncio import AbstractEventLoop, get_running_loop, isfuture, shield, sleep, to_thread
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ._errors import Misuse

_T = TypeVar("_T")

if TYPE_CHECKING:

    class Future(Protocol[_T]):
        """A future that the engine settles and a task awaits. It is cancelled with its task."""

        def __await__(self) -> Generator[Any, None, _T]: ...
        def done(self) -> bool: ...
        def cancelled(self) -> bool: ...
        def cancel(self) -> bool: ...
        def exception(self) -> BaseException | None: ...
        def set_result(self, result: _T, /) -> None: ...
        def set_exception(self, exception: BaseException, /) -> None: ...
        def add_done_callback(self, function: Callable[[Any], object], /) -> None: ...

    class Cancellable(Protocol):
        """A task that can be cancelled."""

        def cancel(self) -> object: ...

    class Loop(Protocol):
        """The part of an event loop that this package uses."""

        def create_future(self) -> Future[Any]: ...
        def create_task(self, work: Coroutine[Any, Any, None], /) -> Cancellable: ...
        def call_soon(self, function: Callable[..., object], /, *arguments: Any) -> object: ...
        def call_soon_threadsafe(self, function: Callable[..., object], /, *arguments: Any) -> object: ...
        def call_later(self, delay: float, function: Callable[[], object], /) -> Cancellable: ...
        def add_reader(self, fd: int, ready: Callable[[], object], /) -> object: ...
        def remove_reader(self, fd: int, /) -> object: ...


def event_loop() -> Loop:
    """The running event loop, of asyncio or trio.

    Raises:
        Misuse: No event loop of asyncio or trio is running.
    """
    if _is_trio():
        from ._trio import Loop

        return Loop()
    try:
        return get_running_loop()
    except RuntimeError:
        raise Misuse("there is no event loop here, of asyncio or trio, which servers and clients need") from None


def asyncio_loop(who: str) -> AbstractEventLoop:
    """The running event loop of asyncio, for features that trio does not have.

    Raises:
        Misuse: No event loop of asyncio is running.
    """
    if not _is_trio():
        try:
            return get_running_loop()
        except RuntimeError:
            pass
    raise Misuse(
        f"{who} needs an event loop of asyncio, and there is none here: under trio use `Server` and `Client` of mcpbolt"
        " itself, or a thread with a loop of its own"
    )


def shielded(future: Future[_T]) -> Awaitable[_T]:
    """An awaitable for a future that is not cancelled with this task."""
    if isfuture(future):
        return shield(future)
    from ._trio import shielded

    return shielded(future)


async def at_last(future: Future[_T]) -> _T:
    """Waits for a future in a task that may be cancelled already. In a cancelled scope of trio or anyio every further
    await would be cancelled, so this one is shielded."""
    with shield_of_task():
        return await shielded(future)


def arrival() -> tuple[Future[None], Callable[[], None]]:
    """A future of the running loop, and a function that settles it from any thread."""
    loop = event_loop()
    future: Future[None] = loop.create_future()

    def arrive() -> None:
        if not future.done():
            future.set_result(None)

    def tell() -> None:
        with suppress(RuntimeError):  # if the loop has ended, nobody waits
            loop.call_soon_threadsafe(arrive)

    return future, tell


async def pause(seconds: float) -> None:
    """Sleeps."""
    if not _is_trio():
        return await sleep(seconds)
    import trio

    await trio.sleep(seconds)


async def on_thread(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Calls a function on a thread, with this task's context variables. A cancelled task does not wait for it."""
    if not _is_trio():
        return await to_thread(function, *arguments, **named)
    import trio

    return await trio.to_thread.run_sync(partial(function, *arguments, **named), abandon_on_cancel=True)


def shield_of_task() -> AbstractContextManager[object]:
    if _is_trio():
        import trio

        return trio.CancelScope(shield=True)
    if "anyio" in sys.modules:
        import anyio

        return anyio.CancelScope(shield=True)
    return nullcontext()


def _is_trio() -> bool:
    """Whether this runs in a task of trio. Imports nothing if trio has not been imported."""
    if "trio" not in sys.modules:
        return False
    from sniffio import AsyncLibraryNotFoundError, current_async_library

    try:
        return current_async_library() == "trio"
    except AsyncLibraryNotFoundError:
        return False
