"""A pytest plugin under which tests of FastMCP's function tools test this package: it replaces the names that they import."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
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
from fastmcp.tools.base import ToolResult
from fastmcp.tools.function_tool import _ToolBodyError
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
        strict: bool = False,
        task: bool = False,
        execution: mcp_types.ToolExecution | None = None,
    ) -> None:
        function = function or (lambda: None)
        for one in inspect.signature(function).parameters.values():
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
                kinds = {one.VAR_POSITIONAL: "*args", one.VAR_KEYWORD: "**kwargs"}
                raise ValueError(f"Functions with {kinds.get(one.kind, 'positional-only parameters')} are not supported as tools")
        if name is None and getattr(function, "__name__", "") == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        self.fn = function
        self.server = mcpbolt.Server("tool", strict=strict)
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

        called = function_of(function, _TYPES, given, lambda value: own(value, _RESULTS))
        self.server.tool(**options, output_schema=schema)(called)  # type: ignore[call-overload]
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
        async with mcpbolt.Client(self.server) as client:
            try:
                result = await client.call_tool(self.name, arguments)
            except mcpbolt.PeerError as error:
                raise ToolError(error.message) from error
        if result.is_error and "content" not in arguments and result.text.startswith("invalid arguments"):
            raise ValidationError(result.text)
        made = ToolResult(content=blocks(result), meta=meta(result))
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

    def __init__(self, name: str = "server", *, strict_input_validation: bool = False) -> None:
        self.name = name
        self.strict = strict_input_validation
        self.tools: dict[str, FaceTool] = {}

    def tool(self, function: Any = None, **options: Any) -> Any:
        if isinstance(function, str):
            return functools.partial(self.tool, name=function, **options)
        if function is None:
            return functools.partial(self.tool, **options)
        self.add_tool(FaceTool(function, strict=self.strict, **options))
        return function

    def add_tool(self, tool: Any) -> FaceTool:
        made: FaceTool = tool if isinstance(tool, FaceTool) else FaceTool(tool, strict=self.strict)
        self.tools[made.name], made.home = made, self
        return made

    async def list_tools(self) -> list[FaceTool]:
        return list(self.tools.values())

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        result = await self.tools[name].run(arguments or {})
        if result.is_error:
            raise ToolError(result.content[0].text if result.content else "")  # type: ignore[union-attr]
        return result


class FaceClient(InProcess):
    server: FaceServer

    async def list_tools(self) -> list[mcp_types.Tool]:
        return [tool.to_mcp_tool() for tool in await self.server.list_tools()]

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *, raise_on_error: bool = True) -> Any:
        try:
            result = await self.server.tools[name].called(arguments or {})
        except ValidationError as error:
            raise ToolError(str(error)) from error
        if result.is_error and raise_on_error:
            raise ToolError(result.content[0].text if result.content else "")  # type: ignore[union-attr]
        wraps = "fastmcp" in (result.meta or {})
        data = result.structured_content
        result.__dict__["data"] = data["result"] if wraps and data else data
        return result

    async def call_tool_mcp(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        result = (await self.server.tools[name].called(arguments)).to_mcp_result()
        assert isinstance(result, mcp_types.CallToolResult)
        return result


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
