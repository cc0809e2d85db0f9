"""The streams by which the SDK's sessions reach the engine."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")


class Closing:
    """The closing of a stream, explicit or at the end of a block; base of both streams of a transport."""

    def close(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()


class Incoming(Closing, Generic[T]):
    """A stream of what has arrived, in order."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._is_closed = False
        self.has_ended = False

    def put(self, item: T) -> None:
        if not self._is_closed:
            self._items.append(item)
            self._rouse()

    def end(self) -> None:
        """Notes that nothing more will arrive."""
        self.has_ended = True
        self._rouse()

    def _rouse(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> T:
        """Waits for the next item.

        Raises:
            anyio.EndOfStream: The other side has ended, and all items were received.
            anyio.ClosedResourceError: The stream was closed on this side.
        """
        while not self._items:
            if self._is_closed:
                raise anyio.ClosedResourceError
            if self.has_ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.popleft()

    def close(self) -> None:
        self._is_closed = True
        self._items.clear()
        self._rouse()

    def __aiter__(self) -> Incoming[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
