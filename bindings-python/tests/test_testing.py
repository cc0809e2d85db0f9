"""`mcpbolt.testing`, and the fixture of pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import pytest

from mcpbolt import Context, Depends, Image, PeerError, Server, Text
from mcpbolt.testing import Progress, client, snapshot
from support import coroutine


def connect() -> Iterator[str]:
    yield "the real one"


def fake() -> str:
    return "a fake"


async def waits() -> str:
    return "it waits"


server = Server("tested", list_changes=True)


@server.tool
def add(a: int, b: int) -> Text:
    "Adds two numbers."
    return Text(str(a + b))


@server.tool
async def work(context: Context, db: Annotated[str, Depends(connect)]) -> dict[str, str]:
    context.progress(1, 2, "half")
    context.info("working")
    return {"db": db}


@server.tool
def draw() -> Image:
    return Image(b"\x89PNG")


@server.resource("memo://one", mime_type="text/plain")
def one() -> str:
    return "1"


@server.prompt
def poem(about: str) -> str:
    return f"of {about}"


REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_test_without_async_calls_reads_and_hears_all(revision: str) -> None:
    with client(server, revision=revision) as test:
        assert test.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert test.call_tool("work").text == '{"db":"the real one"}'
        assert test.progress[0][:2] == (1, 2) and [log["data"] for log in test.logs] == ["working"]
        assert test.read_resource("memo://one")[0].text == "1"
        assert test.get_prompt("poem", {"about": "x"}).messages[0].text == "of x"
        assert [tool.name for tool in test.list_tools()] == ["add", "work", "draw"]
        assert test.run(test.client.list_resource_templates()) == []
        with pytest.raises(PeerError):
            test.call_tool("none")


@coroutine
async def test_so_does_one_with_async() -> None:
    async with client(server, revision="2025-11-25") as test:
        assert (await test.call_tool("work")).structured == {"db": "the real one"}
        assert test.progress == [Progress(1, 2, "half")]
        server.tool(name="new")(lambda: "")
        server.remove_tool("new")
        await test.call_tool("add", {"a": 1, "b": 2})
        assert ("list_changed", "tools") in test.notifications


def test_dependencies_are_overridden_for_one_client_alone() -> None:
    with client(server, overrides={connect: fake}) as test, client(server) as other:
        assert test.call_tool("work").text == '{"db":"a fake"}'
        assert other.call_tool("work").text == '{"db":"the real one"}'
    with pytest.raises(TypeError, match="waits waits, and connect does not"):
        client(server, overrides={connect: waits})


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_snapshots_are_the_same_in_each_revision(revision: str) -> None:
    with client(server, revision=revision) as test:
        assert snapshot(test.list_tools())[0] == {
            "description": "Adds two numbers.",
            "inputSchema": {
                "additionalProperties": False,
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
                "type": "object",
            },
            "name": "add",
        }
        assert snapshot(test.call_tool("draw")) == {
            "content": [{"data": "iVBORw==", "mimeType": "image/png", "type": "image"}]
        }
        assert snapshot(test.call_tool("work"))["structured"] == {"db": "the real one"}
        assert snapshot(test.read_resource("memo://one")) == [
            {"mimeType": "text/plain", "text": "1", "uri": "memo://one"}
        ]
        assert snapshot(test.get_prompt("poem", {"about": "x"})) == {
            "messages": [{"content": {"text": "of x", "type": "text"}, "role": "user"}]
        }
        with pytest.raises(PeerError) as raised:
            test.call_tool("none")
        assert snapshot(raised.value) == {"code": -32602, "message": 'unknown tool "none"'}


def test_snapshots_keep_null_within_data() -> None:
    server = Server("nulls")

    @server.tool
    def found() -> dict[str, Any]:
        return {"name": None, "all": [{"of": None}]}

    @server.tool
    def refused() -> None:
        raise PeerError(-32602, "no", {"field": None})

    server.tool(name="absent")(lambda x=None: "")
    with client(server) as test:
        assert snapshot(test.call_tool("found"))["structured"] == {"name": None, "all": [{"of": None}]}
        assert snapshot(test.list_tools()[2])["inputSchema"]["properties"]["x"] == {"default": None}
        assert "title" not in snapshot(test.list_tools()[2])
    assert snapshot(PeerError(-32602, "no", {"field": None})) == {"code": -32602, "data": {"field": None}, "message": "no"}


def test_a_server_that_cannot_start_says_so_where_it_was_connected() -> None:
    @asynccontextmanager
    async def broken(server: Server) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    with pytest.raises(OSError, match="no database"):
        with client(Server("broken", lifespan=broken)):
            raise AssertionError("it does not start")


PLUGGED = """
from mcpbolt import Server

server = Server("plugged")

@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)

def test_add(mcp_client):
    test, other = mcp_client(server), mcp_client(server, revision="2025-11-25")
    assert test.call_tool("add", {"a": 1, "b": 2}).text == "3"
    assert other.client.server_info.revision == "2025-11-25"
"""


def test_pytest_has_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_plugged.py").write_text(PLUGGED)
    installed = any(one.name == "mcpbolt" for one in entry_points(group="pytest11"))
    loaded: list[str] = [] if installed else ["-p", "mcpbolt._pytest"]
    command: list[Any] = [sys.executable, "-m", "pytest", "-q", *loaded, tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr
