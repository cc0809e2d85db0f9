"""Tasks, in both forms: what the client asks for in 2025-11-25, the extension of 2026-07-28."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import (
    Client,
    ConnectionClosed,
    Context,
    ElicitationRequest,
    Misuse,
    PeerError,
    ProtocolError,
    RequestCancelled,
    Server,
    TaskInfo,
    TaskLimits,
    ToolError,
    Unsupported,
)
from support import client, coroutine

CORE, NEWEST = "2025-11-25", "2026-07-28"
FORMS = [CORE, NEWEST]
QUESTION = {"type": "object", "properties": {"yes": {"type": "boolean"}}}


async def yes(context: Context, message: str) -> bool:
    answer = await context.elicit(message, QUESTION)
    return bool(answer.accepted and answer.content["yes"])


def tools(**limits: Any) -> Server:
    server = Server("films", task_limits=TaskLimits(**{"poll_interval": 0.01, **limits}))
    server.ended = []  # type: ignore[attr-defined]

    @server.tool(task="optional")
    def blocking(context: Context) -> str:
        context.begin_task()
        return f"{context.is_task}"

    @server.tool(task="optional")
    def direct() -> str:
        return "direct"

    @server.tool(task="required")
    async def only(context: Context) -> str:
        context.begin_task()
        await asyncio.sleep(0)
        return "only"

    @server.tool(task="optional")
    async def fail(context: Context) -> str:
        context.begin_task()
        raise ToolError("out of paper")

    @server.tool(task="optional")
    async def broken(context: Context) -> str:
        context.begin_task()
        raise ProtocolError("internal", "the disk is gone", {"disk": "sda"})

    @server.tool(task="optional")
    async def confirm(context: Context) -> str:
        context.begin_task()
        first, second = await asyncio.gather(yes(context, "One?"), yes(context, "Two?"))
        return f"{first} {second} {await yes(context, 'Three?')}"

    @server.tool(task="optional")
    async def both(context: Context) -> str:
        before = await yes(context, "Before?")
        context.begin_task()
        return f"{before} {await yes(context, 'After?')}"

    @server.tool(task="optional")
    async def wait(context: Context) -> str:
        context.begin_task()
        context.task_message("looking for a pen")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            server.ended.append("wait")  # type: ignore[attr-defined]
            raise
        return "never"

    @server.tool(task="optional")
    def block(context: Context) -> str:
        context.begin_task()
        context.task_message("looking for a pen")
        while not context.cancelled:
            threading.Event().wait(0.005)
        server.ended.append(context.cancel_reason)  # type: ignore[attr-defined]
        return "never"

    @server.tool
    def plain() -> str:
        return "plain"

    return server


def user(request: ElicitationRequest) -> dict[str, bool]:
    return {"yes": request.message != "Two?"}


def with_tasks(server: Any, revision: str, **more: Any) -> Client:
    return Client(server, revision=revision, tasks=True, on_elicitation=user, **more)


@pytest.mark.parametrize("revision", FORMS)
@coroutine
async def test_a_call_is_a_call_whoever_makes_a_task_of_it(revision: str) -> None:
    """R-TSX-03, R-TSX-06, R-TSX-09, R-TSK-03, R-TSK-06."""
    async with with_tasks(tools(), revision) as client:
        assert {tool.name: tool.task for tool in await client.list_tools()}["only"] == (
            "required" if revision == CORE else "forbidden"
        )
        called: dict[str, str] = {
            name: (await client.call_tool(name)).text
            for name in ("blocking", "direct", "only", "both", "confirm", "plain")
        }
        assert called == {
            # In the older form who does not ask for a task gets none.
            "blocking": str(revision == NEWEST),
            "direct": "direct",
            "only": "only",
            "both": "True True",
            "confirm": "True False True",
            "plain": "plain",
        }
        failed = await client.call_tool("fail")
        assert failed.is_error and failed.text == "out of paper"
        with pytest.raises(PeerError, match="the disk is gone") as caught:
            await client.call_tool("broken")
        assert (caught.value.code, caught.value.data) == (-32603, {"disk": "sda"})


@pytest.mark.parametrize("revision", FORMS)
@coroutine
async def test_a_task_is_followed_to_its_end(revision: str) -> None:
    """R-TSK-07 to R-TSK-11, R-TSK-13, R-TSX-07 to R-TSX-11, R-TSX-16."""
    async with with_tasks(tools(), revision) as client:
        task = await client.start_tool("confirm", ttl=60)
        assert task.id
        assert (await task).text == "True False True"
        assert (await client.task(task.id).result()).text == "True False True"
        info = await task.info()
        assert (info.id, info.status, info.has_ended, info.poll_interval) == (task.id, "completed", True, 0.01)
        assert info.ttl == (60 if revision == CORE else 3600)
        assert info.updated_at >= info.created_at

        direct = await client.start_tool("direct")
        assert (await direct.result()).text == "direct"
        assert (direct.id is None) == (revision == NEWEST)
        if direct.id is None:
            assert [info async for info in direct] == []
            with pytest.raises(Misuse):
                await direct.info()
        broken = await client.start_tool("broken")
        with pytest.raises(PeerError) as caught:
            await broken
        assert (caught.value.code, caught.value.data) == (-32603, {"disk": "sda"})
        failed = await client.start_tool("fail")
        assert (await failed).is_error
        assert (await failed.info()).status == ("failed" if revision == CORE else "completed")

        if revision == CORE:
            assert [one.id for one in await client.list_tasks()][0] == task.id
            with pytest.raises(Unsupported):
                await client.start_tool("plain") if await client.list_tools() else None
        else:
            assert (await (await client.start_tool("plain"))).text == "plain"
            with pytest.raises(Unsupported):
                await client.list_tasks()


@coroutine
async def test_the_last_state_is_asked_for_once(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    async with with_tasks(tools(), NEWEST, trace=trace) as client:
        task = await client.start_tool("confirm")
        assert [info.status async for info in task][-1] == "completed"
    frames = trace.read_text().splitlines()
    assert sum(frame.startswith("<-") and '"status":"completed"' in frame for frame in frames) == 1


@pytest.mark.parametrize("revision", FORMS)
@pytest.mark.parametrize("tool", ["wait", "block"])
@coroutine
async def test_a_task_is_given_up(revision: str, tool: str) -> None:
    """R-TSK-14, R-TSX-12: the function learns it, on whatever thread it runs."""
    server = tools()
    async with with_tasks(server, revision) as client:
        task = await client.start_tool(tool)
        seen: list[TaskInfo] = []

        async def look() -> None:
            async for info in task:
                seen.append(info)

        looking = asyncio.create_task(look())
        while not seen or seen[-1].message is None:
            await asyncio.sleep(0.005)
        await task.cancel()
        await looking
        assert (seen[0].status, seen[-1].status) == ("working", "cancelled")
        assert "looking for a pen" in [info.message for info in seen]
        with pytest.raises(RequestCancelled):
            await task
        while not server.ended:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)
        if revision == CORE:
            with pytest.raises(PeerError):
                await task.cancel()
        else:
            await task.cancel()


@pytest.mark.parametrize("tool", ["wait", "block"])
@coroutine
async def test_who_gives_up_a_call_gives_up_its_task(tool: str) -> None:
    """R-TSX-12; until then it goes on for as long as it takes, whatever bounds its first answer."""
    server = tools()
    async with with_tasks(server, NEWEST) as client:
        call = asyncio.ensure_future(client.call_tool(tool, max_timeout=0.2))
        await asyncio.sleep(0.4)
        assert not call.done() and not server.ended  # type: ignore[attr-defined]
        call.cancel()
        while not server.ended:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)


@coroutine
async def test_a_task_outlives_its_connection() -> None:
    """R-TSX-23; in the older form it does not (R-TSK-17)."""
    server = tools()
    gate = asyncio.Event()

    @server.tool(task="optional")
    async def slow(context: Context) -> str:
        context.begin_task()
        await gate.wait()
        return f"done at last: {await yes(context, 'Late?')}"

    @server.tool(task="optional")
    async def endless(context: Context) -> str:
        context.begin_task()
        try:
            await asyncio.sleep(60)
        finally:
            server.ended.append("endless")  # type: ignore[attr-defined]
        return "never"

    async with with_tasks(server, NEWEST) as client:
        left = (await client.start_tool("slow")).id
        given_up = (await client.start_tool("endless")).id
    assert left and given_up
    async with with_tasks(server, NEWEST) as client:
        assert (await client.task(left).info()).status == "working"
        gate.set()
        assert (await client.task(left).result()).text == "done at last: True"
        assert not server.ended  # type: ignore[attr-defined]
        await client.task(given_up).cancel()
        while not server.ended:  # type: ignore[attr-defined]
            await asyncio.sleep(0.005)
    async with with_tasks(server, CORE) as client:
        with pytest.raises(PeerError, match="no such task"):
            await client.task(left).info()


@coroutine
async def test_what_is_kept_of_tasks_has_bounds() -> None:
    """R-TSK-17."""
    async with with_tasks(tools(tasks=1), NEWEST) as client:
        assert (await client.start_tool("blocking")).id
        second = await client.start_tool("blocking")
        assert second.id is None and (await second).text == "False"
    async with with_tasks(tools(tasks=0), CORE) as client:
        with pytest.raises(PeerError, match="too many tasks"):
            await client.start_tool("blocking")
    async with with_tasks(tools(ttl=0.01), NEWEST) as client:
        task = await client.start_tool("wait")
        await asyncio.sleep(0.05)
        with pytest.raises(PeerError, match="no such task"):
            await task.info()


@coroutine
async def test_where_there_are_no_tasks_the_client_says_so() -> None:
    """R-TSK-02, R-TSX-02, R-TSX-04, R-TSX-14."""
    for revision in ("2025-06-18", NEWEST):
        async with Client(tools(), revision=revision) as client:
            assert (await client.call_tool("blocking")).text == "False"
            assert (await client.start_tool("blocking")).id is None
            if revision == NEWEST:
                with pytest.raises(PeerError) as caught:
                    await client.call_tool("only")
                assert caught.value.code == -32021
            else:
                with pytest.raises(Unsupported):
                    await client.task("1-00").info()
    plain = Server("plain")
    plain.tool(name="t")(lambda: "t")
    async with Client(plain, revision=CORE) as client:
        with pytest.raises(Unsupported):
            await client.start_tool("t")


PROGRAM = """
import asyncio
from mcpbolt import Context, Server, TaskLimits

server = Server("films", task_limits=TaskLimits(poll_interval=0.01))


@server.tool(task="optional")
def render(film: str, context: Context) -> str:
    context.begin_task()
    context.task_message("rendering")
    size = context.elicit("Which size?", {"type": "object", "properties": {"n": {"type": "integer"}}}).wait()
    return f"{film} in {size.content['n']}"


@server.tool(task="optional")
async def forever(context: Context) -> str:
    context.begin_task()
    await asyncio.sleep(3600)
    return ""


server.run(grace=0.2)
"""


@pytest.mark.parametrize("revision", FORMS)
@coroutine
async def test_tasks_over_a_pipe(revision: str) -> None:
    """R-TSX-11, R-TSK-13: a plain function that is a task asks, and waits on its thread."""
    def answer(request: ElicitationRequest) -> dict[str, int]:
        return {"n": 3}

    server = [sys.executable, "-c", PROGRAM]
    async with client(server, revision=revision, tasks=True, on_elicitation=answer) as connected:
        tasks = [await connected.start_tool("render", {"film": f"film {i}"}) for i in range(20)]
        texts = [result.text for result in await asyncio.gather(*tasks)]
        assert texts == [f"film {i} in 3" for i in range(20)]
        # A task that never ends does not keep the server alive.
        forever = await connected.start_tool("forever")
        assert (await forever.info()).status == "working"
    with pytest.raises((ConnectionClosed, Misuse)):
        await forever.info()
