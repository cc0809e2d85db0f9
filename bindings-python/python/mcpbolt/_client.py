"""Clients: a server as a child process or in this one, and calls to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike, fspath
from types import TracebackType
from typing import Any, TypeVar

from . import _core, _results
from ._answers import Answers, OnElicitation, OnSampling
from ._content import ResourceContents, Wire
from ._errors import BadAnswer, Misuse, Unsupported
from ._questions import Root
from ._server import Server

OnProgress = Callable[[float, "float | None", "str | None"], object]
OnLog = Callable[[dict[str, Any]], object]
_T = TypeVar("_T")
_MAX_PAGES = 10_000  # stops a server whose list never ends


class _Setup:
    """A client's side, as the engine reads it."""

    def __init__(
        self,
        name: str,
        version: str,
        opening: str,
        revision: str | None,
        timeout: float | None,
        trace: str | PathLike[str] | None,
        on_stderr: Callable[[str], object] | None,
        roots: Iterable[Root | str] | None,
    ) -> None:
        self.name = name
        self.version = version
        self.opening = opening
        self.revision = revision
        self.timeout = timeout
        self.trace = trace
        self.on_stderr = on_stderr
        self.roots = None if roots is None else _pairs(roots)
        self.sampling = self.sampling_tools = self.forms = self.pages = False
        self.on_notice: Callable[[str, Wire], object]
        self.on_asked: Callable[[int, str, Wire], object]
        self.on_given_up: Callable[[int], object]
        self.opened: asyncio.Future[None]
        self.ended: asyncio.Future[None]


def _pairs(roots: Iterable[Root | str]) -> list[tuple[str, str | None]]:
    return [(root, None) if isinstance(root, str) else (root.uri, root.name) for root in roots]


class Client:
    """A client of one server, connected while its `async with` block runs.

    The server is a command line, started as a child process in a process group of its own, or a
    `Server` of this program, reached without a wire (for tests). Leaving the block shuts it down:
    its stdin is closed, then it is asked, then made to end; nothing of it is left.

    Args:
        server: Words of a command line, or a server.
        cwd: The directory that the child runs in.
        env: Variables that the child sees; it inherits only a few (`PATH`, `HOME`, …) by itself.
        inherit_env: Names of more variables that it inherits.
        timeout: Seconds that a request waits unless the call says otherwise; 60 by default.
        revision: The one protocol revision to speak; any by default.
        opening: "probe" asks for the newest revision and falls back to the handshake,
            "handshake" starts with it, "stateless" takes the newest for granted.
        on_log: Called with each log message: a dict of `level`, `data` and perhaps `logger`.
        on_list_changed: Called with "tools", "prompts" or "resources" when that list of the
            server's has changed.
        on_resource_updated: Called with the URI of a resource that `subscribe` or `listen` named.
        on_sampling: Lets servers ask the program's model: called with a `SamplingRequest`, gives
            back what the model said. A coroutine function or a plain one, like the next two.
        sampling_tools: Whether that model can use tools.
        on_elicitation: Lets servers ask the user to fill in a form: called with an
            `ElicitationRequest`, gives back a dict, `False` for "declined", `None` for "cancelled".
        on_elicitation_url: Lets servers send the user to a web page: gives back whether the user
            agreed. Show the whole URL and ask before opening it.
        roots: The folders and files, at `file://` URIs, that servers should keep to.
        on_stderr: Called with each line that the child writes to its stderr, which otherwise
            goes where this program's goes.
        trace: A file that gets a line for each frame of the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
    """

    def __init__(
        self,
        server: Server | Sequence[str | PathLike[str]],
        *,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: Sequence[str] = (),
        timeout: float | None = None,
        revision: str | None = None,
        opening: str = "probe",
        on_log: OnLog | None = None,
        on_list_changed: Callable[[str], object] | None = None,
        on_resource_updated: Callable[[str], object] | None = None,
        on_sampling: OnSampling | None = None,
        sampling_tools: bool = False,
        on_elicitation: OnElicitation | None = None,
        on_elicitation_url: OnElicitation | None = None,
        roots: Iterable[Root | str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        trace: str | PathLike[str] | None = None,
        name: str = "mcpbolt",
        version: str = _core.__version__,
    ) -> None:
        if isinstance(server, str):
            raise TypeError("a command is a list of words, not one string")
        self._server = server
        self._cwd = None if cwd is None else fspath(cwd)
        self._env = list((env or {}).items())
        self._inherit = list(inherit_env)
        setup = self._setup = _Setup(name, version, opening, revision, timeout, trace, on_stderr, roots)
        setup.sampling, setup.sampling_tools = on_sampling is not None, sampling_tools
        setup.forms, setup.pages = on_elicitation is not None, on_elicitation_url is not None
        self._answers = Answers(on_sampling, on_elicitation, on_elicitation_url)
        setup.on_asked, setup.on_given_up = self._answers.asked, self._answers.given_up
        setup.on_notice = _notices(on_log, on_list_changed, on_resource_updated)
        self._stack = AsyncExitStack()
        self._link: _core.Link | None = None
        self._strays = 0

    async def __aenter__(self) -> Client:
        if self._link is not None:
            raise Misuse("the client is connected already")
        loop = asyncio.get_running_loop()
        setup = self._setup
        setup.opened, setup.ended = loop.create_future(), loop.create_future()
        async with AsyncExitStack() as stack:
            link = self._answers.link = await self._connect(stack)
            loop.add_reader(link.fileno(), link.drain)
            stack.push_async_callback(self._disconnect, link)
            await setup.opened
            self._link = link
            self._stack = stack.pop_all()
        return self

    async def _connect(self, stack: AsyncExitStack) -> _core.Link:
        if not isinstance(self._server, Server):
            command = [fspath(word) for word in self._server]
            return _core.Link.child(self._setup, command, self._cwd, self._env, self._inherit)
        from ._loop import running

        catalog = self._server._catalog()
        links: list[_core.Link] = []

        def start(*interpreter: Any) -> _core.Serving:
            link, serving = _core.Link.pair(self._setup, catalog, *interpreter)
            links.append(link)
            return serving

        await stack.enter_async_context(running(self._server, start))
        return links[0]

    async def _disconnect(self, link: _core.Link) -> None:
        link.close()
        try:
            await asyncio.shield(self._setup.ended)
        finally:
            asyncio.get_running_loop().remove_reader(link.fileno())
            self._strays = link.stray_count()
            self._link = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    @property
    def _connected(self) -> _core.Link:
        if self._link is None:
            raise Misuse("the client is not connected: use it inside `async with`")
        return self._link

    @property
    def server_info(self) -> _results.ServerInfo:
        """What the server said of itself, and the protocol revision in force."""
        implementation, capabilities, instructions, revision = self._connected.peer()
        return _results.ServerInfo(implementation, capabilities, instructions, revision or "")

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> _core.Answer:
        """Sends any request. Cancelling the task cancels it on the wire too.

        Raises:
            PeerError: The server answered with an error.
            RequestTimeout: It did not answer in time.
            ConnectionClosed: The connection ended first.
        """
        link = self._connected
        return await self._made(lambda future: link.request(method, params, future, timeout, on_progress))

    async def _made(self, begin: Callable[[asyncio.Future[_T]], int]) -> _T:
        """The outcome of something that the engine does."""
        link = self._connected
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        number = begin(future)
        try:
            return await future
        finally:
            if future.cancelled():
                link.cancel(number, None)

    def _offered(self, capability: str) -> None:
        if not self._connected.offers(capability):
            raise Unsupported(f"the server offers no {capability}")

    async def _pages(
        self, method: str, capability: str, key: str, make: Callable[[Wire], _T]
    ) -> AsyncIterator[list[_T]]:
        self._offered(capability)
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            page = (await self.request(method, params)).parse()
            found = page.get(key)
            if not isinstance(found, list):
                raise BadAnswer(f"the answer to {method} has no list of {key}")
            yield [make(wire) for wire in found]
            cursor = page.get("nextCursor")
            if cursor is None:
                return
            if cursor == params.get("cursor"):
                raise BadAnswer("the same page again and again")
            params = {"cursor": cursor}
        raise BadAnswer("a list without end")

    def tool_pages(self) -> AsyncIterator[list[_results.Tool]]:
        """The server's tools, page by page."""
        return self._pages("tools/list", "tools", "tools", _results.Tool)

    async def list_tools(self) -> list[_results.Tool]:
        """The server's tools, all pages."""
        return [tool async for page in self.tool_pages() for tool in page]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> _results.CallToolResult:
        """Calls a tool. A tool that fails still gives a result: see its `is_error`.

        Args:
            timeout: Seconds to wait without news; progress starts them again.
            on_progress: Called with how far, of how much, and a sentence.

        Raises:
            As `request`.
        """
        self._offered("tools")
        params = {"name": name, "arguments": arguments or {}}
        answer = await self.request("tools/call", params, timeout=timeout, on_progress=on_progress)
        return _results.CallToolResult(answer)

    def resource_pages(self) -> AsyncIterator[list[_results.Resource]]:
        """The server's resources, page by page."""
        return self._pages("resources/list", "resources", "resources", _results.Resource)

    async def list_resources(self) -> list[_results.Resource]:
        """The server's resources, all pages."""
        return [resource async for page in self.resource_pages() for resource in page]

    def resource_template_pages(self) -> AsyncIterator[list[_results.ResourceTemplate]]:
        """The server's resource templates, page by page."""
        return self._pages("resources/templates/list", "resources", "resourceTemplates", _results.ResourceTemplate)

    async def list_resource_templates(self) -> list[_results.ResourceTemplate]:
        """The server's resource templates, all pages."""
        return [template async for page in self.resource_template_pages() for template in page]

    async def read_resource(self, uri: str, *, timeout: float | None = None) -> list[ResourceContents]:
        """Reads a resource."""
        self._offered("resources")
        return _results.contents(await self.request("resources/read", {"uri": uri}, timeout=timeout))

    def prompt_pages(self) -> AsyncIterator[list[_results.Prompt]]:
        """The server's prompts, page by page."""
        return self._pages("prompts/list", "prompts", "prompts", _results.Prompt)

    async def list_prompts(self) -> list[_results.Prompt]:
        """The server's prompts, all pages."""
        return [prompt async for page in self.prompt_pages() for prompt in page]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> _results.PromptResult:
        """Renders a prompt."""
        self._offered("prompts")
        params = {"name": name, "arguments": arguments or {}}
        return _results.PromptResult(await self.request("prompts/get", params, timeout=timeout))

    async def ping(self, *, timeout: float | None = None) -> None:
        """Asks for a sign of life."""
        await self.request(self._connected.ping_method(), timeout=timeout)

    async def complete(
        self,
        reference: _results.Prompt | _results.ResourceTemplate,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> _results.Completions:
        """The values that an argument of a prompt or a template may take, given how it begins.
        `context` holds the other arguments, as far as they are decided."""
        if self._connected.knows("completions"):
            self._offered("completions")
        prompt = isinstance(reference, _results.Prompt)
        ref = {"name": reference.name} if prompt else {"uri": reference.wire["uriTemplate"]}
        params: dict[str, Any] = {
            "ref": {"type": "ref/prompt" if prompt else "ref/resource", **ref},
            "argument": {"name": argument, "value": value},
        }
        if context and self._connected.knows("completion_context"):
            params["context"] = {"arguments": context}
        return _results.Completions(await self.request("completion/complete", params))

    async def subscribe(self, uri: str) -> None:
        """Asks to be told, through `on_resource_updated`, whenever that resource changes."""
        await self._made(lambda future: self._connected.subscribe(uri, True, future))

    async def unsubscribe(self, uri: str) -> None:
        """Asks to be told no more."""
        await self._made(lambda future: self._connected.subscribe(uri, False, future))

    @asynccontextmanager
    async def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Sequence[str] = ()
    ) -> AsyncIterator[None]:
        """Has the server tell of changes, through `on_list_changed` and `on_resource_updated`, while
        the block runs. Before 2026-07-28 servers tell of lists without being asked, and of
        resources by `subscribe`.

        Raises:
            Unsupported: The revision in force has no `subscriptions/listen`.
        """
        link = self._connected

        def begin(future: asyncio.Future[int]) -> int:
            return link.listen(tools, prompts, resources, list(uris), future)

        number = await self._made(begin)
        try:
            yield
        finally:
            link.unlisten(number)

    async def set_log_level(self, level: str) -> None:
        """Asks for log messages of this level and up, where the revision has it so."""
        await self._made(lambda future: self._connected.set_log_level(level, future))

    def set_roots(self, roots: Iterable[Root | str]) -> None:
        """Replaces the roots that the server may see, and tells it. The client must have been
        made with roots."""
        self._connected.set_roots(_pairs(roots))

    @property
    def stray_count(self) -> int:
        """Answers nobody waited for and frames that were no messages, while it was connected."""
        return self._link.stray_count() if self._link else self._strays


def _notices(
    on_log: OnLog | None,
    on_list_changed: Callable[[str], object] | None,
    on_resource_updated: Callable[[str], object] | None,
) -> Callable[[str, Wire], object]:
    """Hands each notification of the server to who wants it."""

    def told(method: str, params: Wire) -> None:
        match method.split("/")[1:]:
            case ["message"] if on_log:
                on_log({name: params[name] for name in params if name != "_meta"})
            case [kind, "list_changed"] if on_list_changed:
                on_list_changed(kind)
            case ["resources", "updated"] if on_resource_updated:
                on_resource_updated(params["uri"])

    return told
