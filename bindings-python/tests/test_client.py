"""Clients: calls, errors, cancellation, and the end of the server."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from mcpbolt import (
    Client,
    ConnectionClosed,
    Context,
    McpError,
    Message,
    Misuse,
    PeerError,
    Prompt,
    RequestTimeout,
    ResourceContents,
    ResourceNotFound,
    Server,
    Text,
    Unsupported,
)
from support import DIAGNOSTIC, client, coroutine

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_every_revision_is_spoken(revision: str) -> None:
    async with client(DIAGNOSTIC, revision=revision) as connected:
        info = connected.server_info
        assert (info.revision, info.name) == (revision, "mcpbolt-python-diagnostic")
        names = [tool.name for tool in await connected.list_tools()]
        assert names == ["echo", "resize", "sleep", "progress", "stats"]
        await connected.ping()
        assert (await connected.call_tool("resize", {"text": "abc", "n": 20})).text == "abc" + "x" * 17
        texts = await asyncio.gather(*(connected.call_tool("echo", {"text": str(i)}) for i in range(200)))
        assert [result.text for result in texts] == [str(i) for i in range(200)]


async def stats(connected: Client) -> dict[str, int]:
    import json

    parsed: dict[str, int] = json.loads((await connected.call_tool("stats")).text)
    return parsed


@coroutine
async def test_cancelling_a_task_cancels_the_task_on_the_other_side() -> None:
    async with client(DIAGNOSTIC) as connected:
        calls = [asyncio.create_task(connected.call_tool("sleep", {"ms": 60_000})) for _ in range(10)]
        while (await stats(connected))["active"] < 10:
            await asyncio.sleep(0.01)
        for call in calls:
            call.cancel()
        assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*calls, return_exceptions=True))
        while (await stats(connected))["active"]:
            await asyncio.sleep(0.01)
        assert (await stats(connected))["cancelled"] == 10
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(connected.call_tool("sleep", {"ms": 60_000}), 0.05)
        with pytest.raises(RequestTimeout) as caught:
            await connected.call_tool("sleep", {"ms": 60_000}, timeout=0.05)
        assert isinstance(caught.value, TimeoutError) and caught.value.scope == "request"
        while (await stats(connected))["cancelled"] < 12:
            await asyncio.sleep(0.01)
        assert connected.stray_count == 0


@coroutine
async def test_a_plain_function_sees_that_it_is_cancelled() -> None:
    server = Server("plain")
    ended: list[bool] = []

    @server.tool
    def wait(context: Context) -> str:
        until = time.monotonic() + 10
        while not context.cancelled and time.monotonic() < until:
            time.sleep(0.005)
        ended.append(context.cancelled)
        return "too late"

    async with Client(server) as connected:
        call = asyncio.create_task(connected.call_tool("wait"))
        await asyncio.sleep(0.1)
        call.cancel()
        while not ended:
            await asyncio.sleep(0.01)
        assert ended == [True]
        assert connected.stray_count == 0


@coroutine
async def test_resources_and_prompts() -> None:
    server = Server("library", "2.0", instructions="read it")

    @server.resource("config://app", mime_type="text/plain", title="The configuration")
    def config() -> str:
        return "a=1"

    @server.resource("users://{id}/photo")
    async def photo(id: str) -> bytes:
        if id == "0":
            raise ResourceNotFound(id)
        return id.encode()

    @server.prompt
    def review(code: str, style: str = "kind") -> list[str | Message]:
        """Reviews code."""
        return [f"{style}: {code}", Message("fine", "assistant")]

    async with Client(server) as connected:
        assert connected.server_info.instructions == "read it"
        (resource,) = await connected.list_resources()
        assert (resource.uri, resource.name, resource.mime_type, resource.title) == (
            "config://app", "config", "text/plain", "The configuration",
        )  # fmt: skip
        assert [one.uri_template for one in await connected.list_resource_templates()] == ["users://{id}/photo"]
        assert await connected.read_resource("config://app") == [ResourceContents("config://app", "a=1", "text/plain")]
        (read,) = await connected.read_resource("users://7/photo")
        assert (read.blob, read.mime_type) == (b"7", "application/octet-stream")
        for missing in ("users://0/photo", "nowhere://"):
            with pytest.raises(PeerError, match="not found"):
                await connected.read_resource(missing)
        (prompt,) = await connected.list_prompts()
        assert isinstance(prompt, Prompt) and prompt.description == "Reviews code."
        assert [(one.name, one.required) for one in prompt.arguments] == [("code", True), ("style", False)]
        made = await connected.get_prompt("review", {"code": "x"})
        assert [(one.role, one.content) for one in made.messages] == [
            ("user", Text("kind: x")),
            ("assistant", Text("fine")),
        ]
        with pytest.raises(PeerError) as caught:
            await connected.get_prompt("review", {})
        assert caught.value.code == -32602
        with pytest.raises(Unsupported):
            await connected.call_tool("any")


@coroutine
async def test_the_end_of_the_server_ends_every_call() -> None:
    code = "import os, mcpbolt; s = mcpbolt.Server('dying'); s.tool(name='die')(lambda: os._exit(3)); s.run()"
    async with client([sys.executable, "-c", code]) as connected:
        with pytest.raises(ConnectionClosed) as caught:
            await connected.call_tool("die")
        assert isinstance(caught.value, ConnectionError) and isinstance(caught.value, McpError)
        assert "3" in str(caught.value) and caught.value.scope == "connection"
        assert caught.value.reason == "peer_exited"
        with pytest.raises(ConnectionClosed):
            await connected.call_tool("die")


@coroutine
async def test_a_server_that_does_not_start_is_an_error() -> None:
    with pytest.raises(OSError):
        async with client(["/nonexistent/program"]):
            pass
    with pytest.raises(ConnectionClosed):
        async with client([sys.executable, "-c", "raise SystemExit(4)"]):
            pass


@coroutine
async def test_the_child_sees_what_it_is_given_and_its_stderr_is_heard() -> None:
    code = """
import os, sys, mcpbolt
s = mcpbolt.Server('env')
print('to stdout')
@s.tool
def env() -> dict:
    print('hello')
    return {'here': os.getcwd(), 'given': os.environ.get('GIVEN'), 'secret': os.environ.get('SECRET')}
s.run()
"""
    os.environ["SECRET"] = "1"
    lines: list[str] = []
    async with client(
        [sys.executable, "-c", code.replace("print('to stdout')\n", "")],
        cwd="/tmp", env={"GIVEN": "2"}, on_stderr=lines.append,
    ) as connected:  # fmt: skip
        result = await connected.call_tool("env")
        assert result.structured == {"here": os.path.realpath("/tmp"), "given": "2", "secret": None}
    assert lines == ["hello"]


@coroutine
async def test_the_wire_can_be_traced_without_its_secrets(tmp_path: Path) -> None:
    near, far = tmp_path / "client.log", tmp_path / "server.log"
    server = Server("traced", trace=far)

    @server.tool
    def login(password: str, user: str) -> str:
        return user + password

    async with Client(server, trace=near) as connected:
        assert (await connected.call_tool("login", {"password": "hunter2", "user": "eve"})).text == "evehunter2"
    for path, arrow in ((near, "->"), (far, "<-")):
        (line,) = [line for line in path.read_text().splitlines() if "tools/call" in line]
        assert line.startswith(f"{arrow} {{") and '"password":"***"' in line and '"user":"eve"' in line


@coroutine
async def test_mistakes_are_named() -> None:
    idle = Client(DIAGNOSTIC)
    with pytest.raises(Misuse):
        await idle.ping()
    with pytest.raises(ValueError, match="revision"):
        async with client(DIAGNOSTIC, revision="1999-01-01"):
            pass
    async with client(DIAGNOSTIC) as connected:
        with pytest.raises(ValueError, match="positive"):
            await connected.call_tool("echo", {"text": ""}, timeout=-1)
        with pytest.raises(TypeError):
            await connected.call_tool("echo", {"text": object()})
        with pytest.raises(Misuse):
            await connected.__aenter__()
