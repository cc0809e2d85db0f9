"""A pytest plugin under which tests of the SDK's function tools test this package: it replaces the names that they import."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Generic, Union, get_args, get_origin

import mcp
import mcp.server.mcpserver as mcpserver
import mcp.server.mcpserver.tools
import mcp.server.mcpserver.tools.base
import mcp.server.mcpserver.utilities.func_metadata as func_metadatas
import mcp_types
from mcp.server.context import LifespanContextT, RequestT
from mcp.server.mcpserver.exceptions import InvalidSignature, ToolError
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import WithJsonSchema
from typing_extensions import deprecated

import mcpbolt
from mcpbolt._hints import UNIONS, bare
from mcpbolt._types import parsed
from mcpbolt.testing import client
from translate import TYPES, InProcess, Types, blocks, function_of, meta, own

logger = logging.getLogger(__name__)


class FaceContext(Generic[LifespanContextT, RequestT]):
    def __init__(self, context: mcpbolt.Context | None = None) -> None:
        self.context = context


_TYPES: Types = {**TYPES, FaceContext: mcpbolt.Context, mcpserver.Image: mcpbolt.Image, mcpserver.Audio: mcpbolt.Audio}


def _given(value: Any) -> Any:
    return FaceContext(value) if isinstance(value, mcpbolt.Context) else value


@contextmanager
def _around() -> Iterator[None]:
    try:
        yield
    except MCPError as error:
        raise mcpbolt.ProtocolError(error.error.code, error.error.message, error.error.data) from error


def _spread(block: mcp_types.ContentBlock) -> mcp_types.ContentBlock:
    """The SDK writes objects on lines of their own."""
    if isinstance(block, mcp_types.TextContent) and block.text.startswith("{"):
        block.text = json.dumps(json.loads(block.text), indent=2, ensure_ascii=False)
    return block


def _hint(parameter: inspect.Parameter, hint: Any) -> Any:
    """The SDK shows a parameter without a hint as a string, and takes any value for it. A string in `Annotated` says nothing
    there; here it is the description."""
    if hint is None:
        return Annotated[Any, WithJsonSchema({"title": parameter.name, "type": "string"})]
    kind, notes = bare(hint)
    said = tuple(note for note in notes if not isinstance(note, str))
    return Annotated[(kind, *said)] if said else kind


def _is_question(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, mcp_types.InputRequiredResult)


def _unasked(hint: Any) -> Any:
    """A return hint without the results that ask the client: a function of this package awaits `context.elicit`."""
    if _is_question(hint):
        return mcpbolt.ToolResult
    arms = [one for one in get_args(hint) if not _is_question(one)] if get_origin(hint) in UNIONS else []
    if len(arms) == len(get_args(hint)) or get_origin(hint) not in UNIONS:
        return hint
    return Union[tuple(arms)] if arms else mcpbolt.ToolResult


def titled(schema: Any, title: str | None = None) -> Any:
    """The schema with the titles that repeat the names of fields and classes, which this package leaves out."""
    if isinstance(schema, list):
        return [titled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: titled(one) for key, one in schema.items() if key not in ("properties", "$defs")}
    if "properties" in schema:
        made["properties"] = {name: titled(one, name.replace("_", " ").title()) for name, one in schema["properties"].items()}
    if "$defs" in schema:
        made["$defs"] = {name: titled(one, name) for name, one in schema["$defs"].items()}
    return made if title is None or "$ref" in made else {"title": title, **made}


class Arguments:
    """The arguments that a function gets."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        return self.values[name]

    def model_dump(self) -> dict[str, Any]:
        return self.values

    model_dump_one_level = model_dump


class ArgModel:
    """What the SDK asks the model of a function's arguments."""

    def __init__(self, tool: FaceTool) -> None:
        self.tool = tool
        self.model_fields = tool.parameters["properties"]

    def model_json_schema(self, **_: Any) -> dict[str, Any]:
        return self.tool.parameters

    def model_validate(self, arguments: dict[str, Any]) -> Arguments:
        return Arguments(self.tool.taken(arguments))


class FaceMetadata:
    """A function's arguments and results. One that is made by hand has no function, and no hint."""

    def __init__(
        self, arg_model: Any, output_schema: Any = None, output_model: Any = None, wrap_output: bool = False, hint: Any = None
    ) -> None:
        self.arg_model, self.output_schema, self.output_model, self.wrap_output = arg_model, output_schema, output_model, wrap_output
        self.hints = {output_model: hint}

    def validate_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        taken: dict[str, Any] = self.arg_model.tool.taken(arguments)
        return taken

    def pre_parse_json(self, arguments: dict[str, Any]) -> dict[str, Any]:
        taken = self.arg_model.tool.entry.prepare.__self__
        return parsed(arguments, taken._read)

    async def call_fn(self, fn: Any, fn_is_async: bool, arguments: Any, arguments_to_pass_directly: Any = None) -> Any:
        """Calls the tool: a function is called by nothing else."""
        tool = FaceTool(fn, "function", skip=arguments_to_pass_directly or {})
        return await tool.run(arguments)

    @deprecated("use validate_arguments() and call_fn() instead of call_fn_with_arg_validation()", category=MCPDeprecationWarning)
    async def call_fn_with_arg_validation(
        self, fn: Any, fn_is_async: bool, arguments_to_validate: Any, arguments_to_pass_directly: Any, pre_validated: Any = None
    ) -> Any:
        if pre_validated is None:
            self.validate_arguments(arguments_to_validate)
        given = arguments_to_validate if pre_validated is None else pre_validated
        return await self.call_fn(fn, fn_is_async, given, arguments_to_pass_directly)

    def convert_result(self, value: Any) -> Any:
        """What a client gets if a function with this return hint returns the value."""
        if isinstance(value, mcp_types.InputRequiredResult):
            return value  # asks the client, and is no result

        def function() -> Any:
            return value

        function.__annotations__ = {"return": self.hints.get(self.output_model) or self.output_model}
        tool = FaceTool(function, structured_output=None if self.output_schema is not None else False)
        try:
            return tool.called({})
        except MCPError as told:
            # The client is told in words; this raises what they were made of.
            try:
                tool.entry.lower(own(value))
            except mcpbolt.ProtocolError as error:
                raise error.__cause__ or error
            raise ValueError(str(told)) from told


class FaceTool:
    """A tool of a server of its own, until a manager offers it."""

    def __init__(
        self,
        fn: Any,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: Any = None,
        icons: Any = None,
        meta: Any = None,
        structured_output: bool | None = None,
        skip: Mapping[str, Any] = {},
        **_: Any,
    ) -> None:
        self.returned: Any = None
        if name is None and fn.__name__ == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")

        def hint_of(parameter: inspect.Parameter, hint: Any) -> Any:
            if parameter.name in skip:
                return Annotated[Any, mcpbolt.Depends(lambda: skip[parameter.name])]
            return _hint(parameter, hint)

        self.function = function_of(fn, _TYPES, _given, self._made, hint_of, _around)
        hints = self.function.__annotations__
        if "return" in hints:
            hints["return"] = _unasked(hints["return"])
        self.options: dict[str, Any] = {"name": name, "title": title, "description": description, "meta": meta}
        self.options["annotations"] = annotations and annotations.model_dump(by_alias=True, exclude_none=True)
        self.options["icons"] = [one.model_dump(by_alias=True, exclude_none=True) for one in icons or ()]
        self.options["output_schema"] = structured_output
        self.offer(mcpbolt.Server("tool", json_strings=True))
        self.fn_metadata = FaceMetadata(ArgModel(self), self.output_schema, self._output_model(), self.is_wrapped, hints.get("return"))

    @classmethod
    def from_function(cls, fn: Any, **options: Any) -> FaceTool:
        return cls(fn, **options)

    def offer(self, server: mcpbolt.Server) -> None:
        try:
            server.tool(**self.options)(self.function)
        except TypeError as error:
            raise InvalidSignature(str(error).replace("ToolResult", "CallToolResult")) from error
        self.server, self.entry = server, server._entries[-1]
        self.is_async, self.context_kwarg = self.entry.is_async, self.entry.context
        with client(server) as test:
            *_, listed = test.list_tools()
        self.shown = mcp_types.Tool.model_validate(listed.wire)
        for name in ("name", "title", "annotations", "icons", "meta"):
            setattr(self, name, getattr(self.shown, name))
        self.description = self.shown.description or ""
        # The SDK ignores arguments that the function does not take.
        taken = {key: one for key, one in listed.input_schema.items() if key != "additionalProperties"}
        self.parameters = self.shown.input_schema = titled(taken, f"{self.function.__name__}Arguments")
        self.is_wrapped = list((listed.output_schema or {}).get("properties", ())) == ["result"]
        model = self._output_model()
        ending = f"{self.function.__name__}{'' if self.is_wrapped else 'Dict'}Output"
        self.output_schema = self.shown.output_schema = listed.output_schema and titled(
            listed.output_schema, getattr(model, "__name__", ending) if model not in (None, dict) else ending
        )

    def _output_model(self) -> Any:
        """The class of the structured content, if it is not wrapped."""
        kind, notes = bare(self.function.__annotations__.get("return"))
        kind = notes[0] if kind is mcpbolt.ToolResult and notes else kind
        own = None if self.is_wrapped or self.shown.output_schema is None else get_origin(kind) or kind
        return next((theirs for theirs, one in TYPES.items() if one is own), own)

    def _made(self, value: Any) -> Any:
        self.returned = value
        return own(value)

    def taken(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the function gets."""
        assert self.entry.prepare is not None
        try:
            taken: dict[str, Any] = self.entry.prepare(arguments)
        except mcpbolt.InvalidArguments as error:
            assert error.__cause__ is not None
            raise error.__cause__
        return taken

    def called(self, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        with client(self.server, revision="2025-11-25") as test:
            try:
                result = test.call_tool(self.name, arguments)
            except mcpbolt.PeerError as error:
                raise MCPError(error.code, error.message, error.data) from error
        content = blocks(result.wire["content"])
        content = [_spread(one) for one in content] if result.structured is not None else content
        made = mcp_types.CallToolResult(content=content, structured_content=result.structured, is_error=result.is_error)
        made.meta = meta(result)
        return made

    async def run(self, arguments: dict[str, Any], context: Any = None, convert_result: bool = False) -> Any:
        self.returned = None
        try:
            result = self.called(arguments)
        except MCPError as error:
            raise ToolError(f"Error executing tool {self.name}: {error}") from error
        if result.is_error and self.returned is None:
            raise ToolError(f"Error executing tool {self.name}: {result.content[0].text}")  # type: ignore[union-attr]
        return result if convert_result else self.returned


class FaceManager:
    """The tools of a server."""

    def __init__(self, warn_on_duplicate_tools: bool = True, *, tools: list[FaceTool] | None = None) -> None:
        self.warn_on_duplicate_tools = warn_on_duplicate_tools
        self.server = mcpbolt.Server("tools", json_strings=True)
        self.made: dict[str, FaceTool] = {}
        for one in tools or ():
            self._add(one)

    def _add(self, tool: FaceTool) -> FaceTool:
        entries = [*self.server._entries]
        try:
            tool.offer(self.server)
        except ValueError as error:
            if tool.name not in self.made:
                raise InvalidSignature(str(error)) from error
            # The SDK warns of a second tool of a name, and keeps the first.
            self.server._entries = entries
            if self.warn_on_duplicate_tools:
                logger.warning(f"Tool already exists: {tool.name}")
        return self.made.setdefault(tool.name, tool)

    def add_tool(self, fn: Any, **options: Any) -> FaceTool:
        return self._add(FaceTool(fn, **options))

    def list_tools(self) -> list[FaceTool]:
        with client(self.server) as test:
            with suppress(mcpbolt.Unsupported):
                return [self.made[one.name] for one in test.list_tools()]
        return []

    def get_tool(self, name: str) -> FaceTool | None:
        return next((one for one in self.list_tools() if one.name == name), None)

    def remove_tool(self, name: str) -> None:
        try:
            self.server.remove_tool(name)
        except LookupError as error:
            raise ToolError(f"Unknown tool: {name}") from error
        del self.made[name]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None, convert_result: bool = False) -> Any:
        if (tool := self.get_tool(name)) is None:
            raise ToolError(f"Unknown tool: {name}")
        return await tool.run(arguments, context, convert_result)


class FaceServer:
    """An `MCPServer` that has tools."""

    def __init__(self, name: str = "server", **_: Any) -> None:
        self._tool_manager = FaceManager()
        self.add_tool, self.remove_tool = self._tool_manager.add_tool, self._tool_manager.remove_tool

    def tool(self, name: str | None = None, **options: Any) -> Any:
        if callable(name):
            raise TypeError("The @tool decorator was used incorrectly. Did you forget to call it? Use @tool() instead of @tool")

        def add(function: Any) -> Any:
            self.add_tool(function, name=name, **options)
            return function

        return add

    async def list_tools(self) -> list[mcp_types.Tool]:
        return [one.shown for one in self._tool_manager.list_tools()]


class FaceClient(InProcess):
    server: FaceServer

    async def list_tools(self) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=await self.server.list_tools())

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> mcp_types.CallToolResult:
        return self.server._tool_manager.made[name].called(arguments or {})


mcp.Client = FaceClient  # type: ignore[misc,assignment]
mcpserver.Context = FaceContext  # type: ignore[misc,assignment]
for module in (mcp.server, mcpserver):
    module.MCPServer = FaceServer  # type: ignore[attr-defined,misc]
for module in (mcpserver.tools, mcpserver.tools.base):
    module.Tool = FaceTool  # type: ignore[misc,assignment]
mcpserver.tools.ToolManager = FaceManager  # type: ignore[misc,assignment]
func_metadatas.FuncMetadata = FaceMetadata  # type: ignore[misc,assignment]


def func_metadata(func: Any, skip_names: Any = (), structured_output: bool | None = None) -> FaceMetadata:
    """`skip_names` are parameters that the client does not give."""
    return FaceTool(func, "function", skip=dict.fromkeys(skip_names), structured_output=structured_output).fn_metadata


func_metadatas.func_metadata = func_metadata
