"""Streams that lead a server of the SDK to the engine, or anything else to the SDK's own stdin and stdout."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from . import _said
from ._streams import Closing


class Led:
    """Stdin and stdout that nobody has taken yet. The first use of one of the streams, other than by a server, opens
    the SDK's own."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        self._opening = anyio.Lock()
        self._streams: tuple[Any, Any] | None = None
        self._over = anyio.Event()
        self.reading = LedReading(self)
        self.writing = LedWriting(self)

    async def __aenter__(self) -> Led:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._over.set()
        return await self._tasks.__aexit__(*error)

    async def streams(self) -> tuple[Any, Any]:
        """The SDK's own streams, opened now if they are not yet."""
        async with self._opening:
            if self._streams is None:
                _said.kept("stdio", "the program reads the messages itself")
                self._streams = await self._tasks.start(self._hold)
        return self._streams

    async def _hold(self, *, task_status: Any) -> None:
        async with self._original() as streams:
            task_status.started(streams)
            await self._over.wait()

    @asynccontextmanager
    async def originals(self) -> AsyncIterator[tuple[Any, Any]]:
        """The SDK's own streams, for a server that runs on them."""
        async with self._original() as streams:
            yield streams


class LedStream(Closing):
    """One of the two streams."""

    _index: int

    def __init__(self, led: Led) -> None:
        self.led = led

    async def stream(self) -> Any:
        return (await self.led.streams())[self._index]

    def close(self) -> None:
        if self.led._streams is not None:
            self.led._streams[self._index].close()

    async def aclose(self) -> None:
        if self.led._streams is not None:
            await self.led._streams[self._index].aclose()

    async def __aexit__(self, *error: Any) -> None:
        await self.aclose()

    def __getattr__(self, name: str) -> Any:
        if self.led._streams is None:
            raise AttributeError(name)
        return getattr(self.led._streams[self._index], name)


class LedReading(LedStream):
    _index = 0

    async def receive(self) -> Any:
        return await (await self.stream()).receive()

    def __aiter__(self) -> LedReading:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class LedWriting(LedStream):
    _index = 1

    async def send(self, item: Any) -> None:
        await (await self.stream()).send(item)


def of(reading: object, writing: object) -> Led | None:
    """The stdin and stdout that both streams lead to, if nobody has taken them yet."""
    if isinstance(reading, LedReading) and isinstance(writing, LedWriting) and reading.led is writing.led:
        return reading.led if reading.led._streams is None else None
    return None
