"""A panic of the engine's answers the call at hand with an error; the next call is served as ever."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpbolt import Client, Context, McpError, PeerError, Server, _core
from mcpbolt.chain import External, Front, Middleware, Next

from support import coroutine

panic_at: Callable[[str], None] | None = getattr(_core, "_panic_at", None)
armed = pytest.mark.skipif(panic_at is None, reason="a build without debug assertions has no such places")

SERVED = ["call", "worker", "bridge", "event", "answer"]
"""Where a call of a tool passes on the server's side; the first on a worker, the last two on the event loop."""


def made() -> Server:
    server = Server("panics", subscriptions=True)

    @server.tool
    def plain(text: str) -> str:
        return text

    @server.tool
    async def task(text: str, context: Context) -> str:
        context.log("info", text)
        return text

    @server.resource("memo://one")
    def one() -> str:
        return "a memo"

    return server


@asynccontextmanager
async def connected(carrier: str, **options: Any) -> AsyncIterator[Client]:
    server = made()
    if carrier == "pair":
        async with Client(server, **options) as client:
            yield client
    else:
        async with server.listening("http://127.0.0.1:0/mcp") as address, Client(address, **options) as client:
            yield client


async def works(client: Client) -> None:
    for tool in ("plain", "task"):
        result = await client.call_tool(tool, {"text": "as ever"}, timeout=20)
        assert result.text == "as ever", tool


@armed
@pytest.mark.parametrize("carrier", ["pair", "http"])
@pytest.mark.parametrize("place", SERVED)
@coroutine
async def test_a_panic_of_the_server_answers_the_call(place: str, carrier: str) -> None:
    assert panic_at is not None
    async with connected(carrier) as client:
        await works(client)
        tool = "task" if place in ("event", "answer") else "plain"
        panic_at(place)
        if place == "worker":
            # No call is at hand then.
            assert (await client.call_tool("plain", {"text": "x"}, timeout=20)).text == "x"
        else:
            with pytest.raises(PeerError, match=f"the engine panicked: as a test wants, at {place}"):
                await client.call_tool(tool, {"text": "x"}, timeout=20)
        panic_at("nowhere")
        await works(client)
        assert (await client.read_resource("memo://one"))[0].text == "a memo"


@armed
@pytest.mark.parametrize("place", ["request", "news"])
@coroutine
async def test_a_panic_of_the_client_fails_the_request(place: str) -> None:
    assert panic_at is not None
    async with connected("pair") as client:
        await works(client)
        panic_at(place)
        with pytest.raises(McpError, match=f"the engine panicked: as a test wants, at {place}"):
            await client.call_tool("plain", {"text": "x"}, timeout=20)
        await works(client)


@armed
@coroutine
async def test_a_panic_on_the_way_to_a_server_is_told() -> None:
    assert panic_at is not None
    async with made().listening("http://127.0.0.1:0/mcp") as address:
        panic_at("open")
        with pytest.raises(OSError, match="the engine panicked"):
            async with Client(address):
                pass
        async with Client(address) as client:
            await works(client)


@armed
@coroutine
async def test_a_panic_on_the_way_to_middleware_fails_the_request_and_the_sender_is_not_told_its_text() -> None:
    assert panic_at is not None

    class Passing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            return await next(message)

    async with Client(Front(External(made()), middleware=[Passing()])) as client:
        await works(client)
        panic_at("handoff")
        with pytest.raises(PeerError) as refused:
            await client.call_tool("plain", {"text": "x"}, timeout=20)
        assert refused.value.message == "the middleware failed unexpectedly"
        await works(client)


@armed
@coroutine
async def test_a_panic_while_a_long_text_is_read_leaves_the_collector_at_work() -> None:
    assert panic_at is not None
    server = Server("long")

    @server.tool
    def long(times: int) -> dict[str, str]:
        return {"text": "x" * times}

    async with Client(server) as client:
        panic_at("read")
        with pytest.raises(McpError, match="the engine panicked"):
            (await client.call_tool("long", {"times": 100_000})).structured
        assert gc.isenabled()
        assert (await client.call_tool("long", {"times": 100_000})).structured == {"text": "x" * 100_000}


@pytest.mark.parametrize("how", ["larger", "smaller", "other keys"])
@coroutine
async def test_a_dict_that_changes_while_it_is_written_fails_its_call_alone(how: str) -> None:
    server = Server("changes")

    @server.tool
    def changing(is_changed: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}

        class Day(Mapping[str, str]):
            def __iter__(self) -> Iterator[str]:
                return iter(["is"])

            def __len__(self) -> int:
                return 1

            def __getitem__(self, key: str) -> str:
                if is_changed and how != "smaller":
                    result[f"a{len(result)}"] = 1
                if is_changed and how != "larger":
                    result.pop("last", None)
                return "a day"

        result.update(day=Day(), last=1)
        return result

    @server.tool
    async def also(is_changed: bool) -> dict[str, Any]:
        return changing(is_changed)

    async with Client(server) as client:
        for name in ("changing", "also"):
            result = await client.call_tool(name, {"is_changed": True}, timeout=20)
            assert result.is_error or how == "other keys"
            result = await client.call_tool(name, {"is_changed": False}, timeout=20)
            assert result.structured == {"day": {"is": "a day"}, "last": 1}


@armed
@coroutine
async def test_a_panic_in_what_a_handler_asks_of_its_context_is_the_handlers_failure() -> None:
    assert panic_at is not None
    server = Server("context")

    @server.tool
    async def task(context: Context) -> str:
        context.log("info", "x")
        return "done"

    @server.tool
    def plain(context: Context) -> str:
        context.log("info", "x")
        return "done"

    async with Client(server) as client:
        for tool in ("task", "plain"):
            panic_at("log")
            try:
                result = await client.call_tool(tool, timeout=20)
            except PeerError as error:
                assert "the engine panicked" in str(error)
            else:
                assert result.is_error
            assert (await client.call_tool(tool, timeout=20)).text == "done"


def test_a_panic_ends_no_event_loop() -> None:
    if panic_at is None:
        pytest.skip("a build without debug assertions has no such places")

    async def main() -> list[object]:
        async with connected("http") as client:
            for place in SERVED * 3:
                panic_at(place)
                calls = [client.call_tool(tool, {"text": "x"}, timeout=20) for tool in ("plain", "task") * 20]
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
                assert len(failed) <= 1 and all(isinstance(one, PeerError) for one in failed), failed
            await works(client)
            return failed

    asyncio.run(main())
