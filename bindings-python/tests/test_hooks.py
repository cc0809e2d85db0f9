"""Hooks of middleware that take too long."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest

from mcpbolt import Client, Context, McpError, PeerError, RequestCancelled, Server
from mcpbolt._hooks import HookRunner
from mcpbolt.chain import External, Front, Middleware, Next
from support import SECONDS, coroutine

LIMIT = 0.2
"""A limit that hooks exceed."""


def inner() -> Server:
    server = Server("inner")

    @server.tool
    def say(what: str) -> str:
        return what

    @server.tool
    async def slow() -> str:
        await asyncio.sleep(3 * LIMIT)
        return "slow"

    @server.tool
    async def stuck() -> None:
        await asyncio.sleep(SECONDS * 10)

    @server.tool
    def log(context: Context) -> str:
        context.info("one")
        return "logged"

    return server


class Stuck(Middleware):
    """Never returns from one of its hooks."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.ended: list[str] = []

    async def wait(self, where: str) -> None:
        if where != self.where:
            return
        try:
            await asyncio.sleep(SECONDS * 10)
        finally:
            self.ended.append(where)

    async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
        await self.wait("request")
        response = await next(message)
        await self.wait("after")
        return response

    async def response(self, message: dict[str, Any], next: Next) -> None:
        await self.wait("response")
        await next(message)

    async def notification(self, message: dict[str, Any], next: Next) -> None:
        await self.wait("notification")
        await next(message)


# R-CHN-08
@pytest.mark.parametrize("where", ["request", "after", "response"])
@coroutine
async def test_a_hook_that_never_returns_is_an_error_that_names_its_middleware(where: str) -> None:
    stuck = Stuck(where)
    async with Client(Front(External(inner()), middleware=[stuck], hook_timeout=LIMIT)) as client:
        with pytest.raises(PeerError, match=r"the middleware Stuck did not finish within 0\.2 s") as late:
            await client.call_tool("say", {"what": "hello"})
        assert late.value.code == -32603
        while not stuck.ended:
            await asyncio.sleep(0.001)
        # Its front goes on.
        stuck.where = ""
        assert (await client.call_tool("say", {"what": "hello"})).text == "hello"
    assert stuck.ended == [where]


@coroutine
async def test_a_notification_whose_hook_never_returns_is_dropped_and_holds_up_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stuck, logs = Stuck("notification"), []  # type: ignore[var-annotated]
    front = Front(External(inner()), middleware=[stuck], hook_timeout=LIMIT)
    with caplog.at_level(logging.ERROR):
        async with Client(front, on_log=lambda log: logs.append(log["data"])) as client:
            await client.set_log_level("debug")
            assert (await client.call_tool("log")).text == "logged"
            while not stuck.ended:
                await asyncio.sleep(0.001)
            stuck.where = ""
            assert (await client.call_tool("log")).text == "logged"
    assert logs == ["one"]
    assert "`notification` of Stuck failed" in [record.message for record in caplog.records]


@coroutine
async def test_the_time_of_the_server_is_not_that_of_the_hook() -> None:
    async with Client(Front(External(inner()), middleware=[Stuck("")], hook_timeout=LIMIT)) as client:
        assert (await client.call_tool("slow")).text == "slow"


@coroutine
async def test_without_a_limit_hooks_take_as_long_as_they_like() -> None:
    class Slow(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            await asyncio.sleep(3 * LIMIT)
            return await next(message)

    async with Client(Front(External(inner()), middleware=[Slow()], hook_timeout=None)) as client:
        assert (await client.call_tool("say", {"what": "late"})).text == "late"


def test_the_limit_counts_under_trio() -> None:
    import trio

    class Stuck(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            await trio.sleep_forever()
            return await next(message)

    async def run() -> None:
        with trio.fail_after(SECONDS):
            async with Client(Front(External(inner()), middleware=[Stuck()], hook_timeout=LIMIT)) as client:
                with pytest.raises(PeerError, match="the middleware Stuck did not finish"):
                    await client.call_tool("say", {"what": "hello"})

    trio.run(run)


def test_a_wrong_limit_is_refused() -> None:
    for limit in [0, -1, float("nan"), float("inf")]:
        with pytest.raises(ValueError, match="hook_timeout"):
            Front(External(inner()), hook_timeout=limit)


class Ahead(Middleware):
    """Answers by itself, while a task of its own waits for the server."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Future[dict[str, Any]]] = []

    async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
        if message["method"] != "tools/call":
            return await next(message)
        self.tasks.append(asyncio.ensure_future(next(message)))
        await asyncio.sleep(0)  # so that it is passed on
        result = {"resultType": "complete", "content": [{"type": "text", "text": "ahead"}]}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}


@coroutine
async def test_a_response_that_a_task_outlives_its_hook_for_is_an_error() -> None:
    ahead = Ahead()
    async with Client(Front(External(inner()), middleware=[ahead])) as client:
        assert (await client.call_tool("slow")).text == "ahead"
        with pytest.raises(RequestCancelled, match="before this response came"):
            await asyncio.wait_for(ahead.tasks[0], SECONDS)


@coroutine
async def test_the_limit_of_a_hook_that_has_ended_does_not_begin_again(caplog: pytest.LogCaptureFixture) -> None:
    ahead = Ahead()
    front = Front(External(inner()), middleware=[ahead], hook_timeout=LIMIT)
    with caplog.at_level(logging.ERROR):
        async with Client(front) as client:
            assert (await client.call_tool("slow")).text == "ahead"
            ahead.tasks[0].cancel()
            await asyncio.sleep(2 * LIMIT)
    assert not [record.message for record in caplog.records if "Ahead" in record.message]


@coroutine
async def test_the_end_of_a_front_ends_what_its_hooks_wait_for() -> None:
    class Stubborn(Middleware):
        """Waits for the server, even when cancelled."""

        runner: HookRunner
        task: asyncio.Future[dict[str, Any]] | None = None

        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            if message["method"] != "tools/call":
                return await next(message)
            self.runner = next._pass.__self__._runner  # type: ignore[attr-defined]
            self.task = asyncio.ensure_future(next(message))
            while not self.task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(self.task)
            return self.task.result()

    stubborn = Stubborn()
    async with Client(Front(External(inner()), middleware=[stubborn], hook_timeout=None)) as client:
        call = asyncio.ensure_future(client.call_tool("stuck"))
        while stubborn.task is None:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)  # so that it waits
        stubborn.runner.close()
        with pytest.raises(RequestCancelled, match="before this response came"):
            await stubborn.task
        with pytest.raises(McpError):
            await call
