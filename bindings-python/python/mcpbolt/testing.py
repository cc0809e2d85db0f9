"""Tests of servers: a client in the process of the server, for tests with and without `async`, and results as plain
values.

    from mcpbolt.testing import client, snapshot

    def test_add():
        with client(server) as test:
            assert test.call_tool("add", {"a": 1, "b": 2}).text == "3"
            assert snapshot(test.list_tools()) == [...]

    async def test_add_too():
        async with client(server) as test:
            assert (await test.call_tool("add", {"a": 1, "b": 2})).text == "3"

pytest finds the fixture `mcp_client`, which connects any number of servers until the test ends:

    def test_add_again(mcp_client):
        assert mcp_client(server).call_tool("add", {"a": 1, "b": 2}).text == "3"
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from . import _depends, _results
from ._client import Client
from ._client_setup import OnProgress
from ._content import ResourceContents, Wire
from ._errors import PeerError, Unsupported
from ._server import Server

__all__ = ["AsyncTester", "Progress", "Tester", "client", "snapshot"]

_T = TypeVar("_T")


class Progress(NamedTuple):
    """A progress notification."""

    progress: float
    total: float | None
    message: str | None


class _Heard:
    """What the server sent besides answers, so far."""

    logs: list[Wire]
    """The log messages, of every level: `level`, `data` and perhaps `logger`."""
    progress: list[Progress]
    """The progress of all calls."""
    notifications: list[tuple[str, Any]]
    """Other notifications: `("list_changed", "tools")`, `("resource_updated", uri)`, or a method with its params."""


class AsyncTester(Client, _Heard):
    """A `Client` that notes what the server sends besides answers."""

    def __init__(self, server: Server, **options: Any) -> None:
        self.logs, self.progress, self.notifications = [], [], []
        note = self.notifications.append
        noting: dict[str, Callable[..., object]] = {
            "on_log": self.logs.append,
            "on_list_changed": lambda kind: note(("list_changed", kind)),
            "on_resource_updated": lambda uri: note(("resource_updated", uri)),
            "on_notification": lambda method, params: note((method, params)),
        }
        super().__init__(server, **{**noting, **options})

    async def __aenter__(self) -> AsyncTester:
        await super().__aenter__()
        with suppress(Unsupported, PeerError):
            await self.set_log_level("debug")
        return self

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> _results.CallToolResult:
        def note(progress: float, total: float | None, message: str | None) -> object:
            self.progress.append(Progress(progress, total, message))
            return on_progress(progress, total, message) if on_progress is not None else None

        return await super().call_tool(
            name, arguments, timeout=timeout, max_timeout=max_timeout, on_progress=note, meta=meta
        )


class Tester(_Heard):
    """A client for tests without `async`. The server and the client run on an event loop of a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tester: AsyncTester) -> None:
        self._loop = loop
        self.client = tester
        """The client behind this one, for everything else: see `run`."""
        self.logs, self.progress, self.notifications = tester.logs, tester.progress, tester.notifications

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Waits for a coroutine on the event loop: `test.run(test.client.complete(prompt, "city", "O"))`."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> _results.CallToolResult:
        """Calls a tool."""
        return self.run(self.client.call_tool(name, arguments, meta=meta))

    def read_resource(self, uri: str) -> list[ResourceContents]:
        """Reads a resource."""
        return self.run(self.client.read_resource(uri))

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> _results.PromptResult:
        """Renders a prompt."""
        return self.run(self.client.get_prompt(name, arguments))

    def list_tools(self) -> list[_results.Tool]:
        """Lists the tools."""
        return self.run(self.client.list_tools())

    def list_resources(self) -> list[_results.Resource]:
        """Lists the resources."""
        return self.run(self.client.list_resources())

    def list_resource_templates(self) -> list[_results.ResourceTemplate]:
        """Lists the resource templates."""
        return self.run(self.client.list_resource_templates())

    def list_prompts(self) -> list[_results.Prompt]:
        """Lists the prompts."""
        return self.run(self.client.list_prompts())


class client:
    """Connects to a server in this process: `with client(server) as test` gives a `Tester`, `async with` an `AsyncTester`.

    Args:
        overrides: Functions to use instead of those of `Depends`. One may be a coroutine function only if the other is.
        options: As for `Client`: `revision=`, `on_elicitation=` and so on.

    Raises:
        TypeError: A function cannot take the place of another.
    """

    def __init__(
        self, server: Server, *, overrides: Mapping[Callable[..., Any], Callable[..., Any]] = {}, **options: Any
    ) -> None:
        self._overrides = _depends.overriding(overrides)
        self._tester = AsyncTester(server, **options)
        self._thread: Thread | None = None

    async def __aenter__(self) -> AsyncTester:
        # All calls begin with the context variables of now.
        token = _depends.overrides.set(self._overrides)
        try:
            return await self._tester.__aenter__()
        finally:
            _depends.overrides.reset(token)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._tester.__aexit__(kind, error, traceback)

    def __enter__(self) -> Tester:
        self._loop = loop = asyncio.new_event_loop()
        self._thread = Thread(target=loop.run_forever, name="mcpbolt-testing", daemon=True)
        self._thread.start()
        # One task enters and leaves, as cancel scopes in a lifespan demand.
        self._end = asyncio.Event()
        ready: Future[AsyncTester] = Future()
        self._task = asyncio.run_coroutine_threadsafe(self._connected(ready), loop)
        try:
            return Tester(loop, ready.result())
        except BaseException:
            self._stop()
            raise

    async def _connected(self, ready: Future[AsyncTester]) -> None:
        try:
            async with self as tester:
                ready.set_result(tester)
                await self._end.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        try:
            self._task.result()
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()
        self._loop.close()


def snapshot(value: Any) -> Any:
    """The value as dicts, lists and plain values, which are the same each time and in every revision: without members that
    vary, such as hints for caches, with sorted keys, and with bytes in base64. It takes results, lists of tools and
    the like, contents, messages and a `PeerError`."""
    match value:
        case _results.CallToolResult():
            parts = {"content": value.content, "structured": value.structured, "is_error": value.is_error or None}
            return _sorted(parts)
        case _results.PromptResult():
            return _sorted({"description": value.description, "messages": value.messages})
        case _results.Completions():
            return _sorted({"values": value.values, "total": value.total, "has_more": value.has_more})
        case PeerError():
            return _sorted({"code": value.code, "message": value.message, "data": value.data})
        case dict():
            # Data of the server, in which `null` is a value.
            return {name: snapshot(one) for name, one in sorted(value.items())}
        case list() | tuple():
            return [snapshot(one) for one in value]
        case None | str() | int() | float():
            return value
    wire = value.wire
    return snapshot(wire() if callable(wire) else wire)


def _sorted(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that a result has."""
    return {name: snapshot(value) for name, value in sorted(members.items()) if value is not None}
