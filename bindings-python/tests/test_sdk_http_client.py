"""The official SDK's client on our HTTP, against real servers: its own and ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.server.mcpserver import Context as TheirContext
from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware

from mcpbolt import Basic, Bearer, Server
from mcpbolt.mcp import streamable_http_client
from support import coroutine
from test_sdk import OURS, elicited, rooted, sampled

ANY = "http://127.0.0.1:0/mcp"
CALLBACKS: dict[str, Any] = {
    "elicitation_callback": elicited,
    "sampling_callback": sampled,
    "list_roots_callback": rooted,
}


class Stored(EventStore):
    """Every event, by the stream that it was said on."""

    def __init__(self) -> None:
        self.events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self.events[int(last_event_id) - 1][0]
        for number, (of, message) in enumerate(self.events[int(last_event_id) :], int(last_event_id) + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class Theirs:
    """A server of the SDK's, on uvicorn, and what was asked of it."""

    def __init__(self) -> None:
        self.server = server = MCPServer("theirs", version="1", log_level="CRITICAL")
        self.headers: list[dict[str, str]] = []
        self.verbs: list[str] = []
        self.slept = asyncio.Event()

        @server.tool()
        def add(a: int, b: int) -> int:
            return a + b

        @server.tool()
        async def slow(ctx: TheirContext) -> str:  # type: ignore[type-arg]
            await ctx.report_progress(1, 2, "half")
            return "slow"

        @server.tool()
        async def away(ctx: TheirContext) -> str:  # type: ignore[type-arg]
            await anyio.sleep(0.1)
            await ctx.close_sse_stream()
            await anyio.sleep(0.1)
            return "back"

        @server.tool()
        async def sleep() -> str:
            try:
                await anyio.sleep(60)
            finally:
                self.slept.set()
            return "late"

        @server.tool()
        async def ask(ctx: TheirContext) -> str:  # type: ignore[type-arg]
            return str((await ctx.session.list_roots()).roots[0].uri)  # type: ignore[deprecated]

        @server.tool()
        async def grow(ctx: TheirContext) -> str:  # type: ignore[type-arg]
            await ctx.session.send_tool_list_changed()
            return "grown"

    async def seen(self, request: Any, go_on: Any) -> Any:
        self.verbs.append(request.method)
        self.headers.append(dict(request.headers))
        return await go_on(request)

    @asynccontextmanager
    async def listening(self, **options: Any) -> AsyncIterator[str]:
        app: Starlette = self.server.streamable_http_app(**options)
        app.add_middleware(BaseHTTPMiddleware, dispatch=self.seen)
        serving = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
        task = asyncio.create_task(serving.serve())
        while not serving.started:
            await asyncio.sleep(0.01)
        port = serving.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serving.should_exit = serving.force_exit = True
            await task


def ours() -> Server:
    # Where dataclasses look for what their hints mean.
    module = sys.modules["ours"] = ModuleType("ours")
    exec(OURS.replace("server.run()", ""), vars(module))
    server: Server = vars(module)["server"]
    return server


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@coroutine
async def test_their_client_asks_everything_of_our_server(mode: str) -> None:
    """R-HTP-02, R-SES-03, R-HDR-01."""
    async with ours().listening(ANY) as address:
        async with Client(streamable_http_client(address), mode=mode, **CALLBACKS) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "ask", "traced"]
            many = await asyncio.gather(*(client.call_tool("add", {"a": i, "b": 1}) for i in range(200)))
            assert [result.structured_content for result in many] == [{"sum": i + 1} for i in range(200)]
            asked = await client.call_tool("ask")
            assert asked.content[0].text == "Greet Ada! at file:///home"  # type: ignore[union-attr]
            with pytest.raises(MCPError):
                await client.read_resource("memo://none")


@pytest.mark.parametrize("options", [{}, {"json_response": True}, {"stateless_http": True}], ids=str)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@coroutine
async def test_a_client_of_their_own_server(mode: str, options: dict[str, bool]) -> None:
    theirs = Theirs()
    async with theirs.listening(**options) as url:
        async with Client(streamable_http_client(url), mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            told: list[Any] = []

            async def progress(*news: Any) -> None:
                told.append(news)

            slow = await client.call_tool("slow", progress_callback=progress)
            assert slow.content[0].text == "slow"  # type: ignore[union-attr]
            if not options:
                assert told == [(1.0, 2.0, "half")]
            assert (await client.call_tool("none")).is_error
    if mode == "legacy":
        has_session = "stateless_http" not in options
        assert ("mcp-session-id" in theirs.headers[-1]) == has_session == (theirs.verbs[-1] == "DELETE")
        assert theirs.headers[1]["mcp-protocol-version"] == "2025-11-25"
    else:
        assert {"mcp-method", "mcp-name", "mcp-protocol-version"} <= {*theirs.headers[-1]}


@coroutine
async def test_what_their_server_says_by_itself_comes_on_the_standing_stream() -> None:
    """R-HTP-11."""
    changed = asyncio.Event()

    async def notice(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    theirs = Theirs()
    async with theirs.listening() as url:
        client = Client(streamable_http_client(url), mode="legacy", message_handler=notice, **CALLBACKS)
        async with client:
            while "GET" not in theirs.verbs:
                await asyncio.sleep(0.01)
            await client.call_tool("grow")
            await changed.wait()
            assert (await client.call_tool("ask")).content[0].text == "file:///home"  # type: ignore[union-attr]


@coroutine
async def test_a_listen_stream_tells_of_changes() -> None:
    server = Server("changing", list_changes=True)
    async with server.listening(ANY) as address, Client(streamable_http_client(address)) as client:
        async with client.listen(tools_list_changed=True) as subscription:
            server.tool(name="later")(lambda: "1")
            event = await anext(aiter(subscription))
            assert type(event).__name__ == "ToolsListChanged"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@coroutine
async def test_a_call_that_is_given_up_is_cancelled(mode: str) -> None:
    """R-CAN-05, R-CAN-07."""
    theirs = Theirs()
    async with theirs.listening() as url, Client(streamable_http_client(url), mode=mode) as client:
        with anyio.move_on_after(0.3):
            await client.call_tool("sleep")
        await theirs.slept.wait()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


@coroutine
async def test_a_stream_goes_on_where_it_broke_off() -> None:
    """R-SSE-04, R-SSE-08."""
    theirs = Theirs()
    async with theirs.listening(event_store=Stored(), retry_interval=10) as url:
        async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tokens: list[str] = []

            async def told(token: str) -> None:
                tokens.append(token)

            request = types.CallToolRequest(params=types.CallToolRequestParams(name="away", arguments={}))
            metadata = ClientMessageMetadata(on_resumption_token_update=told)
            back = await session.send_request(request, types.CallToolResult, metadata=metadata)
            assert back.content[0].text == "back" and tokens  # type: ignore[union-attr]
            gets = theirs.verbs.count("GET")
            assert gets >= 2, "the stream of the call was asked for again"
            # From an earlier position: the answer to the first is the answer to this one.
            metadata = ClientMessageMetadata(resumption_token=tokens[0])
            again = await session.send_request(request, types.CallToolResult, metadata=metadata)
            assert again.content[0].text == "back"  # type: ignore[union-attr]
            assert theirs.verbs.count("GET") == gets + 1


@pytest.mark.parametrize(
    ("auth", "said"), [(Bearer("secret"), "Bearer secret"), (Basic("me", "secret"), "Basic bWU6c2VjcmV0")], ids=repr
)
@coroutine
async def test_credentials_and_headers_go_along(auth: Bearer | Basic, said: str) -> None:
    theirs = Theirs()
    async with theirs.listening() as url:
        client = Client(streamable_http_client(url, auth=auth, headers={"X-Own": "1"}, terminate_on_close=False))
        async with client:
            await client.call_tool("add", {"a": 1, "b": 2})
    assert all(headers["authorization"] == said and headers["x-own"] == "1" for headers in theirs.headers)
    assert "DELETE" not in theirs.verbs


@coroutine
async def test_a_client_of_httpx_is_left_to_the_sdk() -> None:
    theirs = Theirs()
    async with theirs.listening() as url, httpx2.AsyncClient(headers={"X-Own": "1"}) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
    assert theirs.headers[0]["user-agent"].startswith("python-httpx")


@coroutine
async def test_what_fails_fails_alone() -> None:
    """R-SES-05."""
    theirs = Theirs()
    async with theirs.listening() as url:
        async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            while len(theirs.headers) < 2:
                await asyncio.sleep(0.01)
            async with httpx2.AsyncClient() as http:
                name = theirs.headers[1]["mcp-session-id"]
                await http.delete(url, headers={"mcp-session-id": name})
            with pytest.raises(MCPError) as failed:
                await session.list_tools()
            assert failed.value.error.code == types.INVALID_REQUEST
    async with streamable_http_client("http://127.0.0.1:9/mcp") as streams, ClientSession(*streams) as session:
        with pytest.raises(MCPError, match="cannot be reached"):
            await session.initialize()


@coroutine
async def test_what_is_no_url_says_so() -> None:
    for wrong in ("no url", "ftp://127.0.0.1/"):
        with pytest.raises(ValueError):
            async with streamable_http_client(wrong):
                pass
    async with ours().listening(ANY) as address, streamable_http_client(address) as (reading, writing):
        await reading.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await reading.receive()
        await writing.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await writing.send(None)
