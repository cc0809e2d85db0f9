"""Tools of an `MCPServer`, answered by the engine: validated, called and converted as its kernel does it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedResourceError, UnexpectedToolError
from mcp.server.mcpserver.resolve import returns_input_required
from mcp.server.mcpserver.tools.base import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from mcp_types.methods import serialize_server_result
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from .._errors import HandBack, ProtocolError

logger = logging.getLogger("mcp.server.mcpserver.server")

_HANDLERS = {
    "tools/call": "_handle_call_tool",
    "tools/list": "_handle_list_tools",
    "resources/list": "_handle_list_resources",
    "resources/templates/list": "_handle_list_resource_templates",
    "prompts/list": "_handle_list_prompts",
}
_LISTERS = {
    "tools/list": "list_tools",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
    "prompts/list": "list_prompts",
}


def registries(server: MCPServer[Any]) -> list[tuple[object, str]]:
    """Where things are added and removed."""
    resources = server._resource_manager
    return [
        (server._tool_manager, "_tools"),
        (resources, "_resources"),
        (resources, "_templates"),
        (server._prompt_manager, "_prompts"),
    ]


def _is_own(server: MCPServer[Any], method: str, *names: str) -> bool:
    """Whether requests of that method are answered as the class `MCPServer` has it."""
    entry = server._lowlevel_server.get_request_handler(method)
    handler = _HANDLERS[method]
    same = all(getattr(type(server), name) is getattr(MCPServer, name) for name in (handler, *names))
    return same and entry is not None and entry.handler == getattr(server, handler)


def lists(server: MCPServer[Any], method: str) -> bool:
    """Whether a list depends on nothing but what is registered."""
    return _is_own(server, method, _LISTERS[method])


def plan(server: MCPServer[Any]) -> list[Any]:
    from ._natives import Planned

    reason = None
    if not _is_own(server, "tools/call", "call_tool"):
        reason = "the handler of tools/call is another"
    tools = server._tool_manager._tools.items()

    def planned(name: str, tool: Tool) -> Planned:
        part = tool if reason is None else None
        return Planned(f"tool {name}", "tools/call", name, part, lambda: reason or _tool(tool))

    return [planned(name, tool) for name, tool in tools]


def _tool(tool: Tool) -> Any:
    """How the engine answers calls of a tool, or why it does not."""
    from ._natives import Native

    if type(tool) is not Tool:
        return f"it is a {type(tool).__name__}"
    if tool.context_kwarg is not None:
        return f"its parameter {tool.context_kwarg!r} is the kernel's context"
    if tool.resolved_params:
        return "resolvers fill its parameters"
    returned = inspect.signature(tool.fn).return_annotation
    if returned in (inspect.Signature.empty, Any, object, "Any", "object") or returns_input_required(tool.fn):
        return "it may give back an InputRequiredResult, which the kernel seals"
    arguments_of = _arguments(tool.fn_metadata)
    result_of = _result(tool.fn_metadata)
    function = tool.fn

    if tool.is_async:

        async def call(arguments: bytes, revision: str) -> bytes:
            given = arguments_of(arguments)
            try:
                return result_of(await function(**given), revision)
            except Exception as error:
                return _failed(tool, error)

        return Native(call, "task")

    def call_plain(arguments: bytes, revision: str) -> bytes:
        given = arguments_of(arguments)
        try:
            return result_of(function(**given), revision)
        except Exception as error:
            return _failed(tool, error)

    return Native(call_plain, "worker")


STRAIGHT = (str, int, float, bool)


def _arguments(metadata: Any) -> Callable[[bytes], dict[str, Any]]:
    """From a JSON object to the function's arguments. What does not pass is handed back, so that the kernel
    words the refusal."""
    fields = metadata.arg_model.model_fields.values()
    if all(field.annotation in STRAIGHT and not field.alias for field in fields):
        # Strings for these are never parsed as JSON first, or to no effect.
        validate = metadata.arg_model.__pydantic_validator__.validate_json

        def straight(arguments: bytes) -> dict[str, Any]:
            try:
                given: dict[str, Any] = validate(arguments).__dict__
                return given
            except Exception:
                raise HandBack from None

        return straight

    def parsed(arguments: bytes) -> dict[str, Any]:
        try:
            given: dict[str, Any] = metadata.validate_arguments(from_json(arguments))
            return given
        except Exception:
            raise HandBack from None

    return parsed


def _result(metadata: Any) -> Callable[[Any, str], bytes]:
    """From what the function gave back to a result, a JSON object."""
    model = metadata.output_model if metadata.output_schema is not None else None
    is_text = model is None
    kind: type | None = None
    if model is not None and metadata.wrap_output:
        fields = getattr(model, "model_fields", {})
        if fields.keys() == {"result"} and not fields["result"].metadata:
            kind = fields["result"].annotation

    def result(value: Any, revision: str) -> bytes:
        its = type(value)
        if its is str:
            text = value
        elif its is int:
            text = str(value)
        elif its is bool:
            text = "true" if value else "false"
        else:
            return _converted(metadata, value, revision)
        content = [{"type": "text", "text": text}]
        if is_text:
            return to_json({"content": content, "isError": False})
        if its is kind:
            return to_json({"content": content, "structuredContent": {"result": value}, "isError": False})
        return _converted(metadata, value, revision)

    return result


class Unsendable(Exception):
    """What the tool gave back is no result of its revision."""


def _converted(metadata: Any, value: Any, revision: str) -> bytes:
    made = metadata.convert_result(value).model_dump(by_alias=True, mode="json", exclude_none=True)
    try:
        return to_json(serialize_server_result("tools/call", revision, made))
    except ValidationError as error:
        raise Unsendable from error


def _failed(tool: Tool, error: Exception) -> bytes:
    """What the kernel tells of an exception, and logs: `Tool.run` and `MCPServer._handle_call_tool`."""
    if isinstance(error, MCPError):
        told = error.error
        raise ProtocolError(told.code, told.message, told.data)
    if isinstance(error, Unsendable):
        logger.error("handler for 'tools/call' returned an invalid result", exc_info=error.__cause__)
        raise ProtocolError(INTERNAL_ERROR, "Handler returned an invalid result")
    text = f"Error executing tool {tool.name}"
    is_nested = isinstance(error, (UnexpectedToolError, UnexpectedResourceError))
    is_meant = isinstance(error, (ToolError, ResourceError))
    if is_meant:
        text = f"{text}: {error}"
    if is_meant and not is_nested:
        logger.info("Tool %r failed: %r", tool.name, text)
    else:
        logger.error("Tool %r raised an unexpected exception", tool.name, exc_info=error)
    return to_json({"content": [{"type": "text", "text": text}], "isError": True})
