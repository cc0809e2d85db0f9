"""A pytest plugin under which tests of FastMCP's function tools test this package: it replaces the names that they import."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from types import ModuleType
from typing import Any

import fastmcp
import fastmcp.client
import fastmcp.tools
import fastmcp.tools.base
import fastmcp.utilities.docstring_parsing as docstrings
import mcp_types
import pydantic
from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult
from fastmcp.tools.function_tool import _ToolBodyError
from fastmcp.utilities.json_schema import dereference_refs
from fastmcp.utilities.types import Audio, File, Image, NotSet

import mcpbolt
from mcpbolt._docstring import of_parameters
from mcpbolt.testing import client
from translate import TYPES, InProcess, Types, blocks, function_of, meta, own

_RESULTS = (ToolResult, mcp_types.CallToolResult)
_TYPES: Types = {**TYPES, ToolResult: mcpbolt.ToolResult, Image: mcpbolt.Image, Audio: mcpbolt.Audio, File: mcpbolt.EmbeddedResource}


class Request:
    """A context, with the members of FastMCP's that the tests use."""

    request_id = "1"

    def __init__(self, context: mcpbolt.Context, server: FaceServer | None) -> None:
        self.context, self.fastmcp = context, server

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)


@contextmanager
def _around() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise mcpbolt.InvalidArguments(str(error)) from error
    except ToolError as error:
        raise mcpbolt.ToolError(str(error), log_level=error.log_level) from error


def _layer(middleware: Middleware, home: FaceServer) -> Any:
    """A middleware of FastMCP as one of this package."""

    async def around(call: mcpbolt.Call, following: mcpbolt.Next) -> Any:
        if call.method != "tools/call":
            return await following(call)

        async def call_next(_: Any) -> ToolResult:
            made = await following(call)
            content = blocks([one.wire() for one in made.content or ()])
            return ToolResult(content, made.structured, made.meta, made.is_error)

        message = mcp_types.CallToolRequestParams(name=call.name or "", arguments=dict(call.arguments))
        context: Any = Request(call.context, home)
        with _around():
            return own(await middleware(MiddlewareContext(message=message, fastmcp_context=context, method=call.method), call_next), _RESULTS)

    return around


def server_of(strict: bool = False, mask_error_details: bool = False) -> mcpbolt.Server:
    """A server with the options and the log that FastMCP has by default."""
    made = mcpbolt.Server("tool", strict=strict, mask_error_details=mask_error_details, serialize_by_alias=None)
    made._settings.failed.logger = "fastmcp.server.server"
    return made


class FaceTool:
    """A tool of a server of its own."""

    def __init__(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        parameters: Any = None,
        output_schema: Any = NotSet,
        annotations: Any = None,
        meta: Any = None,
        task: bool = False,
        execution: mcp_types.ToolExecution | None = None,
        **server: Any,
    ) -> None:
        function = function or (lambda: None)
        self.fn = function
        self.server = server_of(**server)
        schema = None if output_schema is NotSet else output_schema or False
        hints = annotations.model_dump(by_alias=True, exclude_none=True) if hasattr(annotations, "model_dump") else annotations
        options = {"name": name, "title": title, "description": description, "annotations": hints, "meta": meta}
        support = execution.task_support if execution else "optional" if task else "forbidden"
        options |= {"input_schema": parameters, "task": support}
        self.failures: list[BaseException] = []
        self.server.on_error(lambda error, _: self.failures.append(error))
        self.home: FaceServer | None = None

        def given(value: Any) -> Any:
            return Request(value, self.home) if isinstance(value, mcpbolt.Context) else value

        called = function_of(function, _TYPES, given, lambda value: own(value, _RESULTS), around=_around)
        try:
            self.server.tool(**options, output_schema=schema)(called)  # type: ignore[call-overload]
        except TypeError as error:
            raise ValueError(str(error)) from error
        (entry,) = self.server._entries
        self.entry = entry
        self.definition = entry.definition
        self.annotations, self.meta, self.title = annotations, meta, title
        self.name, self.description = entry.name, entry.description
        self.parameters = self.definition["inputSchema"]
        self.output_schema = self.definition.get("outputSchema")
        returned = getattr(entry.lower, "__self__", None)
        if returned is not None and returned.wraps:
            self.output_schema = {**self.definition["outputSchema"], "x-fastmcp-wrap-result": True}

    @classmethod
    def from_function(cls, fn: Any, **options: Any) -> FaceTool:
        return cls(fn, **options)

    def convert_result(self, value: Any) -> ToolResult:
        """What a client gets if the function returns the value."""
        return asyncio.run(FaceTool(lambda: value, name=self.name).called({}))

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result = await self.called(arguments)
        if self.failures and isinstance(self.failures[-1], pydantic.ValidationError):
            raise _ToolBodyError(str(self.failures[-1])) from self.failures[-1]
        return result

    async def called(self, arguments: dict[str, Any]) -> ToolResult:
        result = await self.answer(arguments)
        if result.is_error and result.content and "content" not in arguments:
            text = getattr(result.content[0], "text", "")
            if text.startswith("invalid arguments"):
                raise ValidationError(text)
        return result

    async def answer(self, arguments: dict[str, Any]) -> ToolResult:
        async with mcpbolt.Client(self.server) as client:
            try:
                result = await client.call_tool(self.name, arguments)
            except mcpbolt.PeerError as error:
                raise ToolError(error.message) from error
        made = ToolResult(content=blocks(result.wire["content"]), meta=meta(result))
        made.structured_content, made.is_error = result.structured, result.is_error
        if (self.output_schema or {}).get("x-fastmcp-wrap-result"):
            made.meta = {**(made.meta or {}), "fastmcp": {"wrap_result": True}}
        elif self.output_schema is None and not isinstance(made.structured_content, dict):
            # A value that is no object is structured content from 2026-07-28 on.
            made.structured_content = None
        return made

    def model_dump(self, *, exclude_none: bool, exclude: set[str] = set()) -> dict[str, Any]:
        task = {"mode": "forbidden", "poll_interval": timedelta(seconds=5)}
        made = {"name": self.name, "description": self.description, "tags": set(), "parameters": self.parameters, "fn": self.fn}
        made |= {"output_schema": self.output_schema, "task_config": task, "run_in_thread": True}
        return {name: one for name, one in made.items() if one is not None and name not in exclude}

    def to_mcp_tool(self, execution: mcp_types.ToolExecution | None = None) -> mcp_types.Tool:
        with client(self.server, revision="2025-11-25") as test:
            (tool,) = test.list_tools()
        shown = mcp_types.Tool.model_validate({**self.definition, "execution": tool.wire.get("execution")})
        return shown.model_copy(update={"execution": execution}) if execution else shown


class FaceServer:
    """The tools of a `FastMCP`."""

    def __init__(
        self,
        name: str = "server",
        *,
        strict_input_validation: bool = False,
        mask_error_details: bool = False,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        self.name = name
        self.options = {"strict": strict_input_validation, "mask_error_details": mask_error_details}
        self.layers = [*middleware]
        self.tools: dict[str, FaceTool] = {}

    def tool(self, function: Any = None, **options: Any) -> Any:
        if isinstance(function, str):
            return functools.partial(self.tool, name=function, **options)
        if function is None:
            return functools.partial(self.tool, **options)
        self.add_tool(FaceTool(function, **self.options, **options))
        return function

    def add_tool(self, tool: Any) -> FaceTool:
        made: FaceTool = tool if isinstance(tool, FaceTool) else FaceTool(tool, **self.options)
        self.tools[made.name], made.home = made, self
        for one in self.layers:
            made.server.middleware(_layer(one, self))
        return made

    def add_middleware(self, middleware: Middleware) -> None:
        self.layers.append(middleware)
        for tool in self.tools.values():
            tool.server.middleware(_layer(middleware, self))

    def mount(self, server: FaceServer, namespace: str) -> None:
        for tool in server.tools.values():
            made = copy(tool)
            made.name, made.server = f"{namespace}_{tool.name}", server_of(**self.options)
            made.server.mount(namespace, tool.server)
            self.add_tool(made)

    async def list_tools(self) -> list[FaceTool]:
        return list(self.tools.values())

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        result = await self.tools[name].called(arguments or {})
        if result.is_error:
            raise ToolError(result.content[0].text if result.content else "")  # type: ignore[union-attr]
        return result


class FaceClient(InProcess):
    server: FaceServer

    async def list_tools(self) -> list[mcp_types.Tool]:
        tools = [tool.to_mcp_tool() for tool in await self.server.list_tools()]
        for tool in tools:  # without references, as FastMCP sends schemas
            tool.output_schema = tool.output_schema and dereference_refs(tool.output_schema)
        return tools

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *, raise_on_error: bool = True) -> Any:
        result = await self.server.tools[name].answer(arguments or {})
        if result.is_error and raise_on_error:
            raise ToolError(result.content[0].text if result.content else "")  # type: ignore[union-attr]
        wraps = "fastmcp" in (result.meta or {})
        data = result.structured_content
        result.__dict__["data"] = data["result"] if wraps and data else data
        return result

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        result = await self.server.tools[name].answer(arguments)
        made = mcp_types.CallToolResult(content=result.content, structured_content=result.structured_content)
        return made.model_copy(update={"is_error": result.is_error, "meta": result.meta})


def coerce_task_arguments(tool: FaceTool, arguments: dict[str, Any]) -> Any:
    """The arguments of a task are those of a call."""
    try:
        return tool.entry.prepare(arguments)  # type: ignore[misc]
    except mcpbolt.InvalidArguments as error:
        raise ValidationError(str(error)) from error


components = ModuleType("fastmcp_tasks.components")
components.coerce_task_arguments = coerce_task_arguments  # type: ignore[attr-defined]
sys.modules |= {"fastmcp_tasks": ModuleType("fastmcp_tasks"), components.__name__: components}

_parsed = docstrings.parse_docstring


def parse_docstring(function: Any) -> docstrings.ParsedDocstring:
    """The description is FastMCP's: this package shows all of the docstring."""
    return docstrings.ParsedDocstring(_parsed(function).description, of_parameters(function))


docstrings.parse_docstring = parse_docstring
for module in (fastmcp, fastmcp.client):
    module.Client = FaceClient  # type: ignore[attr-defined]
fastmcp.FastMCP = FaceServer  # type: ignore[attr-defined,misc]
fastmcp.Context = mcpbolt.Context  # type: ignore[attr-defined,misc]
fastmcp.tools.base.Tool = fastmcp.tools.Tool = FaceTool  # type: ignore[attr-defined,misc]
