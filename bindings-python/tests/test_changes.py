"""Offers that change, resources that are watched, arguments that are completed."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from mcpbolt import Client, CompletionRequest, Misuse, PeerError, Server, Unsupported
from support import coroutine

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_what_is_offered_changes_while_clients_are_connected(revision: str) -> None:
    """R-TOL-07, R-PRM-07, R-SUB-01: clients are told, and see what is offered now."""
    server = Server("shop", list_changes=True)
    told: list[str] = []

    async with Client(server, revision=revision, on_list_changed=told.append) as client:
        assert await client.list_tools() == []

        async def change() -> None:
            @server.tool
            def order(what: str) -> str:
                return f"ordered {what}"

            await until(lambda: told == ["tools"])
            assert [tool.name for tool in await client.list_tools()] == ["order"]
            assert (await client.call_tool("order", {"what": "tea"})).text == "ordered tea"
            server.prompt(name="ask")(lambda: "?")
            await until(lambda: told == ["tools", "prompts"])
            server.remove_tool("order")
            await until(lambda: told == ["tools", "prompts", "tools"])
            assert await client.list_tools() == []
            with pytest.raises(LookupError):
                server.remove_tool("order")

        if revision == "2026-07-28":
            async with client.listen(tools=True, prompts=True):
                await change()
            server.tool(name="late")(lambda: "")
            await client.ping()
            assert told == ["tools", "prompts", "tools"]
        else:
            await change()
            with pytest.raises(Unsupported):
                async with client.listen(tools=True):
                    pass


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_who_subscribes_is_told_of_updates(revision: str) -> None:
    """R-RES-06, R-SUB-05."""
    server = Server("weather", subscriptions=True)
    told: list[str] = []

    @server.resource("weather://today")
    def today() -> str:
        return "rain"

    @server.resource("weather://{place}/now")
    def now(place: str) -> str:
        return place

    async with Client(server, revision=revision, on_resource_updated=told.append) as client:
        server.resource_updated("weather://today")
        await client.subscribe("weather://today")
        await client.subscribe("weather://bonn/now")
        server.resource_updated("weather://today")
        server.resource_updated("weather://bonn/now")
        await until(lambda: told == ["weather://today", "weather://bonn/now"])
        await client.unsubscribe("weather://today")
        await client.ping()
        server.resource_updated("weather://today")
        server.resource_updated("weather://bonn/now")
        await until(lambda: len(told) == 3)
        assert told[2] == "weather://bonn/now"
    with pytest.raises(Misuse):
        Server("deaf").resource_updated("weather://today")
    async with Client(Server("deaf"), revision=revision) as client:
        with pytest.raises(Unsupported):
            await client.subscribe("weather://today")


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_arguments_are_completed(revision: str) -> None:
    """R-CMP-01 to R-CMP-03."""
    server = Server("files")
    context: list[dict[str, str]] = []

    @server.prompt
    def greet(to: str, language: str = "en") -> str:
        return f"Hello {to}"

    @server.resource("file:///{path}")
    def file(path: str) -> str:
        return path

    @server.completion
    def complete(request: CompletionRequest) -> list[str]:
        context.append(request.context)
        kind = request.prompt or request.uri
        return [f"{request.value}{i} {request.argument} {kind}" for i in range(150 if request.uri else 2)]

    async with Client(server, revision=revision) as client:
        (prompt,), (template,) = await client.list_prompts(), await client.list_resource_templates()
        found = await client.complete(prompt, "to", "W", {"language": "de"})
        assert (found.values, found.total, found.has_more) == (["W0 to greet", "W1 to greet"], 2, False)
        found = await client.complete(template, "path", "a")
        assert (len(found.values), found.total, found.has_more) == (100, 150, True)
        assert found.values[0] == "a0 path file:///{path}"
    assert context == [{} if revision == "2024-11-05" else {"language": "de"}, {}]


@coroutine
async def test_a_completion_that_clients_could_not_learn_of_is_refused() -> None:
    """R-CMP-01."""

    def complete(request: CompletionRequest) -> list[str]:
        return [request.value]

    fixed, changing = Server("fixed"), Server("changing", list_changes=True)
    for server in (fixed, changing):
        server.prompt(name="greet")(lambda to: f"Hello {to}")
        async with Client(server) as client:
            (prompt,) = await client.list_prompts()
            with pytest.raises(Unsupported):
                await client.complete(prompt, "to", "W")
    fixed.completion(complete)
    async with Client(fixed) as client:
        assert (await client.complete(prompt, "to", "W")).values == ["W"]
    with pytest.raises(Misuse):
        changing.completion(complete)


@coroutine
async def test_what_is_offered_no_longer_is_not_held() -> None:
    server = Server("shop", list_changes=True)
    server.tool(name="other")(lambda: "other")
    functions = []

    def add(name: str) -> None:
        def function() -> str:
            return name

        functions.append(weakref.ref(function))
        server.tool(name=name)(function)

    async with Client(server) as client:
        for name in "ab":
            add(name)
            assert (await client.call_tool(name)).text == name
        server.remove_tool("a")
        assert (await client.call_tool("other")).text == "other"
        gc.collect()
        assert [function() is None for function in functions] == [True, False]
        assert (await client.call_tool("b")).text == "b"


@coroutine
async def test_offers_without_connections_are_not_held() -> None:
    """Notifications to subscribers do not keep earlier offers alive."""
    server = Server("weather", subscriptions=True)
    told: list[str] = []
    server.resource("weather://today")(lambda: "rain")

    def old() -> str:
        return "old"

    server.tool(old)
    function = weakref.ref(old)
    del old
    async with Client(server, revision="2025-11-25") as client:
        assert (await client.call_tool("old")).text == "old"
    server.remove_tool("old")
    async with Client(server, revision="2025-11-25", on_resource_updated=told.append) as client:
        await client.subscribe("weather://today")
        while function() is not None:
            server.tool(name="new")(lambda: "new")
            async with Client(server) as other:
                assert (await other.call_tool("new")).text == "new"
            server.remove_tool("new")
            gc.collect()
        server.resource_updated("weather://today")
        await until(lambda: told == ["weather://today"])


@coroutine
async def test_what_the_lifespan_offers_is_offered() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        server.tool(name="ready")(lambda: "ready")
        yield

    async with Client(Server("late", lifespan=lifespan)) as client:
        assert (await client.call_tool("ready")).text == "ready"


@coroutine
async def test_what_is_under_way_is_finished_when_it_is_removed() -> None:
    """R-TOL-07, R-RES-05: a resource is read by the template that was there when it was asked for."""
    server = Server("users", list_changes=True)

    @server.resource("users://{id}")
    async def user(id: str) -> str:
        return f"user {id}"

    async with Client(server) as client:
        assert (await client.read_resource("users://6"))[0].text == "user 6"
        reading = asyncio.ensure_future(client.read_resource("users://7"))
        await asyncio.sleep(0)
        time.sleep(0.1)  # the engine has it, this loop has not
        server.remove_resource_template("users://{id}")
        assert (await reading)[0].text == "user 7"
        with pytest.raises(PeerError):
            await client.read_resource("users://8")


@coroutine
async def test_calls_are_answered_while_their_tool_comes_and_goes() -> None:
    server = Server("shop", list_changes=True)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            server.tool(name="now and then")(lambda: "here")
            server.remove_tool("now and then")

    async def call() -> str:
        try:
            return (await client.call_tool("now and then")).text
        except PeerError as error:
            assert error.code == -32602
            return error.message

    changing = threading.Thread(target=change)
    async with Client(server) as client:
        changing.start()
        try:
            answers = set()
            for _ in range(100):
                answers.update(await asyncio.gather(*(call() for _ in range(20))))
        finally:
            stop.set()
            changing.join()
    assert "here" in answers


@coroutine
async def test_lists_come_page_by_page() -> None:
    """R-PAG-01."""
    server = Server("many")
    for i in range(3):
        server.tool(name=f"tool-{i}")(lambda: "")
    async with Client(server) as client:
        pages = [[tool.name for tool in page] async for page in client.tool_pages()]
        assert pages == [["tool-0", "tool-1", "tool-2"]]
