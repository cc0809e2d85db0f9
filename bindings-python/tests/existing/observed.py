"""Servers whose requests something observes: middleware, hooks, OpenTelemetry, debug messages. The tool `seen` tells what was
observed. A word says which server is made, and what observes it: `sdk:traced`."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

os.environ.setdefault("FASTMCP_LOG_LEVEL", "CRITICAL")
os.environ.setdefault("FASTMCP_CHECK_FOR_UPDATES", "off")
os.environ.setdefault("FASTMCP_SHOW_SERVER_BANNER", "false")

import anyio
import fastmcp
import how
from fastmcp import FastMCP
from fastmcp.server import middleware as builtin
from fastmcp.server.extensions import ServerExtension
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.middleware.dereference import DereferenceRefsMiddleware
from fastmcp.server.middleware.error_handling import ErrorHandlingMiddleware
from fastmcp.server.middleware.logging import LoggingMiddleware
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from fastmcp.server.middleware.timing import DetailedTimingMiddleware, TimingMiddleware
from fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from fastmcp.tools import Tool
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.mcpserver import MCPServer
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
seen: list[Any] = []
exporter = InMemorySpanExporter()
tenant = ContextVar("tenant", default="nobody")


def plain(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, BaseModel):
        return [type(value).__name__, value.model_dump(mode="json", exclude_none=True)]
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if isinstance(value, (dict, str, int, type(None))) else type(value).__name__


def install() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def spans() -> list[Any]:
    """The spans that have ended, with what does not differ from run to run."""
    finished: tuple[ReadableSpan, ...] = exporter.get_finished_spans()
    names = {one.context.span_id: one.name for one in finished if one.context}
    made = []
    for one in finished:
        events = [[event.name, (event.attributes or {}).get("exception.type")] for event in one.events]
        parent = one.parent and (names.get(one.parent.span_id) or f"{one.parent.span_id:016x}" == PARENT)
        attributes = dict(one.attributes or {})
        made.append([one.name, one.kind.name, attributes, one.status.status_code.name, one.status.description, events, parent])
    return made


class Noted(logging.Handler):
    """Records messages of loggers."""

    def emit(self, record: logging.LogRecord) -> None:
        seen.append([record.name, record.levelname, record.getMessage()])


def noting(level: int, *names: str) -> None:
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Noted()], False
        logger.setLevel(level)


def parts(server: Any) -> None:
    """What every server offers."""

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    @server.tool()
    async def echo(text: str) -> str:
        return text

    @server.tool()
    async def fail() -> str:
        raise ValueError("no such luck")

    @server.tool()
    async def slow() -> str:
        await anyio.sleep(60)
        return "late"

    @server.tool()
    def whose() -> str:
        """The variable as it was where the server was started; what a call sets is its own."""
        told = tenant.get()
        tenant.set("somebody")
        return told

    @server.tool()
    def traced() -> list[Any]:
        """The trace that a request to another service would continue."""
        headers: dict[str, str] = {}
        propagate.inject(headers)
        _, continued, parent, _ = headers.get("traceparent", "---").split("-")
        return [continued == TRACE, parent == PARENT, trace.get_current_span().is_recording()]

    @server.tool()
    def late() -> str:
        install()
        return "installed"

    @server.tool(name="seen")
    def told() -> str:
        return json.dumps([seen, spans()], default=str)

    @server.resource("memo://a")
    def memo() -> str:
        return "memo"

    @server.resource("memo://{name}/of/{who}")
    def memos(name: str, who: str) -> str:
        return f"{name} of {who}"

    @server.prompt()
    def greet(who: str) -> str:
        return f"Greet {who}"


async def watch(ctx: Any, call_next: Callable[[Any], Any]) -> Any:
    """Middleware of the SDK."""
    params = {key: value for key, value in (ctx.params or {}).items() if key != "_meta"}
    try:
        result = await call_next(ctx)
    except Exception as error:
        seen.append([ctx.method, params, str(ctx.request_id), repr(error)])
        raise
    seen.append([ctx.method, params, str(ctx.request_id), plain(result)])
    return result


class OwnTelemetry(OpenTelemetryMiddleware):
    async def __call__(self, ctx: Any, call_next: Any) -> Any:
        seen.append(["own telemetry", ctx.method])
        return await super().__call__(ctx, call_next)


async def observe(self: Any, context: Any, call_next: Any) -> Any:
    """A hook of FastMCP's middleware."""
    try:
        result = await call_next(context)
    except Exception as error:
        seen.append([context.method, context.type, plain(context.message), repr(error)])
        raise
    seen.append([context.method, context.type, plain(context.message), plain(result)])
    return result


async def checks(self: Any, context: Any) -> None:
    seen.append(["checks", plain(context.message)])


class Doubles(ServerExtension):
    """An extension that observes calls."""

    identifier = "com.example/doubles"

    async def intercept_tool_call(self, *args: Any, **named: Any) -> Any:
        seen.append(["intercepted"])
        return await super().intercept_tool_call(*args, **named)


class Settled(ServerExtension):
    """An extension that observes nothing."""

    identifier = "com.example/settled"


class Own(FastMCP[Any]):
    """A subclass that changes nothing."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.own = True


class Loud(Own):
    async def call_tool(self, name: str, *args: Any, **named: Any) -> Any:
        seen.append(["call_tool", name])
        return await super().call_tool(name, *args, **named)


def hooked(name: str) -> Any:
    """Middleware with one hook."""
    hook = checks if name == "check_resource_access" else observe
    return type("Hooked", (builtin.Middleware,), {name: hook})()


def on_the_object() -> Any:
    made = builtin.Middleware()
    made.on_call_tool = lambda context, call_next: observe(made, context, call_next)  # type: ignore[method-assign]
    return made


async def function(context: Any, call_next: Any) -> Any:
    return await observe(None, context, call_next)


class OwnDereferences(DereferenceRefsMiddleware):
    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        seen.append(["own dereferences"])
        return await super().on_list_tools(context, call_next)


FAST: dict[str, Callable[[], Any]] = {
    "function": lambda: function,
    "object": on_the_object,
    "timing": lambda: TimingMiddleware(logging.getLogger("own")),
    "detailed": lambda: DetailedTimingMiddleware(logging.getLogger("own")),
    "logging": lambda: LoggingMiddleware(logger=logging.getLogger("own")),
    "errors": ErrorHandlingMiddleware,
    "caching": ResponseCachingMiddleware,
    "limiting": lambda: ResponseLimitingMiddleware(max_size=120),
    "injection": lambda: ToolInjectionMiddleware([Tool.from_function(lambda: "injected", name="echo", description="Injected.")]),
    "dereferences": OwnDereferences,
}


def make(word: str) -> Any:
    """The server, and what observes it."""
    kind, what = word.split(":")
    tenant.set("the program")
    if what in ("off", "propagation_only"):
        fastmcp.settings.telemetry_mode = what
    if what == "disabled":
        os.environ["OTEL_SDK_DISABLED"] = "true"
    if what in ("traced", "disabled", "off", "propagation_only"):
        install()
    if what == "noop":
        trace.set_tracer_provider(trace.NoOpTracerProvider())
    if kind == "sdk":
        middleware = {"function": [watch], "telemetry": [OwnTelemetry()]}.get(what, [])
        server: Any = MCPServer("observed", version="1", log_level="CRITICAL", middleware=middleware)
        if what == "debug":
            noting(logging.DEBUG, "mcp.server.mcpserver.resources.resource_manager")
    else:
        server = {"own": Own, "loud": Loud}.get(what, FastMCP)("observed", version="1")
        noting(logging.DEBUG if what == "debug" else logging.INFO, "fastmcp.server.mixins.mcp_operations", "own")
        if what in ("intercepts", "settled"):
            server.add_extension(Doubles() if what == "intercepts" else Settled())
        if what in FAST or what in vars(builtin.Middleware):
            server.add_middleware(FAST[what]() if what in FAST else hooked(what))
        if what == "inner":
            server._mcp_server.middleware.append(watch)
    parts(server)
    return server


if __name__ == "__main__":
    how.run(make)
