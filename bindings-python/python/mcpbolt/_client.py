"""Clients: a server as a child process or in this one, and calls to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _results
from ._actions import Actions
from ._client_setup import OnProgress, Options, pairs
from ._content import ResourceContents, Wire
from ._event_loop import shielded
from ._questions import Root
from ._skill import Skill
from ._task import Task, TaskInfo

if TYPE_CHECKING:
    from ._event_loop import Future

_T = TypeVar("_T")
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Listening:
    """What a client listens to."""

    def __init__(self, end: Future[None]) -> None:
        self.end = end
        # Nobody need ask.
        self.end.add_done_callback(lambda end: end.cancelled() or end.exception())

    async def ended(self) -> None:
        """Waits until the server tells no more.

        Raises:
            McpError: It did not end in good order: why.
        """
        await shielded(self.end)


class Client(Actions):
    """A client of one server, connected while its `async with` block runs.

    The server is at an address; a command line, started as a child process in a process group of its own;
    or a `Server` of this program, reached without a wire (for tests). Leaving the block closes the
    connection, and shuts a child down: its stdin is closed, then it is asked, then made to end; nothing of
    it is left.

    Args:
        server: An address (`https://example.com/mcp`, `ws://…`, `unix:/run/mcp.sock`, `tcp:localhost:7000`,
            `stdio:python server.py`), words of a command line, or a server.
        headers: Further headers of each request, for HTTP and WebSocket.
        auth: Credentials, for the same: `Bearer`, `Basic` or `ApiKey`.
        connect_timeout: Seconds until there is a connection to an address; 30 by default.
        root_certificates: A file of certificates, in PEM, that are trusted beside those that the system trusts.
        certificate: What is shown to a server that asks for a certificate: its file and that of its key, in PEM.
        options: What else may be said of the carrier: proxy, times, limits.
        cwd: The directory that the child runs in.
        env: Variables that the child sees; it inherits only a few (`PATH`, `HOME`, …) by itself.
        inherit_env: Names of more variables that it inherits.
        timeout: Seconds that a request waits unless the call says otherwise; 60 by default.
        revision: The one protocol revision to speak; any by default.
        opening: "probe" asks for the newest revision and falls back to the handshake,
            "handshake" starts with it, "stateless" takes the newest for granted; "actions" speaks the
            action dialect instead: `action` and its like work then, and nothing of MCP.
        profile: Whose reading of the protocol is spoken, up to 2025-11-25: "seed-001" to "seed-004", as of a
            `Server`.
        on_log: Called with each log message: a dict of `level`, `data` and perhaps `logger`.
        on_list_changed: Called with "tools", "prompts" or "resources" when that list of the
            server's has changed.
        on_resource_updated: Called with the URI of a resource that `subscribe` or `listen` named.
        on_elicitation_complete: Called with the id of a page's errand that the user has done.
        on_notification: Called with the method and the params of any other notification.
        on_sampling: Lets servers ask the program's model: called with a `SamplingRequest`, gives
            back what the model said. A coroutine function or a plain one, like the next two.
        sampling_tools: Whether that model can use tools.
        on_elicitation: Lets servers ask the user to fill in a form: called with an
            `ElicitationRequest`, gives back a dict, `False` for "declined", `None` for "cancelled".
        on_elicitation_url: Lets servers send the user to a web page: gives back whether the user
            agreed. Show the whole URL and ask before opening it.
        tasks: Lets servers make tasks of calls, from 2026-07-28 on: `call_tool` waits for what comes
            of them, and `start_tool` gives them.
        check_results: Refuses results that are not what the revisions say of them, with a `BadAnswer` that names the
            member; by default what a result lacks may be forgiven.
        extensions: Extensions that are declared, from 2026-07-28 on: settings by name. A server uses
            one if it declares it, too: see `ServerInfo.extensions`.
        roots: The folders and files, at `file://` URIs, that servers should keep to.
        on_stderr: Called with each line that the child writes to its stderr, which otherwise
            goes where this program's goes.
        on_closed: Called with a `ConnectionClosed` when the connection ends before the block does.
        trace: A file that gets a line for each frame of the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
    """

    async def _pages(self, kind: str, make: Callable[[Wire], _T]) -> AsyncIterator[list[_T]]:
        link = self._connected
        pages = _core.Pages(link, kind)
        while True:
            page: list[Wire] | None = await self._made(lambda future: pages.next(link, future))
            if page is None:
                return
            yield [make(wire) for wire in page]

    async def _list(self, kind: str, make: Callable[[Wire], _T]) -> list[_T]:
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.whole_list(link, kind, future))
        return [make(wire) for wire in wires]

    def tool_pages(self) -> AsyncIterator[list[_results.Tool]]:
        """The server's tools, page by page."""
        return self._pages("tools", _results.Tool)

    async def list_tools(self) -> list[_results.Tool]:
        """The server's tools, all pages. From then on, results are held against the output schemas of
        this list. This and the other lists are kept for as long as the server lets clients keep
        them, or until it tells that they are others."""
        tools = await self._list("tools", _results.Tool)
        self._known = {tool.name for tool in tools if tool.output_schema is not None or tool.task == "required"}
        return tools

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
        """Calls a tool. A tool that fails still gives a result: see its `is_error`.

        Where the call goes on as a task, `timeout` and `max_timeout` bound the answer that it does,
        not the whole. Cancelling this gives the task up, too; in 2025-11-25 it leaves it to the server.

        Raises:
            As `request`.
            BadAnswer: The result does not fit the tool's output schema, if the tools were listed.
        """
        self._offered("tools")
        if name in self._known:
            options = self._options(timeout, max_timeout, on_progress, meta)
            answer = await self._call(name, arguments, options)
            assert isinstance(answer, _core.Answer)
        else:
            params = {"name": name, "arguments": arguments or {}}
            answer = await self.request(
                "tools/call", params, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress, meta=meta
            )
        return _results.CallToolResult(answer)

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Task:
        """Calls a tool by way of a task, which may outlive this connection. In 2025-11-25 it asks
        for one; from 2026-07-28 on the server decides, if the client was made with `tasks=True`. A
        call that is answered at once gives a task that has ended.

        Args:
            ttl: Seconds that the server is to keep the task (2025-11-25).

        Raises:
            Unsupported: The server makes no tasks, or none of this tool (2025-11-25).
        """
        options = self._options(timeout, None, on_progress, meta)
        return Task(self, await self._call(name, arguments, options, start=True, ttl=ttl))

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        options: Options | None,
        start: bool = False,
        ttl: float | None = None,
    ) -> _core.Answer | _core.RemoteTask:
        link = self._connected
        return await self._made(lambda future: link.call_tool(name, arguments or {}, future, options, start, ttl))

    def task(self, id: str) -> Task:
        """The task of that id: in 2025-11-25 one of this connection, later of any."""
        return Task(self, _core.RemoteTask(self._connected, id))

    async def list_tasks(self) -> list[TaskInfo]:
        """The tasks of this client (2025-11-25)."""
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.list_tasks(link, future))
        return [TaskInfo(**wire) for wire in wires]

    def resource_pages(self) -> AsyncIterator[list[_results.Resource]]:
        """The server's resources, page by page."""
        return self._pages("resources", _results.Resource)

    async def list_resources(self) -> list[_results.Resource]:
        """The server's resources, all pages."""
        return await self._list("resources", _results.Resource)

    def resource_template_pages(self) -> AsyncIterator[list[_results.ResourceTemplate]]:
        """The server's resource templates, page by page."""
        return self._pages("resource_templates", _results.ResourceTemplate)

    async def list_resource_templates(self) -> list[_results.ResourceTemplate]:
        """The server's resource templates, all pages."""
        return await self._list("resource_templates", _results.ResourceTemplate)

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, meta: Mapping[str, Any] | None = None
    ) -> list[ResourceContents]:
        """Reads a resource."""
        self._offered("resources")
        return _results.contents(await self.request("resources/read", {"uri": uri}, timeout=timeout, meta=meta))

    def prompt_pages(self) -> AsyncIterator[list[_results.Prompt]]:
        """The server's prompts, page by page."""
        return self._pages("prompts", _results.Prompt)

    async def list_prompts(self) -> list[_results.Prompt]:
        """The server's prompts, all pages."""
        return await self._list("prompts", _results.Prompt)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> _results.PromptResult:
        """Renders a prompt."""
        self._offered("prompts")
        params = {"name": name, "arguments": arguments or {}}
        return _results.PromptResult(await self.request("prompts/get", params, timeout=timeout, meta=meta))

    async def list_skills(self) -> list[Skill]:
        """The server's skills, all pages (2026-07-28). Nothing of them is read.

        Raises:
            Unsupported: The server does not offer the extension.
        """
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.list_skills(link, future))
        return [Skill(wire) for wire in wires]

    async def get_skill(self, uri: str) -> Skill:
        """What the server says of the skill whose manifest is at that URI."""
        link = self._connected
        return Skill(await self._made(lambda future: _core.get_skill(link, uri, future)))

    async def read_skill(self, skill: Skill) -> str:
        """Reads the manifest of a skill: instructions for the model, behind what the list said.

        Raises:
            BadAnswer: It is not what the skill's entry says: of another length, digest or frontmatter.
        """
        link, json = self._connected, _core.to_json(skill.wire)
        text: str = await self._made(lambda future: _core.read_skill(link, json, None, future))
        return text

    async def read_skill_file(self, skill: Skill, uri: str) -> bytes:
        """Reads a file of a skill, held against the skill's entry likewise."""
        link, json = self._connected, _core.to_json(skill.wire)
        data: bytes = await self._made(lambda future: _core.read_skill(link, json, uri, future))
        return data

    async def read_directory(self, uri: str) -> list[_results.Resource]:
        """What lies directly in a folder of a skill; folders are of the type `inode/directory`."""
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.read_directory(link, uri, future))
        return [_results.Resource(wire) for wire in wires]

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
    ) -> AsyncIterator[Listening]:
        """Has the server tell of changes, through `on_list_changed` and `on_resource_updated`, while
        the block runs. Before 2026-07-28 servers tell of lists without being asked, and of
        resources by `subscribe`.

        Raises:
            Unsupported: The revision in force has no `subscriptions/listen`.
        """
        link = self._connected

        def begin(future: Future[_core.Stream]) -> int:
            return link.listen(tools, prompts, resources, list(uris), future)

        stream = await self._made(begin)
        listening = Listening(self._loop.create_future())
        number = stream.attend(link, listening.end)
        try:
            yield listening
        finally:
            link.cancel(number, None)
            if not listening.end.done():
                listening.end.set_result(None)

    async def set_log_level(self, level: str) -> None:
        """Asks for log messages of this level and up, until the connection ends. From 2026-07-28 on
        it goes along with each `call_tool`, `start_tool`, `read_resource`, `get_prompt`, `complete`,
        `ping` and `request`, and the server logs only for those."""
        is_settled: bool = await self._made(lambda future: self._connected.set_log_level(level, future))
        if not is_settled:
            self._meta[_LOG_LEVEL] = level

    def set_roots(self, roots: Iterable[Root | str]) -> None:
        """Replaces the roots that the server may see, and tells it. The client must have been
        made with roots."""
        self._connected.set_roots(pairs(roots))
