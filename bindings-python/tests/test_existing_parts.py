"""The parts of a server of the SDK or FastMCP that the engine answers, and the fallback for the others."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import traceback
from typing import Any

import anyio
import pytest
from fastmcp import Context as FastContext, FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, GetPromptRequestParams, InputRequiredResult
from support import coroutine

from mcpbolt import Client, PeerError, Unsupported
from mcpbolt.mcp import accelerate, listening, report
from mcpbolt.mcp._natives import Natives
from wire import Wire

HERE = "http://127.0.0.1:0/mcp"


def kernel() -> bool:
    """Whether the SDK's kernel is what calls."""
    return any(frame.name == "_on_request" for frame in traceback.extract_stack())


def highlevel(**options: Any) -> MCPServer[Any]:
    server = MCPServer("existing", log_level="CRITICAL", **options)

    @server.tool()
    async def through_the_kernel() -> bool:
        return kernel()

    @server.tool()
    async def with_context(context: Context) -> bool:
        assert context.request_context.method == "tools/call"
        return kernel()

    @server.resource("memo://kernel")
    async def memo() -> str:
        return str(kernel()).lower()

    @server.resource("memo://kernel/with/{name}")
    async def with_name(name: str, context: Context) -> str:
        assert context.request_context.method == "resources/read"
        return str(kernel()).lower()

    @server.resource("memo://{name}/y")
    async def template(name: str) -> str:
        return str(kernel()).lower()

    @server.prompt()
    async def plain_prompt() -> str:
        return str(kernel()).lower()

    @server.prompt()
    async def prompt_with_context(context: Context) -> str:
        assert context.request_context.method == "prompts/get"
        return str(kernel()).lower()

    return server


def fast() -> Any:
    server = FastMCP("existing")

    @server.tool
    async def through_the_kernel() -> bool:
        return kernel()

    @server.tool
    async def with_context(context: FastContext) -> bool:
        assert context.fastmcp is server and context.request_id
        return kernel()

    @server.resource("memo://kernel")
    async def memo() -> str:
        return str(kernel()).lower()

    @server.resource("memo://kernel/with/{name}")
    async def with_name(name: str, context: FastContext) -> str:
        assert context.request_id
        return str(kernel()).lower()

    @server.resource("memo://{name}/y")
    async def template(name: str) -> str:
        return str(kernel()).lower()

    @server.prompt
    async def plain_prompt() -> str:
        return str(kernel()).lower()

    @server.prompt
    async def prompt_with_context(context: FastContext) -> str:
        assert context.request_id
        return str(kernel()).lower()

    return server


async def answer(server: Any, tool: str = "through_the_kernel", revision: str | None = None) -> Any:
    async with listening(server, HERE) as here, Client(here, revision=revision) as client:
        return (await client.call_tool(tool)).structured["result"]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_an_accelerated_tool_does_without_the_kernel(make: Any, revision: str) -> None:
    assert await answer(make(), revision=revision) is True
    assert await answer(accelerate(make()), revision=revision) is False


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_what_takes_a_context_gets_it_without_the_kernel(make: Any, revision: str) -> None:
    assert await answer(make(), "with_context", revision) is True
    assert await answer(accelerate(make()), "with_context", revision) is False


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("make", [highlevel, fast])
@coroutine
async def test_resources_and_prompts_do_without_the_kernel(make: Any, revision: str) -> None:
    # Older revisions are the kernel's: it knows what they leave out.
    by_kernel = str(revision == "2025-03-26").lower()
    async with listening(accelerate(make()), HERE) as here, Client(here, revision=revision) as client:
        for uri in ("memo://kernel", "memo://kernel/with/context", "memo://x/y"):
            assert (await client.read_resource(uri))[0].text == by_kernel, uri
        for name in ("plain_prompt", "prompt_with_context"):
            assert (await client.get_prompt(name)).messages[0].content.text == by_kernel, name


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@coroutine
async def test_handlers_see_the_request_of_http(revision: str, accelerated: bool) -> None:
    server = highlevel()

    @server.tool()
    async def seen(context: Context) -> list[str]:
        request = context.request_context.request
        session = request.headers.get("mcp-session-id")
        same = context.request_context.session._connection.session_id == session
        return [request.method, request.url.path, request.headers["x-who"], str(request.client.host), str(same)]

    served = accelerate(server) if accelerated else server
    async with listening(served, HERE) as here, Client(here, revision=revision, headers={"X-Who": "Ada"}) as client:
        for _ in range(2):
            result = await client.call_tool("seen")
            assert result.structured == {"result": ["POST", "/mcp", "Ada", "127.0.0.1", "True"]}


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@coroutine
async def test_each_call_sees_the_headers_of_its_own_request(revision: str, accelerated: bool) -> None:
    """R-HDR-11: also when many are under way."""
    from fastmcp.server.dependencies import get_http_headers

    server = FastMCP("headers")

    @server.tool
    async def seen() -> str:
        await asyncio.sleep(0.01)
        return get_http_headers()["x-who"]

    served = accelerate(server) if accelerated else server

    async def ask(here: str, who: str) -> None:
        async with Client(here, revision=revision, headers={"X-Who": who}) as client:
            said = await asyncio.gather(*(client.call_tool("seen") for _ in range(5)))
            assert [one.text for one in said] == [who] * 5

    async with listening(served, HERE) as here:
        await asyncio.gather(*(ask(here, f"client {n}") for n in range(8)))


@coroutine
async def test_middleware_sees_every_request() -> None:
    seen = []

    async def watch(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server = accelerate(highlevel(middleware=[watch]))
    assert await answer(server, revision="2025-11-25") is True
    assert seen == ["initialize", "notifications/initialized", "tools/call"]
    assert "middleware sees each request" in report(server).kept["tool through_the_kernel"]


@coroutine
async def test_what_is_added_and_removed_is_so_for_the_engine_too() -> None:
    server = accelerate(highlevel())
    async with listening(server, HERE) as here, Client(here) as client:
        assert len(await client.list_tools()) == 2
        assert len(await client.list_prompts()) == 2
        server.add_tool(kernel, name="added")
        assert [tool.name for tool in await client.list_tools()][-1] == "added"
        assert (await client.call_tool("added")).structured == {"result": False}
        server.remove_tool("added")
        assert len(await client.list_tools()) == 2
        assert (await client.call_tool("added")).is_error


@coroutine
async def test_what_is_put_around_a_server_later_sees_every_request_too() -> None:
    seen = []

    async def watch(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server = accelerate(highlevel())
    async with listening(server, HERE) as here, Client(here) as client:
        assert (await client.call_tool("through_the_kernel")).structured == {"result": False}
        server.middleware.append(watch)
        assert (await client.call_tool("through_the_kernel")).structured == {"result": True}
    assert seen == ["tools/call"]


@coroutine
async def test_a_fastmcp_tool_that_is_disabled_is_gone_for_the_engine_too() -> None:
    server = accelerate(fast())
    async with listening(server, HERE) as here, Client(here) as client:
        assert not (await client.call_tool("through_the_kernel")).is_error
        server.disable(names={"through_the_kernel"})
        assert (await client.call_tool("through_the_kernel")).is_error
        assert [tool.name for tool in await client.list_tools()] == ["with_context"]


def test_a_report_says_what_is_kept_and_why() -> None:
    server = highlevel()

    @server.tool()
    def asks() -> str | InputRequiredResult:
        return ""

    @server.tool()
    def unsaid():  # type: ignore[no-untyped-def]
        return ""

    assert report(server).kept == {"server": "it is not accelerated"}
    said = report(accelerate(server))
    native = ["tool through_the_kernel", "resource memo://kernel"]
    direct = ["tool with_context", "tool asks", "tool unsaid", "template memo://kernel/with/{name}", "template memo://{name}/y"]
    assert said.native == [*native, "prompt plain_prompt"]
    assert said.direct == [*direct, "prompt prompt_with_context"]
    assert not said.kept

    async def answer_otherwise(context: Any, params: Any) -> Any: ...

    server._lowlevel_server.add_request_handler("prompts/get", GetPromptRequestParams, answer_otherwise)
    said = report(server)
    assert (said.native, said.direct) == (native, direct)
    assert {*said.kept.values()} == {"the handler of prompts/get is another"}
    assert "functions for whole methods" in str(report(accelerate(Server("own"))))


@pytest.mark.parametrize("accelerated", [False, True])
@coroutine
async def test_a_tool_without_a_return_hint_may_ask_by_what_it_gives_back(accelerated: bool) -> None:
    server = highlevel()
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}

    @server.tool()
    async def ask(context: Context):  # type: ignore[no-untyped-def]
        if context.input_responses is None:
            params = ElicitRequestFormParams(message="How many?", requested_schema=schema)
            return InputRequiredResult(
                input_requests={"many": ElicitRequest(params=params)}, request_state="plain state"
            )
        return f"{context.request_state} {context.input_responses['many'].content}"

    served = accelerate(server) if accelerated else server
    async with listening(served, HERE) as here, Client(here, on_elicitation=lambda _: {"x": 3}) as client:
        assert (await client.call_tool("ask")).text == "plain state {'x': 3}"


@coroutine
async def test_a_call_that_is_given_up_cancels_its_handler() -> None:
    """As anyio does it under the SDK's own kernel: again where the handler waits again, but not in a shielded scope."""
    for accelerated in (False, True):
        server = highlevel()
        begun, ended = asyncio.Event(), asyncio.Event()
        seen: list[str] = []

        @server.tool()
        async def slow(context: Context) -> str:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.05)
                    seen.append("cleaned up")
                try:
                    await anyio.sleep(60)
                finally:
                    ended.set()
            return ""

        async with listening(accelerate(server) if accelerated else server, HERE) as here, Client(here) as client:
            calling = asyncio.ensure_future(client.call_tool("slow"))
            await asyncio.wait_for(begun.wait(), 20)
            calling.cancel()
            await asyncio.wait_for(ended.wait(), 20)
            assert seen == ["cleaned up"]
            # The cancelled call does not affect the next one.
            assert (await client.call_tool("with_context")).structured == {"result": not accelerated}


@coroutine
async def test_each_session_has_its_own_state_and_ends_with_it() -> None:
    server = highlevel()
    ended = asyncio.Event()

    @server.tool()
    async def count(context: Context) -> int:
        connection = context.request_context.session._connection
        connection.state["count"] = connection.state.get("count", 0) + 1
        if connection.state["count"] == 1:
            connection.exit_stack.callback(ended.set)
        return connection.state["count"]

    async with listening(server, HERE) as here:
        async with Client(here, revision="2025-11-25") as one, Client(here, revision="2025-11-25") as other:
            for client, expected in ((one, 1), (one, 2), (other, 1)):
                assert (await client.call_tool("count")).structured == {"result": expected}
        await asyncio.wait_for(ended.wait(), 20)


@coroutine
async def test_a_handshake_that_middleware_refuses_opens_nothing() -> None:
    from mcp.shared.exceptions import MCPError

    async def refuse(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "initialize":
            raise MCPError(code=-32051, message="not you")
        return await call_next(ctx)

    async with listening(highlevel(middleware=[refuse]), HERE) as here, await Wire.open(here) as wire:
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        refused = await wire.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
        assert (await refused.json())["error"]["code"] == -32051


def test_what_guards_a_server_is_not_left_out() -> None:
    server = highlevel()

    @server.custom_route("/health", methods=["GET"])
    async def health(request: Any) -> Any: ...

    with pytest.raises(Unsupported, match="routes of its own"):
        listening(server, HERE)


def test_anything_else_is_no_server() -> None:
    with pytest.raises(TypeError, match="not int"):
        listening(1, HERE)


@pytest.mark.parametrize("listens", [False, True])
def test_the_end_of_input_ends_the_process(listens: bool) -> None:
    """Also while a stream of changes is open, which has no end of its own."""
    code = "from mcp.server.mcpserver import MCPServer; from mcpbolt.mcp import run; run(MCPServer('a'), grace=60)"
    own = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    meta = {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}}
    lines = [{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": meta}]
    if listens:
        params = {"notifications": {"toolsListChanged": True}, **meta}
        lines.append({"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": params})
    said = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    done = subprocess.run([sys.executable, "-c", code], input=said, capture_output=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith(b'{"jsonrpc":"2.0","id":1,"result"')


@coroutine
async def test_errors_of_the_client_reach_the_handler() -> None:
    server = highlevel()

    @server.tool()
    async def sample(context: Context) -> str:
        from mcp.shared.exceptions import MCPError
        from mcp_types import SamplingMessage, TextContent

        message = SamplingMessage(role="user", content=TextContent(type="text", text="Say."))
        try:
            await context.session.create_message(messages=[message], max_tokens=9)
        except MCPError as error:
            return f"refused {error.error.message}"
        return "said"


    async with listening(server, HERE) as here:
        async with Client(here, revision="2025-11-25", on_sampling=lambda _: "yes") as client:
            assert (await client.call_tool("sample")).structured == {"result": "said"}


@coroutine
async def test_an_unknown_method_is_the_kernels_to_refuse() -> None:
    async with listening(highlevel(), HERE) as here, Client(here) as client:
        with pytest.raises(PeerError, match="Method not found"):
            await client.request("com.example/none")


@coroutine
async def test_a_request_over_http_that_is_over_keeps_no_connection() -> None:
    """Nor does what a handler has looked at wait for the collector."""
    server = MCPServer("looks", log_level="CRITICAL")

    @server.tool()
    async def look(ctx: Context) -> str:
        session = ctx.request_context.session
        assert session.client_params and session.client_capabilities and ctx.request_context.request
        session._connection.exit_stack.callback(closed.append, True)
        return session.client_params.client_info.name

    def kept() -> int:
        kinds = {"Outbound", "Enveloped", "ServerRunner", "KernelRequest"}
        return sum(type(one).__name__ in kinds for one in gc.get_objects())

    closed: list[bool] = []
    async with listening(server, HERE) as here, Client(here, revision="2026-07-28", name="somebody") as client:
        gc.collect()
        before = kept()
        gc.disable()
        try:
            names = await asyncio.gather(*(client.call_tool("look") for _ in range(100)))
            assert {one.text for one in names} == {"somebody"} and len(closed) == 100
            assert kept() == before
        finally:
            gc.enable()


@pytest.mark.parametrize("collects", [True, False])
@coroutine
async def test_the_garbage_collector_is_as_the_program_has_it(collects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits while a server starts."""
    server, seen = highlevel(), []
    monkeypatch.setattr(Natives, "changed", lambda self: seen.append(gc.isenabled()))
    (gc.enable if collects else gc.disable)()
    try:
        async with listening(accelerate(server), HERE):
            assert (gc.isenabled(), seen) == (collects, [False])
        with pytest.raises(TypeError):
            listening(1, HERE)
        assert gc.isenabled() is collects
    finally:
        gc.enable()
