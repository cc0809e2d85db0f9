"""Tools: what functions are called with, and what becomes of what they give back."""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from mcpbolt import (
    Audio,
    Client,
    Context,
    EmbeddedResource,
    Image,
    PeerError,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
    ToolError,
    ToolResult,
)
from support import coroutine


@dataclass
class Point:
    x: int
    y: float = 0.5


class Movie(TypedDict):
    title: str


class Colour(enum.Enum):
    RED = "red"


async def given(value: Any, revision: str = "2025-11-25") -> Any:
    """The result of a tool that gives back that value."""
    server = Server("values")
    server.tool(name="tool")(lambda: value)
    async with Client(server, revision=revision) as client:
        return await client.call_tool("tool")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain \"text\"\n\x00 ä 漢 \U0001f600", [Text("plain \"text\"\n\x00 ä 漢 \U0001f600")]),
        (None, []),
        (7, [Text("7")]),
        (2**70, [Text(str(2**70))]),
        (0.1, [Text("0.1")]),
        (True, [Text("true")]),
        ([], []),
        (["a", "b"], [Text("a"), Text("b")]),
        ([1, {"a": None}], [Text('[1,{"a":null}]')]),
        (Image(b"\x00\xff", "image/webp"), [Image(b"\x00\xff", "image/webp")]),
        ([Audio(b"abc"), "text"], [Audio(b"abc"), Text("text")]),
        (ResourceLink("file:///a", "a"), [ResourceLink("file:///a", "a")]),
        (ResourceContents("a:b", "text"), [EmbeddedResource(ResourceContents("a:b", "text"))]),
    ],
)
def test_values_become_content(value: Any, content: list[Any]) -> None:
    result = asyncio.run(given(value))
    assert result.content == content
    assert not result.is_error


def test_bytes_become_an_embedded_resource() -> None:
    (block,) = asyncio.run(given(b"\x00\x01")).content
    assert block.resource.blob == b"\x00\x01"


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"a": [1, 2.5, None, "x"]}, {"a": [1, 2.5, None, "x"]}),
        (Point(1), {"x": 1, "y": 0.5}),
        ({1: {2.5: None}}, {"1": {"2.5": None}}),
        ({"nested": Point(1, 2), "set": {3}, "colour": Colour.RED}, {"nested": {"x": 1, "y": 2}, "set": [3], "colour": "red"}),
    ],
)
def test_objects_become_structured_content_and_its_text(value: Any, structured: Any) -> None:
    import json

    result = asyncio.run(given(value))
    assert result.structured == structured
    assert json.loads(result.text) == structured
    older = asyncio.run(given(value, "2024-11-05"))
    assert older.structured is None and json.loads(older.text) == structured


@pytest.mark.parametrize("value", [float("nan"), {b"\xff": 2}, "\ud800"])
def test_what_json_cannot_carry_is_an_error_and_the_server_lives(value: Any) -> None:
    result = asyncio.run(given(value))
    assert result.is_error and result.text == "the tool failed unexpectedly"


def test_a_tool_may_say_everything() -> None:
    result = asyncio.run(given(ToolResult(["a", Image(b"b")], {"c": 1}, is_error=True)))
    assert (result.content, result.structured, result.is_error) == ([Text("a"), Image(b"b")], {"c": 1}, True)


@coroutine
async def test_failures_are_told_only_when_meant_to_be(capsys: pytest.CaptureFixture[str] | None = None) -> None:
    server = Server("failing")

    @server.tool
    def plain() -> None:
        raise ValueError("a secret")

    @server.tool
    async def task() -> None:
        raise KeyError("a secret")

    @server.tool
    def meant() -> None:
        raise ToolError("the disk is full")

    @server.tool
    async def leaving() -> None:
        raise SystemExit(3)

    async with Client(server) as client:
        for name in ("plain", "task", "leaving"):
            result = await client.call_tool(name)
            assert result.is_error and result.text == "the tool failed unexpectedly"
        result = await client.call_tool("meant")
        assert result.is_error and result.text == "the disk is full"
        with pytest.raises(PeerError) as caught:
            await client.call_tool("missing")
        assert caught.value.code == -32602


@coroutine
async def test_arguments_arrive_as_their_hints_say() -> None:
    server = Server("arguments")
    seen: dict[str, Any] = {}

    @server.tool
    def take(
        whole: int, big: int, point: Point, movie: Movie, colour: Colour, points: list[Point], maybe: Point | None = None, rest: str = "r"
    ) -> None:
        seen.update(locals())

    async with Client(server) as client:
        arguments = {
            "whole": 3.0,
            "big": 2**70,
            "point": {"x": 1},
            "movie": {"title": "M"},
            "colour": "red",
            "points": [{"x": 2, "y": 3}],
        }
        result = await client.call_tool("take", arguments)
        assert not result.is_error, result.text
        assert type(seen["whole"]) is int
        assert seen["big"] == 2**70
        assert seen["point"] == Point(1, 0.5)
        assert seen["movie"] == {"title": "M"}
        assert seen["colour"] is Colour.RED
        assert seen["points"] == [Point(2, 3)]
        assert seen["maybe"] is None and seen["rest"] == "r"
        wrong = await client.call_tool("take", arguments | {"colour": "blue"})
        assert wrong.is_error and wrong.text == (
            "invalid arguments for tool \"take\": 1 validation error: colour: Input should be 'red' [type=enum]"
        )


@coroutine
async def test_arguments_that_nobody_takes_are_refused_unless_the_schema_allows_them() -> None:
    """R-TOL-05: a schema that does not close its object allows more than the function takes."""
    server = Server("arguments", "1")
    closed = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    allowing = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def add(a: int, context: Context, b: int = 2) -> str:
        return f"{a + b} in {context.revision}"

    server.tool(add)
    server.tool(name="waiting")(_awaited(add))
    server.tool(name="closed", input_schema=closed)(lambda a: str(a))
    server.tool(name="open", input_schema=allowing)(lambda a: str(a))
    async with Client(server, revision="2025-11-25") as client:
        for tool in ("add", "waiting"):
            assert (await client.call_tool(tool, {"a": 1})).text == "3 in 2025-11-25"
            result = await client.call_tool(tool, {"a": 1, "context": "mine", "self": None})
            extra = "Unexpected keyword argument [type=unexpected_keyword_argument]"
            why = f"2 validation errors: context: {extra}; self: {extra}"
            assert result.is_error and result.text == f'invalid arguments for tool "{tool}": {why}'
        assert (await client.call_tool("open", {"a": 1, "c": 3})).text == "1"
        refused = await client.call_tool("closed", {"a": 1, "c": 3})
        assert refused.is_error and "'c'" in refused.text, refused.text


def _awaited(function: Any) -> Any:
    async def awaited(a: int, context: Context, b: int = 2) -> str:
        text: str = function(a, context, b)
        return text

    return awaited


@coroutine
async def test_every_json_value_survives_the_way_there_and_back() -> None:
    server = Server("mirror")

    @server.tool
    def mirror(value: Any) -> Any:
        return {"value": value}

    values = [
        0, -1, 2**53, -(2**63), 2**64, 10**30, 0.1, 1e300, -0.0, 5e-324, 1.7976931348623157e308, True, None, "",
        "\\\"\b\f\n\r\t/ \x01 ä 漢 \U0001f600", [], {}, [[[]]], {"": {"a" * 100: [None]}}, {"k" * 70: 1},
    ]  # fmt: skip
    async with Client(server) as client:
        for value in values:
            back = (await client.call_tool("mirror", {"value": value})).structured["value"]
            assert back == value and repr(back) == repr(value)
        large = [{"key": i, "text": "x" * 50} for i in range(5000)]
        assert (await client.call_tool("mirror", {"value": large})).structured == {"value": large}


@coroutine
async def test_where_functions_run() -> None:
    server = Server("threads")
    here = threading.get_ident()
    server.tool(name="worker")(lambda: threading.get_ident())
    server.tool(name="inline", inline=True)(lambda: threading.get_ident())

    @server.tool
    async def task() -> int:
        return threading.get_ident()

    async with Client(server) as client:
        assert (await client.call_tool("worker")).text != str(here)
        assert (await client.call_tool("inline")).text == str(here)
        assert (await client.call_tool("task")).text == str(here)


@coroutine
async def test_blocking_tools_do_not_wait_for_each_other() -> None:
    server = Server("blocking")
    both = threading.Barrier(5)
    server.tool(name="meet")(lambda: str(both.wait(10) >= 0))
    async with Client(server) as client:
        results = await asyncio.gather(*(client.call_tool("meet") for _ in range(5)))
        assert [result.text for result in results] == ["True"] * 5


@coroutine
async def test_a_quick_answer_does_not_wait_for_a_slow_call() -> None:
    server = Server("slow and quick")
    release = threading.Event()

    @server.tool
    def maybe(wait: bool) -> str:
        return str(release.wait(10)) if wait else "quick"

    async with Client(server) as client:
        for _ in range(20):
            await client.call_tool("maybe", {"wait": False})
        quick = asyncio.ensure_future(client.call_tool("maybe", {"wait": False}))
        slow = asyncio.ensure_future(client.call_tool("maybe", {"wait": True}))
        assert (await asyncio.wait_for(quick, 1)).text == "quick"
        assert not slow.done()
        release.set()
        assert (await slow).text == "True"


@coroutine
async def test_the_lifespan_surrounds_the_calls_and_contexts_do_not_leak() -> None:
    steps: list[str] = []
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[dict[str, str]]:
        steps.append("begin")
        variable.set("from the lifespan")
        yield {"name": server.name}
        steps.append("end")

    server = Server("lively", lifespan=lifespan)

    @server.tool
    def plain(context: Context) -> str:
        before = variable.get()
        variable.set("changed")
        return f"{context.state['name']} {before}"

    @server.tool
    async def task(context: Context) -> str:
        return plain(context)

    async with Client(server) as client:
        for name in ("plain", "task", "plain", "task"):
            assert (await client.call_tool(name)).text == "lively from the lifespan"
        assert steps == ["begin"]
    assert steps == ["begin", "end"]


@coroutine
async def test_progress_and_log_messages_come_before_the_answer() -> None:
    server = Server("talkative")
    logged: list[dict[str, Any]] = []

    @server.tool
    def work(context: Context) -> str:
        for i in range(3):
            context.progress(i, 3, f"step {i}")
        context.log("warning", {"what": "it"}, "logger")
        context.log("debug", "too little")
        with pytest.raises(ValueError, match="one of debug"):
            context.log("loud", "")
        return context.revision

    seen: list[Any] = []
    async with Client(server, revision="2025-06-18", on_log=logged.append) as client:
        await client.set_log_level("info")
        result = await client.call_tool("work", on_progress=lambda *news: seen.append(news))
        assert result.text == "2025-06-18"
        assert seen == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]
        assert logged == [{"level": "warning", "logger": "logger", "data": {"what": "it"}}]


@coroutine
async def test_a_log_level_is_that_of_its_connection() -> None:
    server = Server("talkative")
    logged: list[dict[str, Any]] = []

    @server.tool
    def work(context: Context) -> None:
        context.log("warning", "it")

    for revision in ("2025-06-18", "2026-07-28"):
        logged.clear()
        client = Client(server, revision=revision, on_log=logged.append)
        async with client:
            await client.set_log_level("error")
            await client.call_tool("work")
            assert logged == []
            await client.set_log_level("info")
            await client.call_tool("work")
            assert logged == [{"level": "warning", "data": "it"}]
        async with client:
            await client.call_tool("work")
        # A client that sets no level gets all messages; from 2026-07-28 on, none.
        assert len(logged) == (2 if revision == "2025-06-18" else 1)


@coroutine
async def test_a_task_that_cannot_start_is_answered_and_takes_no_other_along() -> None:
    server = Server("refusing")
    loop = asyncio.get_running_loop()

    @server.tool
    async def task() -> str:
        return "done"

    def refuse(loop: Any, coroutine: Any, **options: Any) -> Any:
        coroutine.close()
        raise RuntimeError("no more tasks")

    async with Client(server) as client:
        call = asyncio.gather(*(client.call_tool("task") for _ in range(3)))
        await asyncio.sleep(0)
        loop.set_task_factory(refuse)
        try:
            assert [result.is_error for result in await call] == [True] * 3
        finally:
            loop.set_task_factory(None)
