"""Fronts before several servers."""

from __future__ import annotations

import asyncio
import sys

import pytest

from mcpbolt import Client, PeerError, Server
from mcpbolt.chain import External, Front
from support import SECONDS, coroutine

THEIRS = """
from mcp.server import MCPServer

server = MCPServer("theirs")

@server.tool()
def double(a: int) -> int:
    return 2 * a

server.run()
"""


def named(name: str) -> Server:
    server = Server(name, "1.0.0")

    @server.tool
    def whose() -> str:
        return name

    @server.prompt
    def greet() -> str:
        return f"hello from {name}"

    @server.resource("book://list")
    def books() -> str:
        return f"books of {name}"

    return server


# R-CHN-11
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("carrier", ["within", "http"])
@coroutine
async def test_joined_servers_are_one_with_prefixes(revision: str, carrier: str) -> None:
    front = Front(External(named("own"))).join(External(named("far"), prefix="far")).join(External(named("b"), prefix="b"))
    assert front.name == "own"

    async def check(client: Client) -> None:
        assert [tool.name for tool in await client.list_tools()] == ["whose", "far_whose", "b_whose"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["greet", "far_greet", "b_greet"]
        uris = [str(resource.uri) for resource in await client.list_resources()]
        assert uris == ["book://list", "book://far/list", "book://b/list"]
        for prefix, name in [("", "own"), ("far_", "far"), ("b_", "b")]:
            assert (await client.call_tool(f"{prefix}whose", {})).text == name
        assert "books of far" in str(await client.read_resource("book://far/list"))
        with pytest.raises(PeerError):
            await client.call_tool("c_whose", {})

    if carrier == "within":
        async with Client(front, revision=revision) as client:
            return await check(client)
    async with front.listening("http://127.0.0.1:0/mcp") as address, Client(address, revision=revision) as client:
        await check(client)


# R-CHN-11
@coroutine
async def test_a_client_and_a_server_of_the_official_sdk_are_joined_to_a_server_of_the_program() -> None:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    theirs = External([sys.executable, "-c", THEIRS], name="theirs", prefix="theirs")
    front = Front(External(named("own")), patience=SECONDS).join(theirs)
    async with (
        front.listening("http://127.0.0.1:0/mcp") as address,
        streamable_http_client(str(address)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == {"whose", "theirs_double"}
        called = await session.call_tool("theirs_double", {"a": 21})
        assert "42" in str(called.content)
        assert "own" in str((await session.call_tool("whose", {})).content)


# R-CHN-11
@coroutine
async def test_a_server_that_fails_is_left_out_and_a_front_may_be_joined() -> None:
    gone = External("tcp:127.0.0.1:9", prefix="gone", connect_timeout=1.0)
    inner = Front(External(named("one"))).join(External(named("two"), prefix="two"))
    front = Front(External(named("own")), patience=5.0).join(gone).join(External(inner, prefix="inner"))
    async with Client(front) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["whose", "inner_whose", "inner_two_whose"]
        assert (await client.call_tool("inner_two_whose", {})).text == "two"


def test_servers_that_could_be_confused_are_refused() -> None:
    front = Front(External(named("own"), prefix="a"))
    cases = [
        (External(named("own"), prefix="b"), "the same name"),
        (External(named("x"), prefix="A"), "prefix of its own"),
        (External(named("x"), prefix="a_b"), "prefix of its own"),
    ]
    for external, text in cases:
        with pytest.raises(ValueError, match=text):
            front.join(external)
    with pytest.raises(ValueError, match="leads to this front itself"):
        front.join(External(Front(External(front)), name="round", prefix="round"))
    for prefix, text in [("", "at least one"), ("a b", "letters"), ("7", "number"), ("localhost", "localhost")]:
        with pytest.raises(ValueError, match=text):
            External(named("x"), prefix=prefix)
    with pytest.raises(ValueError, match="patience"):
        Front(External(named("own")), patience=float("nan"))
    # The servers that were refused are not among those of the front.
    front.join(External(named("x"), prefix="b"))

    async def names() -> list[str]:
        async with Client(front) as client:
            return [tool.name for tool in await client.list_tools()]

    assert asyncio.run(names()) == ["a_whose", "b_whose"]
