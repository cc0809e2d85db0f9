"""Tools that are undone where they fail, and tools whose results are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mcpbolt import (
    ActionError,
    CallToolResult,
    Client,
    Context,
    PeerError,
    Policy,
    Results,
    RetryPolicy,
    Server,
    Steps,
    ToolError,
    ToolResult,
)
from support import coroutine

TAKEN = ["take room", "take car"]
UNDONE = [*TAKEN, "give car", "give room"]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def hotel(log: list[str], is_async: bool) -> Server:
    """Books a room and a car, then ends as it is told to."""
    server = Server("hotel", actions=True, policy=Policy(timeouts={"stay.book": 0.3}))

    def give(step: str) -> None:
        log.append(f"give {step}")
        assert step != "car", "one that fails leaves the others their turn"

    async def give_soon(step: str) -> None:
        await asyncio.sleep(0)
        give(step)

    def steps_of(steps: Steps, undo: Callable[[str], object]) -> None:
        for step in ("room", "car"):
            log.append(f"take {step}")
            steps.taken(lambda step=step: undo(step))  # type: ignore[misc]

    def end(how: str) -> Any:
        if how == "typed":
            raise ActionError("CONFLICT", "taken")
        if how == "raised":
            raise ToolError("no")
        return {"failed": ToolResult("no", is_error=True), "unfit": {"booked": "no"}}.get(how, {"booked": True})

    schema = {"type": "object", "properties": {"booked": {"type": "boolean"}}, "required": ["booked"]}
    tool: Callable[[Any], Any] = server.tool(name="stay.book", description="Books a stay.", output_schema=schema)

    if is_async:

        @tool
        async def book_soon(how: str, steps: Steps) -> Any:
            steps_of(steps, give_soon)
            if how == "late":
                await asyncio.sleep(60)
            return end(how)
    else:

        @tool
        def book(how: str, steps: Steps, context: Context) -> Any:
            steps_of(steps, give)
            while how == "late" and not context.cancelled:
                time.sleep(0.01)
            return end(how)

    return server


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_what_fails_is_undone(is_async: bool) -> None:
    """R-ACT-18: before it is answered, the last step first, for clients of MCP and of actions; what says so is shown."""
    log: list[str] = []
    server = hotel(log, is_async)

    async with Client(server) as caller, Client(server, opening="actions") as actor:

        async def called(how: str) -> CallToolResult:
            return await caller.call_tool("stay.book", {"how": how})

        async def acted(how: str) -> Any:
            return (await actor.action("stay.book", {"how": how}, retry=RetryPolicy(tries=1))).data

        [tool] = await caller.list_tools()
        assert tool.description == "Books a stay. Atomic: what it did is undone where it fails."
        assert tool.input_schema["required"] == ["how"]
        assert (await actor.action_schemas())["stay.book"]["atomic"] == "transactional"

        assert (await called("well")).structured == {"booked": True} and log == TAKEN
        log.clear()
        assert await acted("well") == {"booked": True} and log == TAKEN
        for how in ("typed", "raised", "failed", "unfit"):
            for call in (called, acted):
                log.clear()
                await ends_badly(call(how))
                assert log == UNDONE, (how, call)
        for call in (called, acted):
            log.clear()
            await ends_badly(call("late"))
            await until(lambda: log == UNDONE)


async def ends_badly(call: Coroutine[Any, Any, Any]) -> None:
    try:
        result = await call
    except (ActionError, PeerError):
        return
    assert isinstance(result, CallToolResult) and result.is_error


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_results_are_kept(is_async: bool) -> None:
    """R-ACT-23: the same call gets the same answer, in whatever dialect, until it is forgotten or its time is over;
    failures are not kept."""
    results, short = Results(3600, scope="public"), Results(0.05, scope="public")
    server = Server("shop", actions=True)
    runs: list[str] = []

    def price(of: str) -> Any:
        runs.append(of)
        if of == "nothing":
            raise ToolError("nothing has no price")
        return {"a": "seven", "b": {"price": 7}}.get(of, ToolResult(f"{of}?", meta={"com.example/a": 1}))

    async def price_soon(of: str) -> Any:
        return price(of)

    server.tool(name="price.get", kept=results)(price_soon if is_async else price)
    server.tool(name="price.short", kept=short)(price_soon if is_async else price)

    async with Client(server) as caller, Client(server, opening="actions") as actor:
        for of in ("a", "b", "c"):
            runs.clear()
            first, again = [await caller.call_tool("price.get", {"of": of}) for _ in range(2)]
            assert (first.text, first.structured, first.meta) == (again.text, again.structured, again.meta)
            data = [(await actor.action("price.get", {"of": of})).data for _ in range(2)]
            assert data[0] == data[1] and (of != "b" or data[0] == {"price": 7})
            assert runs == [of]
            results.forget("price.short")
            await caller.call_tool("price.get", {"of": of})
            assert runs == [of]
            (results.forget_all if of == "a" else lambda: results.forget("price.get"))()
            await caller.call_tool("price.get", {"of": of})
            assert runs == [of, of]
        runs.clear()
        for _ in range(2):
            assert (await caller.call_tool("price.get", {"of": "nothing"})).is_error
        assert runs == ["nothing", "nothing"]
        await caller.call_tool("price.short", {"of": "a"})
        await asyncio.sleep(0.06)
        await caller.call_tool("price.short", {"of": "a"})
        assert runs[2:] == ["a", "a"]
        assert (await actor.action_schemas())["price.get"]["cache"] == {"ttl_ms": 3600000}
    with pytest.raises(ValueError, match="scope"):
        Results(1, scope="mine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="positive"):
        Results(-1)


@coroutine
async def test_private_results_are_for_who_asked_behind_who_approves() -> None:
    """R-ACT-23, R-S14-05: by the arguments as they were cleaned; nobody's are not kept."""
    keys = {"k-alice": ("alice", ()), "k-bob": ("bob", ())}
    runs: list[str | None] = []
    asked: list[str] = []

    def clean(tool: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        return {"of": arguments["of"].strip()}

    def approve(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        asked.append(arguments["of"])
        return True

    def offer(policy: Policy | None) -> Server:
        server = Server("shop", actions=True, policy=policy, sanitise={"mine": clean}, approval={"mine": approve})

        @server.tool(kept=Results(3600))
        def mine(of: str, context: Context) -> str:
            runs.append(context.principal)
            return f"{of} of {context.principal}"

        return server

    async with Client(offer(Policy(keys=keys)), opening="actions") as actor:
        for key, of in [("k-alice", "a"), ("k-bob", " a"), ("k-alice", "a "), ("k-bob", "a")]:
            auth = {"auth": {"type": "api_key", "key": key}}
            data = (await actor.action("mine", {"of": of}, metadata=auth)).data
            assert data["result"] == f"a of key:{key[2:]}"
    assert runs == ["key:alice", "key:bob"] and asked == ["a"] * 4
    async with Client(offer(None)) as caller:
        for _ in range(2):
            assert (await caller.call_tool("mine", {"of": "a"})).text == "a of None"
    assert runs[2:] == [None, None]
