"""Each name that is not public and that `mcpbolt.mcp._private` reads exists in this release, and no other module reads one."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.from_thread
import anyio.lowlevel
import pytest
from fastmcp import FastMCP
from fastmcp.server.low_level import FastMCPServerMiddleware
from fastmcp.server.server import StateValue
from mcp.server.mcpserver import MCPServer
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import ServerRunner
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import ReadResourceResult

import mcpbolt.mcp
from mcpbolt.mcp import _private as private
from mcpbolt.mcp._gate import release

FOLDER = Path(mcpbolt.mcp.__file__).parent
SDK, FAST = MCPServer("sdk", log_level="CRITICAL"), FastMCP("fast")


@SDK.tool()
def add(a: int) -> int:
    return a


@SDK.resource("memo://a")
def memo() -> str:
    return ""


@SDK.resource("memo://{name}/b")
def memos(name: str) -> str:
    return ""


@SDK.prompt()
def greet() -> str:
    return ""


FAST.tool(name="add")(lambda a: a)
LOWLEVEL, FAST_LOWLEVEL = private.lowlevel_of(SDK), private.fastmcp_lowlevel_of(FAST)


async def entered() -> Any:
    manager = StreamableHTTPSessionManager(LOWLEVEL)
    async with manager.run():
        return private.state_of(manager)


async def hops() -> str:
    token = anyio.lowlevel.current_token()

    def there() -> str:
        private.set_token(token)
        anyio.from_thread.check_cancelled()
        return anyio.from_thread.run_sync(lambda: "here")

    return await asyncio.get_running_loop().run_in_executor(None, there)


async def lived() -> bool:
    async with private.lifespans(FAST):
        return True


def found(watched: list[tuple[object, str]]) -> set[type]:
    return {type(getattr(owner, name)) for owner, name in watched}


def middleware() -> Any:
    return next(one for one in FAST_LOWLEVEL.middleware if isinstance(one, FastMCPServerMiddleware))


def shared() -> bool:
    with private.shared_context(middleware(), FAST):
        return True


def body() -> Any:
    from fastmcp.utilities.types import get_cached_typeadapter

    tool = next(iter(private.components(FAST).values()))
    # 4.0 has no such option, and this package calls no tools of it.
    options = {} if release("fastmcp") == "4.0" else {"materialize_generators": True}
    adapter = get_cached_typeadapter(private.wrapped(private.wrapped(tool.fn, **options)))
    return asyncio.run(private.body(tool, adapter, False, {"a": 3}))


def bodies() -> Any:
    def wrong() -> None:
        from pydantic import TypeAdapter

        TypeAdapter(int).validate_python("x")

    with pytest.raises(private.body_error()):
        private.wrapped(wrong)()
    return True


def span() -> Any:
    meta: dict[str, Any] = {}
    private.inject_trace_context(meta)
    return meta


def serialized() -> Any:
    runner: Any = ServerRunner(LOWLEVEL, None, None)  # type: ignore[arg-type]
    return private.serialized(runner, "resources/read", "2025-11-25", ReadResourceResult(contents=[]))


def signature(function: Any, *names: str) -> bool:
    return [*inspect.signature(function).parameters][1 : len(names) + 1] == [*names]


def routes(server: Any) -> int:
    server.custom_route("/a", methods=["GET"])(lived)
    return len(private.routes(server))


async def stored() -> Any:
    server: Any = FastMCP("state")
    private.spare_store(server)
    store = server._state_store
    assert isinstance(store, private.UnusedStore)
    before = await store.get(key="k")
    await store.put(key="k", value=StateValue(value={"a": 1}))
    assert not isinstance(server._state_store, private.UnusedStore)
    both = [await one.get(key="k") for one in (store, server._state_store)]
    assert both[0] == both[1]
    return before, both[0].value


def telemetry() -> Any:
    import opentelemetry.trace as trace

    return private.has_tracer(trace)


def traced() -> list[Any]:
    """A tracer that makes no spans, one that does, and what is called when one is installed: never the program's own."""
    import opentelemetry.trace as trace
    from opentelemetry.sdk.trace import TracerProvider

    class Other:
        NoOpTracerProvider = trace.NoOpTracerProvider
        _TRACER_PROVIDER: Any = None

        def _set_tracer_provider(self, provider: Any, log: bool) -> None:
            self._TRACER_PROVIDER = provider

    assert [*inspect.signature(trace._set_tracer_provider).parameters] == ["tracer_provider", "log"]
    assert "_set_tracer_provider" in trace.set_tracer_provider.__code__.co_names
    seen, other = [], Other()
    for provider in (trace.NoOpTracerProvider(), TracerProvider(shutdown_on_exit=False)):
        listeners = private.tracer_listeners(other)
        listeners.append(lambda: seen.append(private.has_tracer(other)))
        other._set_tracer_provider(provider, log=True)
    return seen


def normalized() -> Any:
    from fastmcp.tools.base import ToolResult

    return private.normalized(ToolResult(content="text").to_mcp_result())


# For each function of the module: what it gives for these servers.
CHECKS: dict[str, Callable[[], Any]] = {
    "lowlevel_of": lambda: type(LOWLEVEL).__name__ == "Server",
    "fastmcp_lowlevel_of": lambda: type(FAST_LOWLEVEL).__name__ == "LowLevelServer",
    "owner_of": lambda: (private.owner_of(LOWLEVEL), private.owner_of(FAST_LOWLEVEL)) == (SDK, FAST),
    "ping_handler": lambda: LOWLEVEL.get_request_handler("ping").handler is private.ping_handler(),
    "telemetry": lambda: any(isinstance(one, private.telemetry()) for one in LOWLEVEL.middleware),
    "inject_trace_context": lambda: span() == {},
    "has_tracer": lambda: telemetry() is False,
    "tracer_listeners": lambda: traced() == [False, True, True],
    "routes": lambda: (routes(MCPServer("a")), routes(FastMCP("a"))) == (1, 1),
    "tools": lambda: [*private.tools(SDK)] == ["add"],
    "resources": lambda: [*private.resources(SDK)] == ["memo://a"],
    "templates": lambda: [*private.templates(SDK)] == ["memo://{name}/b"],
    "prompts": lambda: [*private.prompts(SDK)] == ["greet"],
    "managers": lambda: [type(one).__name__ for one in private.managers(SDK)] == ["ToolManager", "ResourceManager", "PromptManager"],
    "registries": lambda: found(private.registries(SDK)) == {dict},
    "containers": lambda: found(private.containers(LOWLEVEL)) == {dict, list},
    "subscriptions": lambda: hasattr(SDK, "_subscriptions") and private.subscriptions(SDK) is SDK._subscriptions,
    "info": lambda: private.info(LOWLEVEL)["name"] == "sdk",
    "meta_of": lambda: private.meta_of({"_meta": {"a": 1}})["a"] == 1,
    "context_of": lambda: signature(ServerRunner._make_context, "dctx", "method", "params", "meta", "protocol_version"),
    "serialized": lambda: serialized()["contents"] == [],
    "sealed": lambda: len(inspect.signature(RequestStateBoundary._seal_result).parameters) == 4,
    "state_of": lambda: asyncio.run(entered()) is not None,
    "extensions": lambda: len(private.extensions(FAST)) == 0,
    "local": lambda: FAST.providers == [private.local(FAST)],
    "components": lambda: [one.name for one in private.components(FAST).values()] == ["add"],
    "transforms": lambda: private.transforms(FAST) == [],
    "fastmcp_registries": lambda: found(private.fastmcp_registries(FAST)) == {dict, list},
    "lifespans": lambda: asyncio.run(lived()),
    "shared_context": shared,
    "hides_errors": lambda: private.hides_errors(FAST) is False and private.hides_errors(FastMCP("a", mask_error_details=True)),
    "body": lambda: body() == 3,
    "body_error": bodies,
    "wrapped": lambda: private.wrapped(lambda: 3)() == 3,
    "normalized": lambda: normalized() is not None,
    "spare_store": lambda: asyncio.run(stored()) == (None, {"a": 1}),
    "set_token": lambda: asyncio.run(hops()) == "here",
}
FUNCTIONS = [name for name, value in vars(private).items() if inspect.isfunction(value)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_name_is_there(name: str) -> None:
    assert CHECKS[name]()


def test_the_handlers_are_there() -> None:
    for server, lowlevel, handlers in ((SDK, LOWLEVEL, private.SDK_HANDLERS), (FAST, FAST_LOWLEVEL, private.FAST_HANDLERS)):
        for method, name in handlers.items():
            assert lowlevel.get_request_handler(method).handler == getattr(server, name), method


def test_no_other_module_reads_such_a_name() -> None:
    trees = {path.name: ast.parse(path.read_text()) for path in [*FOLDER.glob("*.py"), *FOLDER.parent.glob("*.py")]}
    nodes = [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]
    own = {node.name for _, node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    own |= {node.attr for _, node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    own |= {node.target.id for _, node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    others = []
    for name, node in nodes:
        if name == "_private.py" or not (FOLDER / name).exists():
            continue
        if isinstance(node, ast.Attribute) and node.attr[0] == "_" and node.attr[1] != "_" and node.attr not in own:
            others.append(f"{name}:{node.lineno} {ast.unparse(node)}")
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("mcp", "mcp_types", "fastmcp", "anyio"):
            words = [*node.module.split("."), *(one.name for one in node.names)]
            others += [f"{name}:{node.lineno} {word}" for word in words if word.startswith("_")]
    assert not others
