"""The observers of a FastMCP server's requests, and the overrides of their answers, by method."""

from __future__ import annotations

from typing import Any

from fastmcp import settings
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.low_level import FastMCPServerMiddleware as Dispatch
from fastmcp.server.middleware.dereference import DereferenceRefsMiddleware
from fastmcp.server.middleware.middleware import Middleware
from fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from fastmcp.server.server import FastMCP

__all__ = ["Dispatch", "LOGGERS", "intercepts", "makes_spans", "overrides", "sees"]

# The hooks of middleware that concern one method.
_HOOKS = {
    "tools/call": {"on_call_tool"},
    "resources/read": {"on_read_resource", "check_resource_access"},
    "prompts/get": {"on_get_prompt"},
    "tools/list": {"on_list_tools"},
    "resources/list": {"on_list_resources"},
    "resources/templates/list": {"on_list_resource_templates"},
    "prompts/list": {"on_list_prompts"},
    # The kernel answers these in any case, and notifications too.
    "initialize": {"on_initialize"},
    "server/discover": {"on_discover"},
    "notifications": {"on_notification"},
}
# The functions of a server that answer requests of one method.
_ANSWERS = {
    "tools/call": "call_tool",
    "resources/read": "read_resource",
    "prompts/get": "render_prompt",
    "tools/list": "list_tools",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
    "prompts/list": "list_prompts",
}
# What a subclass may define without changing any answer: what begins it, registers parts, and runs it.
_NEUTRAL = {
    *("__module__", "__doc__", "__init__", "__dict__", "__weakref__", "__annotations__", "__parameters__", "__orig_bases__"),
    *("__firstlineno__", "__static_attributes__", "run", "run_async", "run_stdio_async", "run_http_async", "http_app"),
    *("tool", "resource", "prompt", "add_tool", "add_resource", "add_template", "add_prompt", "add_middleware"),
}
# FastMCP's debug messages that name each request: the logger, by method.
LOGGERS = dict.fromkeys(_ANSWERS, "fastmcp.server.mixins.mcp_operations")


def sees(one: Any, method: str) -> bool:
    """Whether middleware does something about requests of a method. FastMCP's built-in one, which affects lists only, always
    does the same."""
    kind = type(one)
    if kind is DereferenceRefsMiddleware:
        return False
    if not isinstance(one, Middleware) or any("__getattribute__" in vars(base) for base in kind.__mro__[:-1]):
        return True
    if isinstance(one, ToolInjectionMiddleware) and method in ("tools/list", "tools/call"):
        return True
    hooks = {name for name in vars(Middleware) if name == "__call__" or not name.startswith("__")}
    changed = {name for name in hooks if getattr(kind, name) is not getattr(Middleware, name)} | (hooks & vars(one).keys())
    return bool(changed - {name for other, names in _HOOKS.items() if other != method for name in names})


def makes_spans() -> bool:
    """Whether FastMCP makes spans; else it passes the trace of a request on to its handler, at most."""
    return bool(getattr(settings, "telemetry_mode", "native") == "native")


def overrides(server: FastMCP[Any], method: str) -> bool:
    """Whether a subclass, or the object itself, overrides how a server answers requests of a method."""
    kinds = type(server).__mro__
    own = {*vars(server), *(name for kind in kinds[: kinds.index(FastMCP)] for name in vars(kind))}
    others = {name for other, name in _ANSWERS.items() if other != method}
    return any(hasattr(FastMCP, name) for name in own - others - _NEUTRAL)


def intercepts(extension: Any) -> bool:
    """Whether an extension does something about calls of tools."""
    name = "intercept_tool_call"
    plain = getattr(ServerExtension, name, None)
    return plain is None or getattr(type(extension), name) is not plain or name in vars(extension)
