"""`Client`: connects to a server at an address, in a child process or in this process, and calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core, _results
from ._actions import Actions
from ._client_setup import OnProgress, RequestOptions, roots_wire
from ._content import ResourceContents, Wire
from ._event_loop import shielded
from ._questions import Root
from ._skill import Skill
from ._task import Task, TaskInfo
from ._watched import waiting

if TYPE_CHECKING:
    from ._event_loop import Future

_T = TypeVar("_T")
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Listening:
    """A subscription of a client to changes, made by `Client.listen`."""

    def __init__(self, end: Future[None]) -> None:
        self.end = end
        # Marks an exception as retrieved, so that asyncio does not warn if `ended` is never called.
        self.end.add_done_callback(lambda end: end.cancelled() or end.exception())

    async def ended(self) -> None:
        """Waits until the subscription ends.

        Raises:
            McpError: The reason, if it did not end normally.
        """
        with waiting(self.end):
            await shielded(self.end)


class Client(Actions):
    """A client of one server, connected while its `async with` block runs.

    The server is an address; a command line, started as a child process in its own process group;
    or a `Server` or a `chain.Front` of this program, connected in memory (for tests). Leaving the block closes the connection.
    A child process is shut down: its stdin is closed, then its process group gets SIGTERM, then SIGKILL.

    Args:
        server: An address (`https://example.com/mcp`, `ws://…`, `unix:/run/mcp.sock`, `tcp:localhost:7000`,
            `stdio:python server.py`), the words of a command line, a `Server`, or a `Front` of `mcpbolt.chain`.
        headers: Further headers of each request, for HTTP and WebSocket.
        auth: Credentials for HTTP and WebSocket: `Bearer`, `Basic` or `ApiKey`; or, for HTTP, `OAuth`, which logs in.
        connect_timeout: Seconds within which an address must be connected; 30 by default.
        root_certificates: A PEM file of certificates to trust in addition to the system's.
        certificate: The client certificate, for servers that ask for one: the PEM files of the certificate and its key.
        options: Further options of the transport: proxy, timeouts, limits.
        cwd: The working directory of the child.
        env: Environment variables of the child, which otherwise inherits only a few (`PATH`, `HOME`, …).
        inherit_env: Names of more variables that the child inherits.
        timeout: Seconds that a request waits unless the call says otherwise; 60 by default.
        revision: The one protocol revision to speak; any by default.
        opening: "probe" asks for the newest revision and falls back to the handshake,
            "handshake" starts with the handshake, "stateless" assumes the newest revision; "actions" speaks the
            action dialect instead of MCP: only `action` and the other `action_…` methods work then.
        profile: The dialect spoken up to 2025-11-25: "reference", "chain", "extended" and "patterns", as for a `Server`.
        on_log: Called with each log message: a dict of `level`, `data` and perhaps `logger`.
        on_list_changed: Called with "tools", "prompts" or "resources" when that list of the
            server has changed.
        on_resource_updated: Called with the URI of a changed resource that `subscribe` or `listen` named.
        on_elicitation_complete: Called with the id of an `on_elicitation_url` request once the user is done with it.
        on_notification: Called with the method and the params of any other notification.
        on_sampling: Lets servers ask the program's model: called with a `SamplingRequest`, returns
            the model's answer. A coroutine function or a plain one, like the next two.
        sampling_tools: Whether that model can use tools.
        on_elicitation: Lets servers ask the user to fill in a form: called with an
            `ElicitationRequest`, returns a dict, `False` for "declined", `None` for "cancelled".
        on_elicitation_url: Lets servers send the user to a web page: returns whether the user
            agreed. Show the whole URL and ask before opening it.
        tasks: Lets servers run calls as tasks, from 2026-07-28 on: `call_tool` waits for the task's
            result, and `start_tool` returns the task.
        check_results: Refuses results that do not conform to the revision in force, with a `BadAnswer` that names the
            member; by default some missing members are tolerated.
        extensions: Extensions that the client declares, from 2026-07-28 on: settings by name. An extension is used
            if the server declares it too: see `ServerInfo.extensions`.
        roots: The folders and files, as `file://` URIs, that servers should keep to.
        on_stderr: Called with each line that the child writes to its stderr, which otherwise
            goes to the stderr of this program.
        on_closed: Called with a `ConnectionClosed` when the connection ends before the block does.
        trace: A file that gets a line for each frame on the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
        telemetry: Makes spans and metrics of all requests and of the session with the program's OpenTelemetry, as for a `Server`. The
            server gets the place of each request in its trace.
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
        """Lists the server's tools, page by page."""
        return self._pages("tools", _results.Tool)

    async def list_tools(self) -> list[_results.Tool]:
        """Lists the server's tools, all pages. From then on, results are validated against the output schemas
        of this list. Like the other lists, it is cached for as long as the server allows, or until the
        server reports a change."""
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
        """Calls a tool. A tool that fails still returns a result: see its `is_error`.

        If the server runs the call as a task, `timeout` and `max_timeout` limit only the wait for the answer
        that says so. Cancelling this also cancels the task; in 2025-11-25 the task goes on at the server.

        Raises:
            The errors of `request`.
            BadAnswer: The result is not valid against the tool's output schema, if the tools were listed.
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
        """Calls a tool as a task, which may outlive this connection. In 2025-11-25 the client asks
        for the task; from 2026-07-28 on the server decides, if the client was made with `tasks=True`. A
        call that is answered at once returns a task that has ended.

        Args:
            ttl: Seconds that the server is asked to keep the task (2025-11-25).

        Raises:
            Unsupported: The server supports no tasks, or none for this tool (2025-11-25).
        """
        options = self._options(timeout, None, on_progress, meta)
        return Task(self, await self._call(name, arguments, options, start=True, ttl=ttl))

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        options: RequestOptions | None,
        start: bool = False,
        ttl: float | None = None,
    ) -> _core.Answer | _core.RemoteTask:
        link = self._connected
        return await self._made(lambda future: _core.call_tool(link, name, arguments or {}, future, options, start, ttl))

    def task(self, id: str) -> Task:
        """Finds a task by its id: in 2025-11-25 a task of this connection, later of any connection."""
        return Task(self, _core.RemoteTask(self._connected, id))

    async def list_tasks(self) -> list[TaskInfo]:
        """Lists the tasks of this client (2025-11-25)."""
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.list_tasks(link, future))
        return [TaskInfo(**wire) for wire in wires]

    def resource_pages(self) -> AsyncIterator[list[_results.Resource]]:
        """Lists the server's resources, page by page."""
        return self._pages("resources", _results.Resource)

    async def list_resources(self) -> list[_results.Resource]:
        """Lists the server's resources, all pages."""
        return await self._list("resources", _results.Resource)

    def resource_template_pages(self) -> AsyncIterator[list[_results.ResourceTemplate]]:
        """Lists the server's resource templates, page by page."""
        return self._pages("resource_templates", _results.ResourceTemplate)

    async def list_resource_templates(self) -> list[_results.ResourceTemplate]:
        """Lists the server's resource templates, all pages."""
        return await self._list("resource_templates", _results.ResourceTemplate)

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, meta: Mapping[str, Any] | None = None
    ) -> list[ResourceContents]:
        """Reads a resource."""
        self._offered("resources")
        return _results.contents(await self.request("resources/read", {"uri": uri}, timeout=timeout, meta=meta))

    def prompt_pages(self) -> AsyncIterator[list[_results.Prompt]]:
        """Lists the server's prompts, page by page."""
        return self._pages("prompts", _results.Prompt)

    async def list_prompts(self) -> list[_results.Prompt]:
        """Lists the server's prompts, all pages."""
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
        """Lists the server's skills, all pages (2026-07-28). Their files are not read.

        Raises:
            Unsupported: The server does not offer the skills extension.
        """
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.list_skills(link, future))
        return [Skill(wire) for wire in wires]

    async def get_skill(self, uri: str) -> Skill:
        """Gets the description of the skill whose manifest is at that URI."""
        link = self._connected
        return Skill(await self._made(lambda future: _core.get_skill(link, uri, future)))

    async def read_skill(self, skill: Skill) -> str:
        """Reads the manifest of a skill: its frontmatter, then instructions for the model.

        Raises:
            BadAnswer: Its length, digest or frontmatter differs from the skill's entry.
        """
        link, json = self._connected, _core.to_json(skill.wire)
        text: str = await self._made(lambda future: _core.read_skill(link, json, None, future))
        return text

    async def read_skill_file(self, skill: Skill, uri: str) -> bytes:
        """Reads a file of a skill, checked against the skill's entry like the manifest in `read_skill`."""
        link, json = self._connected, _core.to_json(skill.wire)
        data: bytes = await self._made(lambda future: _core.read_skill(link, json, uri, future))
        return data

    async def read_directory(self, uri: str) -> list[_results.Resource]:
        """Lists the direct contents of a folder of a skill; folders have the MIME type `inode/directory`."""
        link = self._connected
        wires: list[Wire] = await self._made(lambda future: _core.read_directory(link, uri, future))
        return [_results.Resource(wire) for wire in wires]

    async def ping(self, *, timeout: float | None = None) -> None:
        """Sends a ping and waits for the answer."""
        await self.request(self._connected.ping_method(), timeout=timeout)

    async def complete(
        self,
        reference: _results.Prompt | _results.ResourceTemplate,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> _results.Completions:
        """Completes an argument of a prompt or a template: lists the values that it may take, given its beginning.
        `context` holds the other arguments that are already decided."""
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
        """Subscribes to changes of a resource, which are reported to `on_resource_updated`."""
        await self._made(lambda future: self._connected.subscribe(uri, True, future))

    async def unsubscribe(self, uri: str) -> None:
        """Ends the subscription to a resource."""
        await self._made(lambda future: self._connected.subscribe(uri, False, future))

    @asynccontextmanager
    async def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Sequence[str] = ()
    ) -> AsyncIterator[Listening]:
        """Subscribes to changes while the block runs; they are reported to `on_list_changed` and
        `on_resource_updated`. Before 2026-07-28 servers report list changes unasked, and resources
        after `subscribe`.

        Raises:
            Unsupported: The revision in force has no `subscriptions/listen`.
        """
        link = self._connected

        def begin(future: Future[_core.Stream]) -> int:
            return _core.listen(link, tools, prompts, resources, list(uris), future)

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
        """Asks for log messages of this level and up, until the connection ends. From 2026-07-28 on the
        level is sent with each `call_tool`, `start_tool`, `read_resource`, `get_prompt`, `complete`,
        `ping` and `request`, and the server logs only for those."""
        self._has_log_level = True
        is_settled: bool = await self._made(lambda future: self._connected.set_log_level(level, future))
        if not is_settled:
            self._meta[_LOG_LEVEL] = level

    def set_roots(self, roots: Iterable[Root | str]) -> None:
        """Replaces the roots and notifies the server. The client must have been made with `roots`."""
        self._connected.set_roots(_core.to_json(roots_wire(roots)))
