"""`Task`: a client's view of a tool call that runs as a task at the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Any

from . import _core
from ._content import Wire, _Value
from ._errors import Misuse
from ._results import CallToolResult
from ._watched import waiting

if TYPE_CHECKING:
    from ._client import Client
    from ._event_loop import Future


class TaskInfo(_Value):
    """The state of a task.

    Attributes:
        status: "working", "input_required", "completed", "failed" or "cancelled".
        message: A sentence about the state.
        created_at: When the task was created, in ISO 8601.
        updated_at: When it last changed, in ISO 8601.
        ttl: Seconds that it is kept from its creation; `None` for no limit.
        poll_interval: Seconds to wait between two polls, if the server says so.
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
        """Whether the task has ended, so that its status is final."""
        return self.status in ("completed", "failed", "cancelled")


class Task:
    """A tool call that runs as a task at the server. Await it for the call's result; iterate over it with
    `async for` for its states. If the object is dropped, the task goes on."""

    __slots__ = ("_client", "_made")

    def __init__(self, client: Client, made: _core.Answer | _core.RemoteTask) -> None:
        self._client = client
        self._made = made

    @property
    def id(self) -> str | None:
        """The task's id, for `Client.task`; `None` if the call was answered at once."""
        return None if isinstance(self._made, _core.Answer) else self._made.id

    def __await__(self) -> Generator[Any, None, CallToolResult]:
        return self.result().__await__()

    async def result(self) -> CallToolResult:
        """Waits for the call's result, polling as often as the server says. Meanwhile the client's handlers
        answer what the task asks the user or the model.

        Raises:
            PeerError: The task failed.
            RequestCancelled: The task was cancelled.
        """
        made = self._made
        if isinstance(made, _core.Answer):
            return CallToolResult(made)
        link = self._client._connected
        return CallToolResult(await self._client._made(lambda future: made.answer(link, future)))

    async def info(self) -> TaskInfo:
        """Gets the state of the task.

        Raises:
            PeerError: The server does not know the task, or no longer.
            Misuse: The call was answered at once.
        """
        task, link = self._remote, self._client._connected
        return TaskInfo(**await self._client._made(lambda future: task.info(link, future)))

    async def cancel(self) -> None:
        """Asks the server to cancel the task. It may complete before the server cancels it."""
        task, link = self._remote, self._client._connected
        await self._client._made(lambda future: task.cancel(link, future))

    async def __aiter__(self) -> AsyncIterator[TaskInfo]:
        """Yields the state of the task, now and after each change, until it ends; polls as often as the server
        says. The client's handlers answer the task's questions, as in `result`."""
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
        # Marks an exception as retrieved: the caller gets it from `result`.
        result.add_done_callback(lambda it: it.cancelled() or it.exception())
        number = self._made.answer(link, result, seen)
        last: TaskInfo | None = None
        try:
            with waiting(result):
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
