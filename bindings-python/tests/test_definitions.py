"""Definitions in lists of tools, resources and prompts, caching of lists, and results checked against schemas."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from mcpbolt import (
    Audio,
    BadAnswer,
    Client,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    PeerError,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
    ToolError,
    ToolResult,
)
from support import client, coroutine

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
PNG = Icon("https://example.com/a.png", "image/png", ["48x48"], "dark")


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_definitions_are_complete_as_far_as_the_revision_knows_them(revision: str) -> None:
    """R-TOL-01, R-ANN-01, R-ICO-01, R-RES-01, R-PRM-01."""
    server = Server("full")
    more: dict[str, Any] = {"title": "A thing", "icons": [PNG], "meta": {"com.example/a": 1}}

    @server.tool(annotations={"readOnlyHint": True}, **more)
    def tool(region: Annotated[str, {"x-mcp-header": "Region"}]) -> str:
        """What it does."""
        return region

    @server.resource("memo://a", mime_type="text/plain", size=4, annotations={"priority": 0.5}, **more)
    def memo() -> str:
        return "memo"

    @server.resource("memo://{name}/b", annotations={"audience": ["user"]}, **more)
    def template(name: str) -> str:
        return name

    @server.prompt(**more)
    def prompt(city: Annotated[str, "Which city", {"title": "City"}]) -> str:
        return city

    titled, iconic = revision >= "2025-06-18", revision >= "2025-11-25"
    async with Client(server, revision=revision) as client:
        everything: list[Any] = [
            *await client.list_tools(),
            *await client.list_resources(),
            *await client.list_resource_templates(),
            *await client.list_prompts(),
        ]
        for one in everything:
            assert one.title == ("A thing" if titled else None)
            assert one.meta == ({"com.example/a": 1} if titled else {})
            assert one.icons == ([PNG] if iconic else [])
        listed, resource, by_template, asked = everything
        assert listed.annotations == ({"readOnlyHint": True} if revision >= "2025-03-26" else {})
        assert listed.input_schema["properties"]["region"]["x-mcp-header"] == "Region"
        assert (resource.size, resource.annotations) == (4, {"priority": 0.5})
        assert by_template.annotations == {"audience": ["user"]}
        (argument,) = asked.arguments
        assert (argument.name, argument.description, argument.required) == ("city", "Which city", True)
        assert argument.title == ("City" if titled else None)


def test_definitions_that_are_wrong_are_refused() -> None:
    """R-ICO-01, R-ANN-01, R-HDR-07."""
    def offered(**more: Any) -> Server:
        server = Server("wrong")
        server.resource("memo://a", **more)(lambda: "")
        return server

    for wrong in [
        {"icons": ["javascript:alert(1)"]},
        {"icons": [{"src": "https://a", "sizes": "48x48"}]},
        {"annotations": {"priority": 2}},
        {"annotations": {"audience": ["system"]}},
    ]:
        with pytest.raises(ValueError, match="icons|annotations"):
            offered(**wrong)._catalog()
    server = Server("wrong")

    @server.tool
    def header(region: Annotated[list[str], {"x-mcp-header": "Region"}]) -> str:
        return ""

    with pytest.raises(ValueError):
        server._catalog()
    for settings in ({"page_size": 0}, {"cache_lists": -1.0}, {"cache_lists": 1, "cache_scope": "all"}, {"state_key": b"short"}):
        with pytest.raises(ValueError):
            Server("wrong", **settings)._catalog()  # type: ignore[arg-type]


@coroutine
async def test_content_says_more_than_its_bytes() -> None:
    """R-ANN-01, R-MET-03: annotations and `_meta` of blocks, and of a result, there and back."""
    blocks = [
        Text("a", annotations={"audience": ["user"]}, meta={"n": 1}),
        Image(b"b", annotations={"priority": 1}),
        ResourceLink("memo://a", "a", title="A", description="It", size=3, meta={"n": 2}),
        ResourceContents("memo://b", "text", meta={"n": 3}),
    ]
    server = Server("blocks")

    @server.tool
    def make() -> ToolResult:
        return ToolResult(blocks, {"x": 1}, meta={"n": 4})

    @server.resource("memo://b")
    def memo() -> ResourceContents:
        return ResourceContents("memo://b", b"bytes", "a/b", meta={"n": 5})

    async with Client(server, revision="2026-07-28") as client:
        result = await client.call_tool("make")
        *first, embedded = result.content
        assert first == blocks[:3] and repr(first) == repr(blocks[:3])
        assert embedded.resource == blocks[3]  # type: ignore[union-attr]
        assert result.structured == {"x": 1} and result.meta["n"] == 4
        (contents,) = await client.read_resource("memo://b")
        assert (contents.blob, contents.meta) == (b"bytes", {"n": 5})


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_blocks_are_such_as_the_revision_knows(revision: str) -> None:
    """R-PRM-04: what it does not know is said otherwise."""
    server = Server("blocks")
    link, sound = ResourceLink("memo://a", "a"), Audio(b"abc")

    @server.tool
    def make() -> list[Any]:
        return [link, sound, "text"]

    @server.prompt
    def ask() -> list[Any]:
        return [Message(sound), Message(link), Message("text", "assistant")]

    as_resource = EmbeddedResource(ResourceContents("audio:inline", b"abc", "audio/wav"))
    known_sound = sound if revision >= "2025-03-26" else as_resource
    known_link = link if revision >= "2025-06-18" else Text("a: memo://a")
    async with Client(server, revision=revision) as client:
        assert (await client.call_tool("make")).content == [known_link, known_sound, Text("text")]
        messages = (await client.get_prompt("ask")).messages
        assert [message.content for message in messages] == [known_sound, known_link, Text("text")]
        assert [message.role for message in messages] == ["user", "user", "assistant"]


@dataclass
class Sum:
    sum: int


SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@coroutine
async def test_a_server_gives_back_what_its_schema_says_or_an_error(revision: str) -> None:
    """R-STR-01, R-STR-03, R-STR-07."""
    outputs: dict[str, Any] = {
        "good": {"sum": 2**70},
        "whole": ToolResult("…", {"sum": 3}),
        "failed": ToolResult("…", is_error=True),
        "wrong": {"sum": "three"},
        "whole_wrong": ToolResult("…", {"total": 3}),
        "text": "3",
    }
    server = Server("sums")
    for name, output in outputs.items():
        server.tool(name=name, output_schema=SCHEMA, task="optional")(lambda output=output: output)  # type: ignore[misc]

    @server.tool
    async def hinted(right: bool) -> Sum:
        return Sum(3) if right else "3"  # type: ignore[return-value]

    @server.tool
    def raises() -> Sum:
        raise ToolError("no")

    async with Client(server, revision=revision) as client:
        good = await client.call_tool("good")
        assert good.structured == {"sum": 2**70} and good.text == f'{{"sum":{2**70}}}'
        assert (await client.call_tool("whole")).structured == {"sum": 3}
        assert (await client.call_tool("failed")).is_error
        assert (await client.call_tool("hinted", {"right": True})).structured == {"sum": 3}
        assert (await client.call_tool("raises")).is_error
        for name, arguments in [("wrong", {}), ("whole_wrong", {}), ("text", {}), ("hinted", {"right": False})]:
            with pytest.raises(PeerError, match="output schema") as caught:
                await client.call_tool(name, arguments)
            assert caught.value.code == -32603


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@coroutine
async def test_structured_content_need_not_be_an_object(revision: str) -> None:
    """R-STR-04, R-STR-06: before 2026-07-28 it must be one, and only the text is sent."""
    server = Server("lists")
    outputs: dict[str, tuple[dict[str, Any], Any, str]] = {
        "some": ({"type": "array", "items": {"type": "string"}}, ["a"], '["a"]'),
        "none": ({"type": "array"}, [], "[]"),
        "text": ({"type": "string"}, "x", '"x"'),
        "number": ({"type": "integer"}, 3, "3"),
    }
    for name, (schema, output, _) in outputs.items():
        server.tool(name=name, output_schema=schema)(lambda output=output: output)  # type: ignore[misc]
    server.tool(name="wrong", output_schema={"type": "array", "items": {"type": "integer"}})(lambda: ["a"])
    async with Client(server, revision=revision) as client:
        for name, (_, output, text) in outputs.items():
            result = await client.call_tool(name)
            assert result.structured == (output if revision == "2026-07-28" else None)
            assert result.text == text
        with pytest.raises(PeerError, match="output schema"):
            await client.call_tool("wrong")


@coroutine
async def test_a_client_holds_results_against_the_schemas_that_it_has_listed() -> None:
    """R-STR-02, R-STR-07, R-SCH-11: of a server that says one thing and does another."""
    results = {
        "wrong": {"structuredContent": {"sum": "x"}},
        "right": {"structuredContent": {"sum": 1}},
        "failed": {"isError": True},
        "none": {},
        "odd": {"structuredContent": {}},
        "free": {"structuredContent": {"sum": "x"}},
    }
    schemas: dict[str, Any] = {name: SCHEMA for name in results} | {"odd": {"type": "nonsense"}}
    del schemas["free"]
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, **({"outputSchema": schemas[name]} if name in schemas else {})}
        for name in results
    ]
    code = f"""
import json, sys
tools, results = json.loads({json.dumps(tools)!r}), json.loads({json.dumps(results)!r})
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "liar", "version": "1"}}}}
    if asked["method"] == "tools/list":
        result = {{"tools": tools}}
    if asked["method"] == "tools/call":
        result = {{"content": [], **results[asked["params"]["name"]]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""
    async with client([sys.executable, "-c", code], revision="2025-06-18", opening="handshake") as connected:
        assert (await connected.call_tool("wrong")).structured == {"sum": "x"}
        await connected.list_tools()
        for name in ("wrong", "none", "odd"):
            with pytest.raises(BadAnswer, match="schema"):
                await connected.call_tool(name)
        for name in ("right", "failed", "free"):
            assert (await connected.call_tool(name)).wire["content"] == []


@coroutine
async def test_lists_are_kept_as_long_as_the_server_says() -> None:
    """R-CCH-01, R-CCH-04, R-CCH-06, R-CCH-07, R-PAG-01."""
    for ttl, kept in [(60.0, True), (None, False)]:
        server = Server("kept", list_changes=True, page_size=2, cache_lists=ttl, cache_scope="public")
        for i in range(3):
            server.tool(name=f"tool-{i}")(lambda: "")
        told: list[str] = []
        async with Client(server, revision="2026-07-28", on_list_changed=told.append) as client:
            async def names() -> list[str]:
                return [tool.name for tool in await client.list_tools()]

            assert await names() == ["tool-0", "tool-1", "tool-2"]
            assert [len(page) async for page in client.tool_pages()] == [2, 1]
            # Nobody tells this client, so that only its own clock makes a list stale.
            server.remove_tool("tool-2")
            assert await names() == ["tool-0", "tool-1"] + ["tool-2"] * kept
            page = (await client.request("tools/list")).parse()
            assert (page["ttlMs"], page["cacheScope"]) == (60_000 if kept else 0, "public" if kept else "private")
            async with client.listen(tools=True):
                server.tool(name="tool-4")(lambda: "")
                while not told:
                    await asyncio.sleep(0.005)
                assert await names() == ["tool-0", "tool-1", "tool-4"]


SHARED = """
from mcpbolt import Context, Server

server = Server("shared", state_key=bytes([KEY]) * 32)


@server.tool
async def ask(context: Context) -> str:
    answer = await context.elicit("?", {"type": "object", "properties": {"n": {"type": "integer"}}})
    return f"{answer.content['n']}"


server.run()
"""


def test_processes_that_share_a_key_go_on_with_each_others_calls() -> None:
    """R-MRT-08."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }

    def ask(key: int, **more: Any) -> dict[str, Any]:
        params = {"name": "ask", "arguments": {}, "_meta": meta, **more}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        command = [sys.executable, "-c", SHARED.replace("KEY", str(key))]
        done = subprocess.run(command, input=line + "\n", capture_output=True, text=True, check=True, timeout=30)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    asked = ask(1)["result"]
    assert asked["resultType"] == "input_required"
    (name,) = asked["inputRequests"]
    again = {
        "requestState": asked["requestState"],
        "inputResponses": {name: {"action": "accept", "content": {"n": 7}}},
    }
    assert ask(1, **again)["result"]["content"][0]["text"] == "7"
    assert ask(2, **again)["error"]["code"] == -32602


@coroutine
async def test_templates_are_taken_away() -> None:
    server = Server("files", list_changes=True)
    server.resource("file:///{path}")(lambda path: path)
    async with Client(server) as client:
        assert len(await client.list_resource_templates()) == 1
        server.remove_resource_template("file:///{path}")
        assert await client.list_resource_templates() == []
        with pytest.raises(LookupError):
            server.remove_resource_template("file:///{path}")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Does.\n\nArgs:\n    a: It.\n\nReturns:\n    One.", "Does.\n\nReturns:\n    One."),
        ("Does.\n\nParameters\n----------\na : int\n    It.\n\nReturns\n-------\nint", "Does.\n\nReturns\n-------\nint"),
        ("Does.\n\n:param a: It.\n:type a: int\n:returns: One.", "Does.\n\n:returns: One."),
    ],
)
def test_of_a_docstring_only_the_parameters_are_left_out(text: str, kept: str | None) -> None:
    def function(a: int) -> int:
        return a

    function.__doc__ = text
    server = Server("x")
    server.tool(function)
    assert server._entries[0].definition.get("description") == kept
