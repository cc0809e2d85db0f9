"""Connections whose messages the engine carries, with a session of the test in the place of the SDK's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import types
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from mcpbolt._asgi import AsgiApp
from mcpbolt.mcp import _carried
from mcpbolt.mcp._carried import Carried, Link
from support import coroutine
from test_asgi import served
from wire import Wire, call

CLOSED = {"code": -32000, "message": "Connection closed"}
UNSENDABLE = {"code": -32603, "message": "the result cannot be sent as JSON"}
SERVER = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "own", "version": "1"}}


def whole(message: Any) -> Any:
    """The message as the SDK has it: up to 1.x within a model."""
    made: Any = types.JSONRPCMessage
    return SessionMessage(made(message) if isinstance(made, type) else message)


def question(id: str, related: Any) -> SessionMessage:
    made = whole(types.JSONRPCRequest(jsonrpc="2.0", id=id, method="roots/list", params={"_meta": {"own": id}}))
    return SessionMessage(made.message, ServerMessageMetadata(related_request_id=related))


async def session(link: Link, answers: list[Any]) -> None:
    """Answers each request with the params that it has; `end` ends it. Keeps the answers that it gets."""
    try:
        async for item in link.reading:
            message: Any = getattr(item.message, "root", item.message)
            if not hasattr(message, "method"):
                answers.append(message)
                continue
            if message.method == "end":
                return
            if not hasattr(message, "id"):
                continue
            answer: Any
            if message.method == "tools/call":
                for name in message.params["arguments"].get("asks", ()):
                    await link.writing.send(question(name, message.id))
                for name in message.params["arguments"].get("gives_up", ()):
                    params = {"requestId": name}
                    told = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
                    await link.writing.send(whole(told))
                text = "\ud800" if message.params["name"] == "result" else "fine"
                result = {"content": [{"type": "text", "text": text}]}
                answer = types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
                if message.params["name"] == "error":
                    told = types.ErrorData(code=1, message="with data", data={"text": "\ud800"})
                    answer = types.JSONRPCError(jsonrpc="2.0", id=message.id, error=told)
            else:
                answer = types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=SERVER)
            await link.writing.send(whole(answer))
    finally:
        link.give_up()


class Sessions:
    def __init__(self) -> None:
        self.links: list[Link] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.answers: list[Any] = []

    def opened(self, link: Link, request: object) -> None:
        self.links.append(link)
        self.tasks.append(asyncio.ensure_future(session(link, self.answers)))


@asynccontextmanager
async def carried(sessions: Sessions) -> AsyncIterator[Any]:
    """Gives functions that call a tool within one HTTP session, and that end its session here."""
    app = AsgiApp(Carried("own", sessions.opened), "/mcp", 1.0, None)
    async with served(app) as address, await Wire.open(address) as wire:
        headers = await wire.begin("2025-11-25")

        async def ask(id: int, tool: str, messages: list[Any] | None = None, **arguments: Any) -> Any:
            answer = await wire.post(call(id, tool, **arguments), **headers)
            if answer.headers["content-type"] == "application/json":
                return await answer.json()
            said = [message async for message in answer.events()]
            if messages is not None:
                messages += said
            return said[-1]

        yield ask, lambda: wire.post({"jsonrpc": "2.0", "method": "end"}, **headers)


@coroutine
async def test_a_result_that_is_no_json_is_an_error_of_its_request_alone() -> None:
    sessions = Sessions()
    async with carried(sessions) as (ask, _):
        for id, name in enumerate(("result", "error")):
            assert (await ask(id, name))["error"] == UNSENDABLE
        assert (await ask(3, "good"))["result"]["content"][0]["text"] == "fine"
        assert not sessions.links[0].open


@coroutine
async def test_requests_after_the_end_of_their_session_are_refused() -> None:
    sessions = Sessions()
    async with carried(sessions) as (ask, end):
        assert (await end()).status == 202
        await asyncio.wait_for(sessions.tasks[0], 20)
        for id in (2, 3):
            assert (await ask(id, "good"))["error"] == CLOSED
        assert not sessions.links[0].open


@pytest.mark.parametrize("most", [1, 3])
@coroutine
async def test_a_question_that_a_session_gives_up_is_cancelled(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number that the client knows: when the session says so, or has too many open questions."""
    monkeypatch.setattr(_carried, "MOST_ASKED", most)
    sessions, said = Sessions(), []
    async with carried(sessions) as (ask, _):
        await ask(1, "good", said, asks=["a", "b"], gives_up=["a"] if most > 1 else [])
        asked = {one["params"]["_meta"]["own"]: one["id"] for one in said if one.get("method") == "roots/list"}
        given_up = [one["params"]["requestId"] for one in said if one.get("method") == "notifications/cancelled"]
        assert {*asked} == {"a", "b"} and given_up == [asked["a"]], said
        assert [*sessions.links[0]._asked] in (["b"], [])
        # A session that gave it up itself expects no answer.
        refused = [one.id for one in sessions.answers if "questions are open" in one.error.message]
        assert refused == (["a"] if most == 1 else [])
