"""The connection of a client: opening it, ending it, and sending requests on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _results
from ._answers import Answers, OnElicitation, OnSampling
from ._auth import ApiKey, Basic, Bearer, ConnectOptions, connect_options
from ._client_setup import ClientSetup, OnLog, OnNotification, OnProgress, RequestOptions, notices, roots_wire
from ._core import to_json
from ._errors import ConnectionClosed, Misuse, Unsupported, ordinary
from ._event_loop import at_last, event_loop
from ._interpreter import Interpreter
from ._oauth import OAuth
from ._options import options as set_options
from ._questions import Root
from ._server import Profile, Server
from ._wake import watch as watch_wake
from ._watched import waiting, watch

if TYPE_CHECKING:
    from ._event_loop import Future, Loop
    from .chain import Front

_T = TypeVar("_T")
_C = TypeVar("_C", bound="Connection")


class Connection:
    """The base of `Client`: connects, and sends requests of any method."""

    def __init__(
        self,
        server: Server | Front | str | Sequence[str | PathLike[str]],
        *,
        headers: Mapping[str, str] = {},
        auth: Bearer | Basic | ApiKey | OAuth | None = None,
        connect_timeout: float | None = None,
        root_certificates: str | PathLike[str] | None = None,
        certificate: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
        options: ConnectOptions | None = None,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: Sequence[str] = (),
        timeout: float | None = None,
        revision: str | None = None,
        opening: str = "probe",
        profile: Profile = "official",
        on_log: OnLog | None = None,
        on_list_changed: Callable[[str], object] | None = None,
        on_resource_updated: Callable[[str], object] | None = None,
        on_elicitation_complete: Callable[[str], object] | None = None,
        on_notification: OnNotification | None = None,
        on_sampling: OnSampling | None = None,
        sampling_tools: bool = False,
        on_elicitation: OnElicitation | None = None,
        on_elicitation_url: OnElicitation | None = None,
        tasks: bool = False,
        check_results: bool = False,
        extensions: Mapping[str, Mapping[str, Any]] = {},
        roots: Iterable[Root | str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        on_closed: Callable[[ConnectionClosed], object] | None = None,
        trace: str | PathLike[str] | None = None,
        telemetry: bool = False,
        name: str = "mcpbolt",
        version: str = _core.__version__,
    ) -> None:
        if isinstance(server, str):
            server = _core.command_of(server) or server
        self._server = server
        self._connect_options = to_json(
            connect_options(headers, auth, connect_timeout, root_certificates, certificate, options)
        )
        self._oauth = auth if isinstance(auth, OAuth) else None
        self._on_closed = on_closed
        self._cwd = None if cwd is None else fspath(cwd)
        self._env = list((env or {}).items())
        self._inherit = list(inherit_env)
        settings = set_options(
            name=name,
            version=version,
            opening=opening,
            profile=profile,
            revision=revision,
            timeout=timeout,
            trace=trace,
            roots=None if roots is None else roots_wire(roots),
            tasks=tasks,
            check_results=check_results,
            extensions=extensions,
            sampling=on_sampling is not None,
            sampling_tools=sampling_tools,
            forms=on_elicitation is not None,
            pages=on_elicitation_url is not None,
        )
        setup = self._setup = ClientSetup(to_json(settings), on_stderr, telemetry)
        self._answers = Answers(on_sampling, on_elicitation, on_elicitation_url)
        setup.on_asked, setup.on_given_up = self._answers.asked, self._answers.given_up
        setup.on_notice = notices(
            on_log, on_list_changed, on_resource_updated, on_elicitation_complete, on_notification
        )
        self._stack = AsyncExitStack()
        self._link: _core.Link | None = None
        self._loop: Loop
        self._strays = 0
        self._is_closing = False
        self._known: set[str] = set()  # tools that are called in the way that their list asks for
        self._meta: dict[str, Any] = {}  # of every request
        self._has_log_level = False

    async def __aenter__(self: _C) -> _C:
        if self._link is not None:
            raise Misuse("the client is connected already")
        loop = self._loop = self._answers.loop = event_loop()
        setup = self._setup
        self._known, self._meta, self._is_closing, self._has_log_level = set(), {}, False, False
        setup.opened, setup.ended = loop.create_future(), loop.create_future()
        async with AsyncExitStack() as stack:
            link = self._answers.link = await self._connect(stack)
            stack.push_async_callback(self._disconnect, link, watch(loop, link))
            with waiting(setup.opened):
                await setup.opened
            self._link = link
            self._stack = stack.pop_all()
        setup.ended.add_done_callback(lambda _: self._ended(link))
        return self

    async def _connect(self, stack: AsyncExitStack) -> _core.Link:
        if "mcpbolt.chain" in sys.modules:
            from .chain import Front

            front = self._server._front if isinstance(self._server, Server) else self._server
            if isinstance(front, Front):
                from ._assembled import Kept

                native = await stack.enter_async_context(Kept(front))
                return await _opened(self._loop, _core.connect_front(self._setup, native))
        if isinstance(self._server, str):
            if self._oauth:
                self._oauth.bind(self._loop)
            login = self._oauth.native if self._oauth else None
            return await _opened(self._loop, _core.connect_to(self._setup, self._server, self._connect_options, login))
        if not isinstance(self._server, Server):
            command = [fspath(word) for word in self._server]  # type: ignore[union-attr]
            return _core.connect_child(self._setup, command, self._cwd, self._env, self._inherit)
        from ._loop import running

        server = self._server
        links: list[_core.Link] = []

        def start(interpreter: Interpreter) -> _core.Serving:
            link, serving = _core.connect_pair(self._setup, server._catalog(), interpreter)
            links.append(link)
            return serving

        await stack.enter_async_context(running(server, start))
        return links[0]

    def _ended(self, link: _core.Link) -> None:
        """Reports the end of the connection to `on_closed`, unless this side is closing it."""
        if self._on_closed is not None and not self._is_closing:
            self._on_closed(link.end() or ConnectionClosed("the connection has ended"))

    async def _disconnect(self, link: _core.Link, stop: Callable[[], object]) -> None:
        self._is_closing = True
        link.close()
        try:
            with waiting(self._setup.ended):
                await at_last(self._setup.ended)
        finally:
            stop()
            self._answers.close()
            self._strays = link.stray_count()
            self._link = self._answers.link = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    @property
    def _connected(self) -> _core.Link:
        if self._link is None:
            raise Misuse("the client is not connected: use it inside `async with`")
        self._link.check()
        return self._link

    @property
    def server_info(self) -> _results.ServerInfo:
        """The server's self-description, and the protocol revision in force."""
        implementation, capabilities, instructions, revision = self._connected.peer()
        return _results.ServerInfo(implementation, capabilities, instructions, revision or "")

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> _core.Answer:
        """Sends any request and waits for its result. Cancelling the task also cancels the request at the server.

        Args:
            timeout: Seconds to wait for the answer; each progress notification that increases restarts them.
            max_timeout: Seconds to wait in all, whatever the progress.
            on_progress: Called with the progress, the total and a message.
            meta: Further members of the request's `_meta`, such as `traceparent`; the engine's own are not overridden.

        Raises:
            PeerError: The server answered with an error.
            RequestTimeout: The server did not answer in time.
            ConnectionClosed: The connection ended first.
        """
        link = self._connected
        options = self._options(timeout, max_timeout, on_progress, meta)
        return await self._made(lambda future: link.request(method, params, future, options))

    def _options(
        self,
        timeout: float | None,
        max_timeout: float | None,
        on_progress: OnProgress | None,
        meta: Mapping[str, Any] | None,
    ) -> RequestOptions | None:
        meta = {**self._meta, **meta} if meta else self._meta
        if timeout is None and max_timeout is None and on_progress is None and not meta:
            return None  # as most are, and quicker
        return RequestOptions(timeout, max_timeout, on_progress, meta)

    async def _made(self, begin: Callable[[Future[_T]], int]) -> _T:
        """Starts an operation of the engine and waits for its outcome; cancels it if the task is cancelled."""
        link = self._connected
        future: Future[_T] = self._loop.create_future()
        try:
            number = begin(future)
        except BaseException as error:
            raise ordinary(error) from None
        try:
            with waiting(future):
                return await future
        finally:
            if future.cancelled():
                link.cancel(number, None)

    def _offered(self, capability: str) -> None:
        if not self._connected.offers(capability):
            raise Unsupported(f"the server offers no {capability}")

    @property
    def stray_count(self) -> int:
        """The number of answers without a waiting request, and of frames that were not messages, on this connection
        or, if it is closed, on the last one."""
        return self._link.stray_count() if self._link else self._strays


async def _opened(loop: Loop, connecting: _core.Connecting) -> _core.Link:
    """Waits until the connection is established; returns the client's side of it."""
    there: Future[None] = loop.create_future()

    def arrive() -> None:
        if not there.done():
            there.set_result(None)

    forget = watch_wake(loop, connecting.wake(), arrive)
    try:
        await there
    except BaseException:
        # A traceback may keep the attempt.
        connecting.cancel()
        raise
    finally:
        forget()
    return connecting.link()
