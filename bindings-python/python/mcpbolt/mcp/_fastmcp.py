"""FastMCP: how it runs, and its tools answered by the engine as its kernel does it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import fastmcp.server.dependencies as dependencies
from fastmcp.exceptions import FastMCPError
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.low_level import FastMCPServerMiddleware
from fastmcp.server.middleware.dereference import DereferenceRefsMiddleware
from fastmcp.server.mixins.mcp_operations import _normalize_call_tool_result
from fastmcp.server.server import FastMCP, logger
from fastmcp.server.transforms.visibility import is_enabled
from fastmcp.tools.base import Tool
from fastmcp.tools.function_tool import FunctionTool, _wrap_body_errors
from fastmcp.utilities.exceptions import get_http_status_code, is_timeout_error
from fastmcp.utilities.types import get_cached_typeadapter
from mcp.server.mcpserver.resolve import returns_input_required
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.methods import serialize_server_result
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from .._errors import HandBack, ProtocolError
from ._mcpserver import STRAIGHT, Unsendable

_HANDLERS = {
    "tools/call": "_on_call_tool",
    "tools/list": "_on_list_tools",
    "resources/list": "_on_list_resources",
    "resources/templates/list": "_on_list_resource_templates",
    "prompts/list": "_on_list_prompts",
}
# What a function reaches the request by, besides its parameters.
_REACHES = [
    getattr(dependencies, name)
    for name in ("get_context", "get_server", "get_session", "get_http_request", "get_http_headers", "get_access_token")
    if hasattr(dependencies, name)
]


@asynccontextmanager
async def running(server: FastMCP[Any], kind: str) -> AsyncIterator[None]:
    """The server's own lifespan, and its providers'."""
    token = set_transport("stdio" if kind == "stdio" else "streamable-http")
    try:
        async with server._lifespan_manager():
            yield
    finally:
        reset_transport(token)


def middleware(server: FastMCP[Any], own: list[Any]) -> list[Any]:
    """What the program has put around its handlers. What FastMCP itself puts there touches lists alone."""
    added = [one for one in server.middleware if type(one) is not DereferenceRefsMiddleware]
    return [one for one in own if not isinstance(one, FastMCPServerMiddleware)] + added


def registries(server: FastMCP[Any]) -> list[tuple[object, str]]:
    """Where things are added and removed, and what else decides."""
    local = server._local_provider
    own = [(server, name) for name in ("middleware", "providers", "_transforms")]
    return [(local, "_components"), (local, "_transforms"), *own]


def _obstacle(server: FastMCP[Any], method: str) -> str | None:
    """Why nothing of a method is taken over."""
    entry = server._mcp_server.get_request_handler(method)
    handler = _HANDLERS[method]
    if entry is None or entry.handler != getattr(server, handler) or type(server) is not FastMCP:
        return f"the handler of {method} is another"
    if server.providers != [server._local_provider]:
        return "there are other providers than the server's own"
    if server._transforms or server._local_provider._transforms:
        return "transforms change what is offered"
    if server._extensions:
        return "extensions see each call"
    if server.strict_input_validation:
        return "arguments are validated strictly"
    if "prefab_ui" in sys.modules:
        return "results may be user interfaces"
    return None


def lists(server: FastMCP[Any], method: str) -> bool:
    """Whether a list depends on nothing but what is registered."""
    components = server._local_provider._components.values()
    return _obstacle(server, method) is None and all(getattr(one, "auth", None) is None for one in components)


def plan(server: FastMCP[Any]) -> list[Any]:
    from ._natives import Planned

    reason = _obstacle(server, "tools/call")
    tools = [one for one in server._local_provider._components.values() if isinstance(one, Tool)]
    names = [tool.name for tool in tools]

    def planned(tool: Tool) -> Planned:
        why = reason or ("it has several versions" if names.count(tool.name) > 1 else None)
        part = tool if why is None else None
        return Planned(f"tool {tool.name}", "tools/call", tool.name, part, lambda: why or _tool(server, tool))

    return [planned(tool) for tool in tools]


def _tool(server: FastMCP[Any], tool: Tool) -> Any:
    """How the engine answers calls of a tool, or why it does not."""
    from ._natives import Native

    if type(tool) is not FunctionTool:
        return f"it is a {type(tool).__name__}"
    if tool.version is not None or tool.auth is not None or tool.timeout is not None or not is_enabled(tool):
        return "it has a version, an authorization, a timeout, or is disabled"
    if tool.task_config.supports_tasks():
        return "its calls may be tasks"
    function = tool.fn
    if dependencies.without_injected_parameters(function) is not function:
        return "its parameters are filled by FastMCP"
    variables = getattr(inspect.unwrap(function), "__globals__", None)
    if variables is None or any(one in variables.values() for one in _REACHES):
        return "its module reaches for the request by get_context and its like"
    returned = tool.return_type
    if returned in (inspect.Signature.empty, Any, object, None) or returns_input_required(function):
        return "it may give back an InputRequiredResult, which the kernel seals"
    if inspect.isasyncgenfunction(function):
        return "it is an async generator"
    validated = _validated(function)
    result_of = _result(tool)

    if inspect.iscoroutinefunction(function):

        async def call(arguments: bytes, revision: str) -> bytes:
            try:
                begun = validated(arguments)
            except ValidationError:
                raise HandBack from None
            try:
                return result_of(await begun, revision)
            except Exception as error:
                return _failed(server, tool, error)

        return Native(call, "task")

    def call_plain(arguments: bytes, revision: str) -> bytes:
        try:
            value = validated(arguments)
        except ValidationError:
            # Those of the function's own come as something else.
            raise HandBack from None
        except Exception as error:
            return _failed(server, tool, error)
        try:
            return result_of(value, revision)
        except Exception as error:
            return _failed(server, tool, error)

    return Native(call_plain, "worker" if tool.run_in_thread else "inline")


def _validated(function: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Validates a JSON object as the function's arguments, and calls it."""
    adapter = get_cached_typeadapter(_wrap_body_errors(_wrap_body_errors(function, materialize_generators=True)))
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    if all(parameter.annotation in STRAIGHT for parameter in parameters):
        straight: Callable[[bytes], Any] = adapter.validator.validate_json
        return straight
    validate = adapter.validator.validate_python
    return lambda arguments: validate(from_json(arguments))


def _result(tool: FunctionTool) -> Callable[[Any, str], bytes]:
    """From what the function gave back to a result, a JSON object."""
    schema, kind = tool.output_schema, tool.return_type
    wraps = schema is not None and bool(schema.get("x-fastmcp-wrap-result"))
    straight = kind in (str, int, bool) and (schema is None or wraps)

    def result(value: Any, revision: str) -> bytes:
        its = type(value)
        if straight and its is kind:
            text = value if its is str else str(value) if its is int else "true" if value else "false"
            content = [{"type": "text", "text": text}]
            if not wraps:
                return to_json({"content": content, "isError": False})
            meta = {"fastmcp": {"wrap_result": True}}
            structured = {"result": value}
            return to_json({"_meta": meta, "content": content, "structuredContent": structured, "isError": False})
        made = _normalize_call_tool_result(tool.convert_result(value).to_mcp_result())
        dumped = made.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            return to_json(serialize_server_result("tools/call", revision, dumped))
        except ValidationError as error:
            raise Unsendable from error

    return result


def _failed(server: FastMCP[Any], tool: Tool, error: Exception) -> bytes:
    """What the kernel tells of an exception, and logs: `FastMCP.call_tool` and `_on_call_tool`."""
    if isinstance(error, Unsendable):
        logger.error("handler for 'tools/call' returned an invalid result", exc_info=error.__cause__)
        raise ProtocolError(INTERNAL_ERROR, "Handler returned an invalid result")
    begin = f"Error calling tool {tool.name!r}"
    if isinstance(error, FastMCPError):
        logger.log(error.log_level, begin, exc_info=False)
        text = str(error)
    else:
        if isinstance(error, MCPError) and error.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY:
            raise ProtocolError(error.error.code, error.error.message, error.error.data)
        status = get_http_status_code(error)
        logger.error(begin, exc_info=error if status is None else None)
        if status == 429:
            text = "Rate limited by upstream API, please retry later"
        elif is_timeout_error(error):
            text = "Upstream request timed out, please retry"
        else:
            text = begin if server._mask_error_details else f"{begin}: {error}"
    return to_json({"content": [{"type": "text", "text": text}], "isError": True})
