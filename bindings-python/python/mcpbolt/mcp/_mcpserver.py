"""Plans how the engine answers an `MCPServer`, and answers its tools: validates, calls and converts as the SDK's
kernel does."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError, UnexpectedResourceError, UnexpectedToolError
from mcp.server.mcpserver.prompts import Prompt, PromptManager
from mcp.server.mcpserver.resources import Resource, ResourceManager, ResourceTemplate
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, InputRequiredResult
from pydantic_core import from_json, to_json

from .._errors import HandBack, ProtocolError
from . import _contents as contents, _private as private
from ._handled import Handled, Handler, LazyContext, Result, by_handler
from ._outgoing import Unsendable, sent
from ._plan import STRAIGHT, Direct, Native, Planned, Straight, asks_its_thread, plain_parameters

logger = logging.getLogger("mcp.server.mcpserver.server")

_USES = {
    "tools/call": ["call_tool"],
    "resources/read": ["read_resource"],
    "prompts/get": ["get_prompt"],
}
_LISTERS = {
    "tools/list": "list_tools",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
    "prompts/list": "list_prompts",
}


def _is_own(server: MCPServer[Any], method: str, *names: str) -> bool:
    """Whether requests of that method are answered by the unmodified code of `MCPServer`."""
    entry = private.lowlevel_of(server).get_request_handler(method)
    handler = private.SDK_HANDLERS[method]
    same = all(getattr(type(server), name) is getattr(MCPServer, name) for name in (handler, *names))
    return same and entry is not None and entry.handler == getattr(server, handler)


registries = private.registries


def lists(server: MCPServer[Any], method: str) -> bool:
    """Whether a list depends only on the registered parts."""
    return _is_own(server, method, _LISTERS[method])


def plan(server: MCPServer[Any]) -> list[Any]:
    tools, resources, prompts = private.managers(server)
    made: list[Planned] = []

    def add(method: str, what: str, owner: Any, kind: type[Any], parts: dict[str, Any], how: Callable[..., Any]) -> None:
        is_own = _is_own(server, method, *_USES[method]) and type(owner) is kind
        reason = None if is_own else f"the handler of {method} is another"
        for name, part in parts.items():
            key = None if what == "template" else name
            answered = partial(_unless, reason, how, part)
            made.append(Planned(f"{what} {name}", method, key, None if reason else part, answered))

    def template(_: ResourceTemplate) -> Direct:
        return Direct(by_handler)

    def resource(one: Resource) -> Native:
        return Native(contents.resource(server, one), "task")

    add("tools/call", "tool", tools, ToolManager, private.tools(server), lambda one: _tool(server, one))
    add("resources/read", "resource", resources, ResourceManager, private.resources(server), resource)
    add("resources/read", "template", resources, ResourceManager, private.templates(server), template)
    add("prompts/get", "prompt", prompts, PromptManager, private.prompts(server), _prompt)
    return made


def _unless(reason: str | None, how: Callable[[Any], Native | Direct], part: Any) -> Native | Direct | str:
    return reason or how(part)


def _prompt(prompt: Prompt) -> Native | Direct:
    if type(prompt) is not Prompt or prompt.context_kwarg is not None or contents.unsure(prompt.fn):
        return Direct(by_handler)
    return Native(contents.prompt(prompt), "task")


def _tool(server: MCPServer[Any], tool: Tool) -> Native | Direct:
    """Decides how the engine answers calls of a tool."""
    if type(tool) is not Tool or tool.resolved_params:
        return Direct(by_handler)
    if tool.context_kwarg is not None or contents.unsure(tool.fn) or asks_its_thread(tool.fn):
        return Direct(_with_context(server, tool))
    arguments_of = _arguments(tool.fn_metadata)
    result_of = _result(tool.fn_metadata)
    function = tool.fn
    straight = _straight(tool, result_of)

    if tool.is_async:

        async def call(arguments: bytes, revision: str) -> bytes:
            given = arguments_of(arguments)
            try:
                return result_of(await function(**given), revision)
            except Exception as error:
                return _failed(tool, error)

        return Native(call, "task", straight)

    def call_plain(arguments: bytes, revision: str) -> bytes:
        given = arguments_of(arguments)
        try:
            return result_of(function(**given), revision)
        except Exception as error:
            return _failed(tool, error)

    return Native(call_plain, "worker", straight)


def _with_context(server: MCPServer[Any], tool: Tool) -> Handler:
    """Makes a handler for a tool that takes the context, or that may ask the client by its return value."""
    metadata, function, name = tool.fn_metadata, tool.fn, tool.context_kwarg
    result_of = _result(metadata)

    async def call(handled: Handled) -> Result:
        try:
            given = metadata.validate_arguments(handled.params.get("arguments") or {})
        except Exception:
            raise HandBack from None
        if name is not None:
            given[name] = LazyContext(handled, server)
        try:
            value = await metadata.call_fn(function, tool.is_async, given)
            if isinstance(value, InputRequiredResult):
                return handled.whole(value)
            return result_of(value, handled.revision)
        except Exception as error:
            return _failed(tool, error)

    return call


def _straight(tool: Tool, result_of: Callable[[Any, str], bytes]) -> Straight | None:
    """Makes the description by which the engine calls a tool without a validator, if its parameters allow it."""
    metadata = tool.fn_metadata
    parameters = plain_parameters(tool.fn)
    fields = metadata.arg_model.model_fields
    if parameters is None or [one[0] for one in parameters] != [*fields]:
        return None
    for field in fields.values():
        # For missing arguments the function's own defaults apply.
        if field.annotation not in STRAIGHT or field.alias or field.metadata or field.default_factory:
            return None

    def finish(value: Any, revision: str) -> bytes:
        try:
            return result_of(value, revision)
        except Exception as error:
            return _failed(tool, error)

    wraps = _wrapped(metadata)
    if wraps is None and metadata.output_schema is not None:
        return None
    return Straight(tool.fn, parameters, wraps, None, finish, lambda error: _failed(tool, error))


def _wrapped(metadata: Any) -> str | None:
    """The type of value that becomes structured content unchanged, as the member `result`; `None` for none."""
    if metadata.output_schema is None or not metadata.wrap_output:
        return None
    fields = getattr(metadata.output_model, "model_fields", {})
    if fields.keys() != {"result"} or fields["result"].metadata:
        return None
    kind = fields["result"].annotation
    return kind.__name__ if kind in (str, int, bool) else None


def _arguments(metadata: Any) -> Callable[[bytes], dict[str, Any]]:
    """Makes a function from a JSON object to the function's arguments. Invalid arguments are handed back, so that
    the kernel makes the error."""
    fields = metadata.arg_model.model_fields.values()
    if all(field.annotation in STRAIGHT and not field.alias for field in fields):
        # For these types the SDK's extra parsing of strings as JSON never happens, or has no effect.
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
    """Makes a function from the tool's return value to a result, a JSON object."""
    is_text = metadata.output_schema is None or metadata.output_model is None
    wrapped = _wrapped(metadata)

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
        if its.__name__ == wrapped:
            return to_json({"content": content, "structuredContent": {"result": value}, "isError": False})
        return _converted(metadata, value, revision)

    return result


def _converted(metadata: Any, value: Any, revision: str) -> bytes:
    return sent("tools/call", revision, metadata.convert_result(value))


def _failed(tool: Tool, error: Exception) -> bytes:
    """Makes and logs the result for an exception as `Tool.run` and `MCPServer._handle_call_tool` do."""
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
