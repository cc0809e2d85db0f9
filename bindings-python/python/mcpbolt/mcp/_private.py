"""The names of the SDK, of FastMCP and of anyio that are not public and that this package needs nevertheless.

Nothing else in this package uses such a name. `tests/test_private.py` has a test for each, which runs under every
accelerated release of `_gate.RELEASES`. FastMCP's modules are imported on use: a server of the SDK needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# The handlers of a server by method, of an `MCPServer` and of a `FastMCP`.
SDK_HANDLERS = {
    "tools/call": "_handle_call_tool",
    "resources/read": "_handle_read_resource",
    "prompts/get": "_handle_get_prompt",
    "tools/list": "_handle_list_tools",
    "resources/list": "_handle_list_resources",
    "resources/templates/list": "_handle_list_resource_templates",
    "prompts/list": "_handle_list_prompts",
}
FAST_HANDLERS = {
    "tools/call": "_on_call_tool",
    "resources/read": "_on_read_resource",
    "prompts/get": "_on_get_prompt",
    "tools/list": "_on_list_tools",
    "resources/list": "_on_list_resources",
    "resources/templates/list": "_on_list_resource_templates",
    "prompts/list": "_on_list_prompts",
}


# The SDK, 2.2 and later.


def lowlevel_of(server: Any) -> Any:
    """The low-level server within an `MCPServer`."""
    return server._lowlevel_server


def fastmcp_lowlevel_of(server: Any) -> Any:
    """The low-level server within a `FastMCP`."""
    return server._mcp_server


def owner_of(lowlevel: Any) -> Any:
    """The `MCPServer` or `FastMCP` around a low-level server, or that server itself."""
    for method in ("tools/list", "tools/call"):
        entry = lowlevel.get_request_handler(method)
        found = getattr(getattr(entry, "handler", None), "__self__", None)
        if found is not None and lowlevel in (getattr(found, name, None) for name in ("_lowlevel_server", "_mcp_server")):
            return found
    return lowlevel


def ping_handler() -> Any:
    """The SDK's own handler of pings."""
    from mcp.server.lowlevel.server import _ping_handler

    return _ping_handler


def telemetry() -> Any:
    """The class of the SDK's middleware for OpenTelemetry."""
    from mcp.server._otel import OpenTelemetryMiddleware

    return OpenTelemetryMiddleware


def inject_trace_context(meta: dict[str, Any]) -> None:
    """Adds the trace context, if there is one, to the `_meta` of a request to the client."""
    from mcp.shared._otel import inject_trace_context as inject

    inject(meta)


def has_tracer(trace: Any) -> bool:
    """Whether a tracer that makes spans is installed, by the module `opentelemetry.trace`. Its public functions would
    install one."""
    provider = trace._TRACER_PROVIDER
    # With `OTEL_SDK_DISABLED` that of OpenTelemetry's SDK makes none.
    is_disabled = type(provider).__module__.startswith("opentelemetry.sdk.") and getattr(provider, "_disabled", False)
    return not (provider is None or type(provider) is trace.NoOpTracerProvider or is_disabled)


def tracer_listeners(trace: Any) -> list[Callable[[], None]]:
    """The functions that the module `opentelemetry.trace` calls after it has installed a tracer: from now on it does."""
    install = trace._set_tracer_provider
    if not hasattr(install, "listeners"):

        def installing(tracer_provider: Any, log: bool) -> None:
            install(tracer_provider, log)
            for listener in [*listeners]:
                listener()

        listeners: list[Callable[[], None]] = []
        installing.listeners = listeners  # type: ignore[attr-defined]
        trace._set_tracer_provider = installing
    return trace._set_tracer_provider.listeners  # type: ignore[no-any-return]


def routes(server: Any) -> Any:
    """The HTTP routes that a program has added to a server."""
    return getattr(server, "_custom_starlette_routes", ()) or getattr(server, "_additional_http_routes", ())


def tools(server: Any) -> dict[str, Any]:
    return server._tool_manager._tools  # type: ignore[no-any-return]


def resources(server: Any) -> dict[str, Any]:
    return server._resource_manager._resources  # type: ignore[no-any-return]


def templates(server: Any) -> dict[str, Any]:
    return server._resource_manager._templates  # type: ignore[no-any-return]


def prompts(server: Any) -> dict[str, Any]:
    return server._prompt_manager._prompts  # type: ignore[no-any-return]


def managers(server: Any) -> tuple[Any, Any, Any]:
    """The managers of tools, resources and prompts of an `MCPServer`."""
    return server._tool_manager, server._resource_manager, server._prompt_manager


def registries(server: Any) -> list[tuple[object, str]]:
    """The dicts in which the parts of an `MCPServer` are registered: owner and attribute name."""
    tools, resources, prompts = managers(server)
    return [(tools, "_tools"), (resources, "_resources"), (resources, "_templates"), (prompts, "_prompts")]


def containers(lowlevel: Any) -> list[tuple[object, str]]:
    """The middleware and the handlers of a low-level server: owner and attribute name."""
    return [(lowlevel, "middleware"), (lowlevel, "_request_handlers")]


def subscriptions(server: Any) -> Any:
    """The subscriptions to an `MCPServer`, which its contexts need."""
    return server._subscriptions


def info(lowlevel: Any) -> dict[str, Any]:
    """The server's info for results, of which `server_info_stamp` makes a deep copy."""
    return lowlevel._server_info_stamp_source  # type: ignore[no-any-return]


def meta_of(params: dict[str, Any]) -> Any:
    """The `_meta` of a request as handlers see it."""
    from mcp.server.runner import _extract_meta

    return _extract_meta(params)


def context_of(runner: Any, *parts: Any) -> Any:
    """The context that the SDK passes to a handler."""
    return runner._make_context(*parts)


def serialized(runner: Any, method: str, revision: str, result: Any) -> Any:
    """A result as it is sent in a revision."""
    return runner._serialize(method, revision, result)


def sealed(boundary: Any, context: Any, result: Any) -> Any:
    """A result whose state for the client is signed."""
    return boundary._seal_result(context, result, None)


def state_of(manager: Any) -> Any:
    """What the lifespan of a server yielded, in the session manager that runs."""
    return manager._lifespan_state


# FastMCP, 4.0 and later.


def extensions(server: Any) -> Any:
    return server._extensions


def local(server: Any) -> Any:
    """The provider with the components that a program has registered at a `FastMCP` itself."""
    return server._local_provider


def components(server: Any) -> dict[str, Any]:
    return server._local_provider._components  # type: ignore[no-any-return]


def transforms(server: Any) -> list[Any]:
    """What changes the components of a server before clients see them."""
    return [*server._transforms, *server._local_provider._transforms]


def fastmcp_registries(server: Any) -> list[tuple[object, str]]:
    """The containers whose changes affect a `FastMCP`: owner and attribute name."""
    provider = local(server)
    own = [(server, name) for name in ("middleware", "providers", "_transforms")]
    return [(provider, "_components"), (provider, "_transforms"), *own]


def lifespans(server: Any) -> Any:
    """Enters the lifespans of a `FastMCP` and its providers."""
    return server._lifespan_manager()


def shared_context(middleware: Any, server: Any) -> Any:
    """Provides a server's dependencies to the request that runs."""
    return middleware._apply_shared_context(server)


def hides_errors(server: Any) -> bool:
    """Whether clients get no messages of exceptions."""
    return bool(server._mask_error_details)


async def body(tool: Any, adapter: Any, is_async: bool, arguments: dict[str, Any]) -> Any:
    """Validates arguments and calls a tool's function."""
    return await tool._run_body(adapter, is_async, arguments, strict=None)


def body_error() -> Any:
    """The class of what a tool's function raises in place of a `ValidationError`."""
    from fastmcp.tools.function_tool import _ToolBodyError

    return _ToolBodyError


def wrapped(function: Any, **options: Any) -> Any:
    """A function that raises such errors."""
    from fastmcp.tools.function_tool import _wrap_body_errors

    return _wrap_body_errors(function, **options)


def normalized(result: Any) -> Any:
    """A tool's result as the SDK expects it."""
    from fastmcp.server.mixins.mcp_operations import _normalize_call_tool_result

    return _normalize_call_tool_result(result)


class UnusedStore:
    """The state of sessions while there is none. The store of FastMCP, which takes a quarter of a second to import, is
    made when something is written; FastMCP reads the state in each of its lists."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._store: Any = None

    async def get(self, *args: Any, **named: Any) -> Any:
        """Finds nothing."""
        if self._store is None and "default" not in named:
            return None
        return await self._made().get(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)

    def _made(self) -> Any:
        if self._store is None:
            if self._server._FastMCP__state_store is self:
                self._server._FastMCP__state_store = None
            self._store = self._server._state_store
        return self._store


def spare_store(server: Any) -> None:
    """Has a `FastMCP` make the store of its sessions' state when it is needed, if the program brings none."""
    own = vars(server)
    if own.get("_state_storage", server) is None and own.get("_FastMCP__state_store", server) is None:
        server._FastMCP__state_store = UnusedStore(server)


# anyio.


def set_token(token: Any) -> None:
    """Lets `anyio.from_thread` find the event loop from this thread, and find that nothing is cancelled."""
    from anyio._core._eventloop import threadlocals

    threadlocals.current_token = token
    threadlocals.current_cancel_scope = None
