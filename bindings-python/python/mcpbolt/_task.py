"""Calls that go on at the server, as a client follows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Any

from . import _core
from ._content import Wire, _Value
from ._errors import Misuse
from ._results import CallToolResult

if TYPE_CHECKING:
    from ._client import Client
    from ._event_loop import Future


class TaskInfo(_Value):
    """How far a task is.

    Attributes:
        status: "working", "input_required", "completed", "failed" or "cancelled".
        message: A sentence about it.
        created_at: When it began, in ISO 8601.
        updated_at: When it last changed.
        ttl: Seconds that it is kept from its beginning; `None` for ever.
        poll_interval: Seconds between two questions, if the server says so.
    """

    __slots__ = ("id", "status", "message", "created_at", "updated_at", "ttl", "poll_interval")

    def __init__(
        self,
        id: str,
        status: str,
        message: str | None,
        created_at: str,
        updated_at: str,
        ttl: float | None,
        poll_interval: float | None,
    ) -> None:
        self.id = id
        self.status = status
        self.message = message
        self.created_at = created_at
        self.updated_at = updated_at
        self.ttl = ttl
        self.poll_interval = poll_interval

    @property
    def has_ended(self) -> bool:
        """Whether it stays as it is."""
        return self.status in ("completed", "failed", "cancelled")


class Task:
    """A call of a tool under way at the server. Await it for the call's result; iterate over it for
    how far it is; forget it, and it goes on."""

    __slots__ = ("_client", "_made")

    def __init__(self, client: Client, made: _core.Answer | _core.RemoteTask) -> None:
        self._client = client
        self._made = made

    @property
    def id(self) -> str | None:
        """By which `Client.task` finds it again; `None` when the call was answered at once."""
        return None if isinstance(self._made, _core.Answer) else self._made.id

    def __await__(self) -> Generator[Any, None, CallToolResult]:
        return self.result().__await__()

    async def result(self) -> CallToolResult:
        """Waits for the call's result, asking as often as the server says. What the task asks of the
        user or the model meanwhile, the client's handlers answer.

        Raises:
            PeerError: It failed.
            RequestCancelled: It was given up.
        """
        made = self._made
        if isinstance(made, _core.Answer):
            return CallToolResult(made)
        link = self._client._connected
        return CallToolResult(await self._client._made(lambda future: made.answer(link, future)))

    async def info(self) -> TaskInfo:
        """How far it is.

        Raises:
            PeerError: The server does not know it, or not any more.
            Misuse: The call was answered at once.
        """
        task, link = self._remote, self._client._connected
        return TaskInfo(**await self._client._made(lambda future: task.info(link, future)))

    async def cancel(self) -> None:
        """Asks the server to give it up. It may be done before the server does."""
        task, link = self._remote, self._client._connected
        await self._client._made(lambda future: task.cancel(link, future))

    async def __aiter__(self) -> AsyncIterator[TaskInfo]:
        """How far it is, now and after each change, up to its end; asks as often as the server says.
        What the task asks meanwhile is answered as in `result`."""
        if isinstance(self._made, _core.Answer):
            return
        link, loop = self._client._connected, self._client._loop
        states: list[Wire] = []
        result: Future[_core.Answer] = loop.create_future()
        news: Future[None] = loop.create_future()

        def seen(state: Wire) -> None:
            states.append(state)
            roused()

        def roused(_: object = None) -> None:
            if not news.done():
                news.set_result(None)

        result.add_done_callback(roused)
        # Whatever comes of it, `result` tells who asks.
        result.add_done_callback(lambda it: it.cancelled() or it.exception())
        number = self._made.answer(link, result, seen)
        last: TaskInfo | None = None
        try:
            while True:
                while states:
                    if (info := TaskInfo(**states.pop(0))) != last:
                        yield info
                    last = info
                if result.done():
                    break
                await news
                news = loop.create_future()
            if last is None or not last.has_ended:
                yield await self.info()
        finally:
            if result.cancel():
                link.cancel(number, None)

    @property
    def _remote(self) -> _core.RemoteTask:
        if isinstance(self._made, _core.Answer):
            raise Misuse("the call was answered at once: there is only its result")
        return self._made

    def __repr__(self) -> str:
        return f"Task(id={self.id!r})"
