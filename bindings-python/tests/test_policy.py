"""Permissions, limits, masks and the audit of a server, and profiles of the protocol."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import Client, PeerError, Policy, Server, ToolError
from support import Raw, coroutine


def offer(server: Server) -> Server:
    @server.tool
    def erase() -> str:
        return "erased"

    @server.tool
    def look(token: str = "") -> str:
        raise ToolError("password=hunter2 is wrong, so is open sesame")

    @server.tool
    async def slow() -> str:
        await asyncio.sleep(60)
        return "late"

    @server.resource("file:///srv/a.txt")
    def a() -> str:
        return "a"

    @server.resource("file:///etc/shadow")
    def shadow() -> str:
        return "b"

    return server


PERMISSIONS: dict[str, Any] = {
    "tools": {"allowed": ["*"], "denied": ["erase"]},
    "resources": {"allowed": ["file:///srv/**"]},
}


@coroutine
async def test_what_is_denied_is_not_there() -> None:
    """R-PER-01 to R-PER-05."""
    server = offer(Server("disk", policy=Policy(permissions=PERMISSIONS)))
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["look", "slow"]
        assert [one.uri for one in await client.list_resources()] == ["file:///srv/a.txt"]
        assert (await client.read_resource("file:///srv/a.txt"))[0].text == "a"
        for refused in (client.call_tool("erase"), client.read_resource("file:///etc/shadow")):
            with pytest.raises(PeerError):
                await refused


@coroutine
async def test_secrets_are_told_to_nobody_and_the_audit_says_what_was_done() -> None:
    """R-ERR-29, R-S14-05."""
    seen: list[dict[str, Any]] = []
    policy = Policy(permissions=PERMISSIONS, secrets=["open sesame"], audit=seen.append, audit_arguments=True)
    async with Client(offer(Server("disk", policy=policy))) as client:
        look = await client.call_tool("look", {"token": "hunter2"})
        assert look.text == "password=*** is wrong, so is ***"
        with pytest.raises(PeerError):
            await client.call_tool("erase")
        for _ in range(3000):
            if len(seen) == 2:
                break
            await asyncio.sleep(0.01)
    assert [(one["name"], one["outcome"]) for one in seen] == [("look", "tool_failed"), ("erase", "denied")]
    assert "hunter2" not in json.dumps(seen)
    assert json.loads(seen[0]["arguments"]) == {"token": "***"}


@coroutine
async def test_an_audit_that_is_behind_is_waited_for_or_drops_or_has_requests_refused() -> None:
    go = threading.Event()
    seen: list[dict[str, Any]] = []

    def audit(event: dict[str, Any]) -> None:
        go.wait(60)
        seen.append(event)

    async def until(count: int) -> None:
        for _ in range(3000):
            if len(seen) >= count:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(seen)

    # The calls are answered while the audit is stuck, and the next event says how many were dropped.
    server = offer(Server("disk", policy=Policy(audit=audit, audit_queue=2, audit_when_full="drop")))
    async with Client(server) as client:
        for _ in range(10):
            await client.call_tool("erase")
        go.set()
        await until(2)
        await asyncio.sleep(0.1)
        await client.call_tool("look")
        await until(3)
    assert [(one["name"], one["dropped"]) for one in seen] == [("erase", 0), ("erase", 0), ("look", 8)]

    # Every event is told, and the calls wait for that.
    seen.clear()
    go.clear()
    server = offer(Server("disk", policy=Policy(audit=audit, audit_queue=1)))
    async with Client(server) as client:
        threading.Timer(0.3, go.set).start()
        await asyncio.gather(*(client.call_tool("erase") for _ in range(10)))
        assert go.is_set(), "the second call waited"
        await until(10)
    assert sum(one["dropped"] for one in seen) == 0

    # A call that cannot be audited is not run.
    seen.clear()
    go.clear()
    server = offer(Server("disk", policy=Policy(audit=audit, audit_queue=1, audit_when_full="refuse")))
    async with Client(server) as client:
        await client.call_tool("erase")
        with pytest.raises(PeerError, match="the audit of this server is behind"):
            await client.call_tool("erase")
        go.set()
        await until(1)
        await asyncio.sleep(0.1)
        await client.call_tool("look")
        await until(2)
    assert [one["name"] for one in seen] == ["erase", "look"]


@coroutine
async def test_an_audit_that_is_always_behind_holds_up_nobody_for_ever() -> None:
    """Threads that wait for the audit hold no lock that a thread with the interpreter waits for."""
    told = 0

    def audit(event: dict[str, Any]) -> None:
        nonlocal told
        time.sleep(0.0005)
        told += 1

    server = offer(Server("disk", policy=Policy(audit=audit, audit_queue=1)))

    @server.tool
    async def task() -> str:
        return "done"

    async with Client(server) as client:
        for _ in range(5):
            calls = [client.call_tool(name, timeout=60) for name in ("erase", "task") * 50]
            assert {result.text for result in await asyncio.gather(*calls)} == {"erased", "done"}
        while told < 500:
            await asyncio.sleep(0.01)


@coroutine
async def test_calls_are_bounded_in_time_and_number() -> None:
    """R-PER-06, R-S14-05."""
    server = offer(Server("disk", policy=Policy(quota=(1, 3600))))
    async with Client(server) as client:
        assert (await client.call_tool("erase")).text == "erased"
        told = "the quota of 1 calls in 3600s is used up: try again in 3600 s"
        assert (await client.call_tool("erase")).text == told
    server = offer(Server("disk", policy=Policy(tool_timeout=0.1, rate=(2, 0))))
    async with Client(server) as client:
        slow = await client.call_tool("slow")
        assert slow.is_error and "longer than" in slow.text
        answers = [await client.call_tool("erase") for _ in range(3)]
        assert any(answer.is_error and "too many requests" in answer.text for answer in answers)


def test_a_policy_that_is_misspelt_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown field"):
        offer(Server("disk", policy=Policy(permissions={"tool": {}})))._catalog()
    with pytest.raises(ValueError, match="known are"):
        Server("disk", profile="seed-005")._catalog()  # type: ignore[arg-type]


@coroutine
async def test_a_client_speaks_a_profile(tmp_path: Path) -> None:
    """R-LIF-07, R-CHN-05."""
    trace = tmp_path / "trace"
    server = offer(Server("s", profile="chain"))
    async with Client(server, profile="chain", trace=trace) as client:
        assert client.server_info.revision == "2025-03-26"
        with pytest.raises(PeerError) as raised:
            await client.call_tool("unknown_tool")
        assert (raised.value.code, raised.value.data) == (-32001, "Tool 'unknown_tool' does not exist")
    assert '"method":"initialized"' in trace.read_text() and "server/discover" not in trace.read_text()
    with pytest.raises(ValueError, match="known are"):
        async with Client(server, profile="seed-005"):  # type: ignore[arg-type]
            pass


def test_a_profile_is_spoken_literally() -> None:
    """R-CHN-05, R-B3X-01, R-PER-07."""
    code = """
from mcpbolt import Server
server = Server("s", profile="chain")
@server.tool
def t() -> str: return "t"
server.run()
"""
    with Raw(code) as raw:
        raw.send({"jsonrpc": "2.0", "id": 123, "method": "tools/call", "params": {"name": "unknown_tool"}})
        error = {"code": -32001, "message": "Tool not found", "data": "Tool 'unknown_tool' does not exist"}
        assert raw.receive() == {"jsonrpc": "2.0", "id": 123, "error": error}
    code = code.replace('profile="chain"', 'profile="extended", experimental={"batch": {}}')
    with Raw(code.replace('return "t"', 'raise OSError("no disk")')) as raw:
        call = {"method": "tools/call", "params": {"name": "t"}}
        raw.send({"jsonrpc": "2.0", "id": 1, "method": "batch/execute", "params": {"requests": [call, {"id": 7, "method": "tools/list"}]}})
        failed, listed = raw.receive()["result"]["responses"]
        assert failed["code"] == -32004 and failed["data"] == {"tool": "t"}
        assert listed["id"] == 7 and listed["result"]["tools"][0]["name"] == "t"
