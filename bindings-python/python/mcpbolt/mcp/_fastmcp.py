"""Runs a FastMCP server, plans how the engine answers it, and answers its tools as FastMCP does."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import fastmcp.server.dependencies as dependencies
from fastmcp.exceptions import FastMCPError
from fastmcp.prompts.base import Prompt
from fastmcp.resources.base import Resource
from fastmcp.resources.template import ResourceTemplate
from fastmcp.server.context import Context, reset_transport, set_transport
from fastmcp.server.low_level import FastMCPServerMiddleware
from fastmcp.server.server import FastMCP, logger
from fastmcp.server.transforms.visibility import is_enabled
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.tools.function_tool import FunctionTool
from fastmcp.utilities.async_utils import is_coroutine_function
from fastmcp.utilities.exceptions import get_http_status_code, is_timeout_error
from fastmcp.utilities.types import get_cached_typeadapter
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver.resolve import returns_input_required
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from .._errors import HandBack, ProtocolError
from . import _fast_observed as observed, _private as private
from ._gate import release
from ._handled import Handled, Handler, Result, by_handler
from ._outgoing import Unsendable, sent
from ._plan import STRAIGHT, Direct, Native, Planned, Straight, asks_its_thread, names_in, plain_parameters

# Whether this is 4.0, which calls a tool's function differently; its calls go through its own handlers.
FORMER = release("fastmcp") == "4.0"
# The functions by which a tool reaches the request, besides its parameters.
_WORDS = frozenset(
    {"get_context", "get_server", "get_session", "get_http_request", "get_http_headers", "get_access_token"}
)
_REACHES = [getattr(dependencies, name) for name in sorted(_WORDS) if hasattr(dependencies, name)]


@asynccontextmanager
async def running(server: FastMCP[Any], kind: str) -> AsyncIterator[None]:
    """Enters the lifespans of the server and its providers."""
    token = set_transport("stdio" if kind == "stdio" else "streamable-http")
    try:
        async with private.lifespans(server):
            yield
    finally:
        reset_transport(token)


def options(server: FastMCP[Any], kind: str) -> InitializationOptions:
    """The options of the handshake. On stdin and stdout, 4.0 announces list changes for tools only."""
    make = private.fastmcp_lowlevel_of(server).create_initialization_options
    if kind == "stdio" and FORMER:
        made: InitializationOptions = make(NotificationOptions(tools_changed=True))
    else:
        made = make()
    return made


registries = private.fastmcp_registries


def _obstacle(server: FastMCP[Any], method: str) -> str | None:
    """Why the engine answers no request of a method; `None` if it can."""
    entry = private.fastmcp_lowlevel_of(server).get_request_handler(method)
    handler = private.FAST_HANDLERS[method]
    if entry is None or entry.handler != getattr(server, handler) or observed.overrides(server, method):
        return f"the handler of {method} is another"
    if method == "tools/call" and any(map(observed.intercepts, private.extensions(server).values())):
        return "extensions see each call"
    return None


def _particular(server: FastMCP[Any]) -> str | None:
    """Why the server's own handlers are needed; `None` if they are not."""
    if server.providers != [private.local(server)]:
        return "there are other providers than the server's own"
    if private.transforms(server):
        return "transforms change what is offered"
    if server.strict_input_validation:
        return "arguments are validated strictly"
    if "prefab_ui" in sys.modules:
        return "results may be user interfaces"
    return None


def lists(server: FastMCP[Any], method: str) -> bool:
    """Whether a list depends only on the registered parts."""
    components = private.components(server).values()
    reason = _obstacle(server, method) or _particular(server)
    return reason is None and all(getattr(one, "auth", None) is None for one in components)


def plan(server: FastMCP[Any]) -> list[Planned]:
    components = private.components(server).values()
    names = [(type(one), one.name) for one in components]
    is_particular = _particular(server) is not None
    made = []
    for one in components:
        method, what, name = _named(one)
        if method is None:
            continue
        reason = _obstacle(server, method)
        is_one = not is_particular and names.count((type(one), one.name)) == 1

        def how(one: Any = one, reason: str | None = reason, is_one: bool = is_one) -> Native | Direct | str:
            if reason is not None:
                return reason
            return _tool(server, one) if is_one and type(one) is FunctionTool else Direct(_through(server))

        part = one if reason is None and is_one else None
        made.append(Planned(f"{what} {one.name if name is None else name}", method, name, part, how))
    return made


def _named(component: Any) -> tuple[str | None, str, str | None]:
    """The method that requests a component, the word for its kind, and the name that it is requested by."""
    if isinstance(component, Tool):
        return "tools/call", "tool", component.name
    if isinstance(component, Resource):
        return "resources/read", "resource", str(component.uri)
    if isinstance(component, ResourceTemplate):
        return "resources/read", "template", None
    if isinstance(component, Prompt):
        return "prompts/get", "prompt", component.name
    return None, "", None


def _shared(server: FastMCP[Any]) -> FastMCPServerMiddleware:
    """The middleware that provides the server's dependencies to a request."""
    return next(one for one in private.fastmcp_lowlevel_of(server).middleware if isinstance(one, FastMCPServerMiddleware))


def _through(server: FastMCP[Any]) -> Handler:
    """Makes a handler that answers by the server's own handlers."""
    shared = _shared(server)

    async def answer(handled: Handled) -> Result:
        with private.shared_context(shared, server):
            return await by_handler(handled)

    return answer


def _with_context(server: FastMCP[Any], tool: FunctionTool) -> Handler:
    """Makes a handler for a tool with parameters that FastMCP injects, or that accesses the request."""
    shared = _shared(server)
    filled = dependencies.without_injected_parameters(
        private.wrapped(tool.fn, materialize_generators=True), run_in_thread=tool.run_in_thread
    )
    adapter = get_cached_typeadapter(private.wrapped(filled))
    is_async = is_coroutine_function(filled)

    async def call(handled: Handled) -> Result:
        arguments = handled.params.get("arguments") or {}
        try:
            with private.shared_context(shared, server), dependencies.bind_request_context(handled.context):
                async with Context(fastmcp=server):
                    value = await private.body(tool, adapter, is_async, arguments)
                    return _sent(tool.convert_result(value), handled.revision)
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError) and cause.title == adapter.validator.title:
                # The arguments are wrong, and the function has not run.
                raise HandBack from None
            return _failed(server, tool, error)

    return call


def _tool(server: FastMCP[Any], tool: FunctionTool) -> Native | Direct:
    """Decides how the engine answers calls of a tool."""
    if FORMER:
        return Direct(_through(server))
    if tool.version is not None or tool.auth is not None or tool.timeout is not None or not is_enabled(tool):
        return Direct(_through(server))
    function, returned = tool.fn, tool.return_type
    may_ask = returned in (inspect.Signature.empty, Any, object, None) or returns_input_required(function)
    if may_ask or tool.task_config.supports_tasks() or inspect.isasyncgenfunction(function):
        return Direct(_through(server))
    if dependencies.without_injected_parameters(function) is not function or _reaches(function) or asks_its_thread(function):
        return Direct(_with_context(server, tool))
    validated = _validated(function)
    result_of = _result(tool)
    straight = _straight(server, tool, result_of)

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

        return Native(call, "task", straight)

    def call_plain(arguments: bytes, revision: str) -> bytes:
        try:
            value = validated(arguments)
        except ValidationError:
            # A `ValidationError` of the function itself arrives as another type.
            raise HandBack from None
        except Exception as error:
            return _failed(server, tool, error)
        try:
            return result_of(value, revision)
        except Exception as error:
            return _failed(server, tool, error)

    return Native(call_plain, "worker" if tool.run_in_thread else "inline", straight)


def _reaches(function: Any) -> bool:
    """Whether a function, or its module, accesses the request by `get_context` or the like."""
    variables = getattr(inspect.unwrap(function), "__globals__", None)
    if variables is None or any(one in variables.values() for one in _REACHES):
        return True
    return bool(_WORDS & names_in(function))


def _straight(
    server: FastMCP[Any], tool: FunctionTool, result_of: Callable[[Any, str], bytes]
) -> Straight | None:
    """Makes the description by which the engine calls a tool without a validator, if its parameters allow it."""
    parameters = plain_parameters(tool.fn)
    kind, wraps = _wrapped(tool)
    if parameters is None or kind is None or inspect.isgeneratorfunction(tool.fn):
        return None

    def finish(value: Any, revision: str) -> bytes:
        try:
            return result_of(value, revision)
        except Exception as error:
            return _failed(server, tool, error)

    def fail(error: Exception) -> bytes:
        if isinstance(error, ValidationError):
            error = private.body_error()(str(error))
        return _failed(server, tool, error)

    meta = '{"fastmcp":{"wrap_result":true}}' if wraps else None
    return Straight(tool.fn, parameters, kind.__name__ if wraps else None, meta, finish, fail)


def _wrapped(tool: FunctionTool) -> tuple[type[Any] | None, bool]:
    """The type of value that becomes a result unchanged, and whether it also becomes structured content."""
    schema, kind = tool.output_schema, tool.return_type
    wraps = schema is not None and bool(schema.get("x-fastmcp-wrap-result"))
    return (kind if kind in (str, int, bool) and (schema is None or wraps) else None), wraps


def _validated(function: Callable[..., Any]) -> Callable[[bytes], Any]:
    """Makes a function that validates a JSON object as the tool's arguments and calls the tool."""
    adapter = get_cached_typeadapter(private.wrapped(private.wrapped(function, materialize_generators=True)))
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    if all(parameter.annotation in STRAIGHT for parameter in parameters):
        straight: Callable[[bytes], Any] = adapter.validator.validate_json
        return straight
    validate = adapter.validator.validate_python
    return lambda arguments: validate(from_json(arguments))


def _result(tool: FunctionTool) -> Callable[[Any, str], bytes]:
    """Makes a function from the tool's return value to a result, a JSON object."""
    kind, wraps = _wrapped(tool)

    def result(value: Any, revision: str) -> bytes:
        its = type(value)
        if its is kind:
            text = value if its is str else str(value) if its is int else "true" if value else "false"
            content = [{"type": "text", "text": text}]
            if not wraps:
                return to_json({"content": content, "isError": False})
            meta = {"fastmcp": {"wrap_result": True}}
            structured = {"result": value}
            return to_json({"_meta": meta, "content": content, "structuredContent": structured, "isError": False})
        return _sent(tool.convert_result(value), revision)

    return result


def _sent(made: ToolResult, revision: str) -> bytes:
    return sent("tools/call", revision, private.normalized(made.to_mcp_result()))


def _failed(server: FastMCP[Any], tool: Tool, error: Exception) -> bytes:
    """Makes and logs the result for an exception as `FastMCP.call_tool` and `_on_call_tool` do."""
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
            text = begin if private.hides_errors(server) else f"{begin}: {error}"
    return to_json({"content": [{"type": "text", "text": text}], "isError": True})
