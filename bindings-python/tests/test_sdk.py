"""The official SDK against ours, both ways: what each asks of the other, and what definitions say."""

from __future__ import annotations

import os
import sys
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client as TheirClient
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters

from mcpbolt import ElicitationRequest, Icon, PeerError, Sampled, SamplingRequest
from support import client, coroutine

OURS = """
from dataclasses import dataclass
from typing import Annotated

from mcpbolt import Context, Icon, Server, Text, ToolResult

server = Server(
    "ours", "1", instructions="Be kind.", cache_lists=60, extensions={"com.example/own": {"a": 1}}, subscriptions=True
)


@dataclass
class Sum:
    sum: int


@server.tool(title="Sum", icons=[Icon("https://example.com/a.png", sizes=["any"])], meta={"com.example/a": 1})
def add(a: int, b: int) -> Sum:
    return Sum(a + b)


@server.tool
async def ask(context: Context) -> str:
    filled = await context.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    (root,) = await context.roots()
    said = await context.sample(f"Greet {filled.content['name']}", max_tokens=9)
    return f"{said.text} at {root.uri}"


@server.tool
def traced(context: Context) -> ToolResult:
    own = context.extension("com.example/own")
    return ToolResult(Text(f"{context.meta.get('traceparent')} {own}", annotations={"priority": 1}), meta={"n": 2})


@server.resource("memo://a", mime_type="text/plain", size=1, annotations={"audience": ["user"]})
def memo() -> str:
    return "a"


@server.prompt
def greet(who: Annotated[str, {"title": "Who"}]) -> str:
    return f"Greet {who}"


@server.completion
def complete(request) -> list[str]:
    return [request.value + "da"]


server.run()
"""

THEIRS = """
from mcp.server.mcpserver import Context, Icon, MCPServer
from pydantic import BaseModel

server = MCPServer("theirs", version="1", instructions="Be kind.")


class Sum(BaseModel):
    sum: int


@server.tool(title="Sum", icons=[Icon(src="https://example.com/a.png", sizes=["any"])], meta={"com.example/a": 1})
def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool()
async def slow(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    return "slow"


@server.tool()
async def fail() -> str:
    raise ValueError("no")


@server.resource("memo://{name}")
def memo(name: str) -> str:
    return name


@server.prompt()
def greet(who: str) -> str:
    return f"Greet {who}"


server.run("stdio")
"""


def environment() -> dict[str, str]:
    kept = ("PATH", "PYTHONPATH", "MCPBOLT_TRACE")
    return {name: os.environ[name] for name in kept if name in os.environ}


async def elicited(context: object, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def sampled(context: object, params: Any) -> types.CreateMessageResult:
    text = params.messages[0].content.text
    return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text=text + "!"))


async def rooted(context: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@coroutine
async def test_their_client_of_our_server(mode: str) -> None:
    """R-TOL-01, R-ICO-01, R-STR-01, R-ELI-01, R-SMP-01, R-ROO-01, R-MRT-01, R-CMP-01, R-CCH-01, R-EXT-03, R-MET-10."""
    is_new = mode != "legacy"
    server = StdioServerParameters(command=sys.executable, args=["-c", OURS], env=environment())
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    own = [advertise("com.example/own", {"b": 2})]
    callbacks: dict[str, Any] = {
        "elicitation_callback": elicited,
        "sampling_callback": sampled,
        "list_roots_callback": rooted,
    }
    async with TheirClient(server, mode=mode, extensions=own, **callbacks) as theirs:  # type: ignore[arg-type]
        assert theirs.instructions == "Be kind."
        listed = await theirs.list_tools()
        add = listed.tools[0]
        assert (add.title, add.meta) == ("Sum", {"com.example/a": 1})
        assert add.icons and add.icons[0].sizes == ["any"]
        assert add.output_schema and add.output_schema["required"] == ["sum"]
        summed = await theirs.call_tool("add", {"a": 1, "b": 2})
        assert summed.structured_content == {"sum": 3}
        asked = await theirs.call_tool("ask")
        assert asked.content[0].text == "Greet Ada! at file:///home"  # type: ignore[union-attr]
        seen = await theirs.call_tool("traced", meta={"traceparent": parent})  # type: ignore[typeddict-unknown-key]
        assert seen.content[0].text == f"{parent} {{'b': 2}}" if is_new else f"{parent} None"  # type: ignore[union-attr]
        assert seen.meta and seen.meta["n"] == 2
        assert seen.content[0].annotations and seen.content[0].annotations.priority == 1
        (resource,) = (await theirs.list_resources()).resources
        assert resource.size == 1 and resource.annotations and resource.annotations.audience == ["user"]
        assert (await theirs.read_resource("memo://a")).contents[0].text == "a"  # type: ignore[union-attr]
        (prompt,) = (await theirs.list_prompts()).prompts
        assert prompt.arguments and prompt.arguments[0].title == "Who"
        reference = types.PromptReference(type="ref/prompt", name="greet")
        found = await theirs.complete(reference, {"name": "who", "value": "A"})
        assert found.completion.values == ["Ada"]
        if is_new:
            assert listed.ttl_ms == 60_000
            assert theirs.server_capabilities.extensions == {"com.example/own": {"a": 1}}


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@coroutine
async def test_our_client_of_their_server(revision: str) -> None:
    """R-TOL-01, R-ICO-01, R-STR-02, R-RES-01, R-PRM-01."""

    def model(request: SamplingRequest) -> Sampled:
        return Sampled("!", "m")

    def user(request: ElicitationRequest) -> dict[str, str]:
        return {"name": "Ada"}

    server = [sys.executable, "-c", THEIRS]
    async with client(server, revision=revision, on_sampling=model, on_elicitation=user, tasks=True) as ours:
        assert (ours.server_info.name, ours.server_info.revision) == ("theirs", revision)
        assert ours.server_info.instructions == "Be kind."
        tools = {tool.name: tool for tool in await ours.list_tools()}
        assert (tools["add"].title, tools["add"].meta["com.example/a"]) == ("Sum", 1)
        if revision >= "2025-11-25":
            assert tools["add"].icons == [Icon("https://example.com/a.png", sizes=["any"])]
        # Held against the schema that was listed.
        assert (await ours.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
        told: list[Any] = []
        slow = await ours.call_tool("slow", on_progress=lambda *news: told.append(news))
        assert (slow.text, told) == ("slow", [(1.0, 2.0, "half")])
        assert (await ours.call_tool("fail")).is_error
        assert (await ours.read_resource("memo://b"))[0].text == "b"
        assert (await ours.get_prompt("greet", {"who": "Ada"})).messages[0].text == "Greet Ada"
        if revision != "2025-11-25":
            # They make no tasks: a call stays one.
            assert (await (await ours.start_tool("add", {"a": 1, "b": 1}))).structured == {"sum": 2}
        with pytest.raises(PeerError):
            await ours.request("no/such_method")
