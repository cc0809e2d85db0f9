"""The action dialect: servers of it and clients, in one process and between processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from mcpbolt import (
    ActionError,
    BreakerOpen,
    BreakerPolicy,
    CarrierError,
    Client,
    Context,
    InvalidParams,
    McpError,
    PeerError,
    References,
    RetryPolicy,
    Server,
    ToolResult,
)
from support import ROOT, Raw, client, coroutine

EXAMPLE = [sys.executable, str(ROOT / "bindings-python" / "examples" / "actions.py")]
CALLED = [json.loads(line) for line in (ROOT / "corpus" / "actions_called.jsonl").read_text().splitlines()]
AT_ONCE = RetryPolicy(base=0.001)


def acting(server: Any) -> Client:
    return client(server, opening="actions")


def offer() -> Server:
    server = Server("calc", "1.2.3", actions=True)

    @server.tool(
        name="calculator.add",
        output_schema={"type": "object", "required": ["result"]},
        action={"examples": [{"request": {}}], "errors": ["VALIDATION_ERROR"], "help_url": "https://h", "deprecated": "soon"},
    )
    def add(a: float, b: float) -> dict[str, Any]:
        """Adds two numbers."""
        return {"result": a + b}

    @server.tool(name="file_system.read")
    def read(path: str) -> str:
        raise ActionError("PERMISSION_DENIED", f"No access to {path}", {"path": path}, 418, "https://help")

    @server.tool
    async def where(context: Context) -> dict[str, Any]:
        context.partial([1, None])
        context.progress(1, 2)
        return {"context": context.action_context}

    return server


@coroutine
async def test_an_action_is_answered_with_data_and_metadata() -> None:
    """R-ACT-02, R-ACT-04, R-ACT-12, R-ACT-13, R-ACT-14, R-ACT-41."""
    async with acting(offer()) as client:
        answer = await client.action("calculator.add", {"a": 1.5, "b": 2}, tool="calculator", metadata={"client_id": "me"})
        assert answer.data == {"result": 3.5} and answer.partials == []
        assert answer.metadata["server_id"] == "calc"
        assert (await client.action("where", context="session-1")).data == {"context": "session-1"}
        assert (await client.action_version())["server_version"] == "1.2.3"
        await client.action_health()
        add = (await client.action_schemas())["calculator.add"]
    assert add["description"] == "Adds two numbers." and add["params_schema"]["required"] == ["a", "b"]
    assert add["data_schema"] == {"type": "object", "required": ["result"]}
    assert (add["examples"], add["errors"]) == ([{"request": {}}], ["VALIDATION_ERROR"])
    assert (add["help_url"], add["deprecated"]) == ("https://h", "soon")


@coroutine
async def test_errors_have_a_type_details_a_code_and_a_page() -> None:
    """R-ACT-05, R-ACT-07, R-ACT-31."""
    async with acting(offer()) as client:
        with pytest.raises(ActionError) as raised:
            await client.action("file_system.read", {"path": "/a"})
        error = raised.value
        assert (error.type, error.kind, error.message) == ("PERMISSION_DENIED", "AUTHORIZATION_FAILED", "No access to /a")
        assert (error.details, error.code, error.help_url) == ({"path": "/a"}, 418, "https://help")
        assert error.for_people == "You are not allowed to do this." and not error.is_transient
        with pytest.raises(ActionError) as raised:
            await client.action("calculator.add", {"a": 1})
        assert (raised.value.type, raised.value.details) == ("PARAMETER_MISSING", {"parameter": "b"})
        with pytest.raises(ActionError) as raised:
            await client.action("calculator.divide")
        assert (raised.value.type, raised.value.code) == ("ACTION_NOT_FOUND", 404)


@coroutine
async def test_clients_of_mcp_read_a_typed_error_as_a_failure_of_the_tool() -> None:
    """R-ACT-41."""
    async with Client(offer()) as client:
        failed = await client.call_tool("file_system.read", {"path": "/a"})
        assert failed.is_error and failed.text == "No access to /a"
        error = {"type": "PERMISSION_DENIED", "message": "No access to /a", "details": {"path": "/a"}}
        assert failed.structured == {"error": {**error, "code": 418, "help_url": "https://help"}}
        with pytest.raises(McpError):
            await client.action("calculator.add", {"a": 1, "b": 2}, retry=AT_ONCE)


@coroutine
async def test_parts_come_before_the_answer_to_who_asks_for_them() -> None:
    """R-ACT-24, R-ACT-26."""
    async with acting(EXAMPLE) as client:
        seen: list[Any] = []
        story = await client.action("llm.generate", {"prompt": "Write a story"}, on_partial=seen.append)
        assert seen == story.partials == [{"token": token} for token in ("Once", " upon", " a", " time")]
        assert story.joined("token") == story.data["full_text"] == "Once upon a time"
        assert (await client.action("llm.generate", {"prompt": ""})).partials == []
        assert (await client.action("llm.generate", {"prompt": ""}, streamed=True)).joined("token") == "Once upon a time"
    async with acting(offer()) as client:
        assert (await client.action("where", streamed=True)).partials == [[1, None], {"progress": 1, "total": 2}]


@coroutine
async def test_a_batch_says_of_each_operation_what_became_of_it() -> None:
    """R-ACT-16, R-ACT-17."""
    calls: list[tuple[str, dict[str, Any]]] = [("file_system.read", {"path": "/a"}), ("calculator.add", {"a": 1, "b": 2})]
    async with acting(offer()) as client:
        answer = await client.action_batch(calls, continue_on_error=True)
        denied, summed = answer.results()
        assert isinstance(denied, ActionError) and denied.type == "PERMISSION_DENIED" and denied.code == 418
        assert denied.for_people == "You are not allowed to do this."
        assert summed == {"result": 3}
        assert (answer.data["success_count"], answer.data["error_count"]) == (1, 1)
        assert [type(result) for result in (await client.action_batch(calls)).results()] == [ActionError]


ARCHIVE = """
from mcpbolt import References, Server

server = Server("archive", actions=True, references=References(8192, ttl=%s))


@server.tool(name="rows.read")
def read() -> dict[str, list[int]]:
    return {"rows": list(range(10_000))}


server.run()
"""


def test_long_data_are_referred_to_and_had_in_parts() -> None:
    """R-ACT-29."""
    with Raw(ARCHIVE % 60) as raw:
        raw.send({"action": "rows.read", "params": {}})
        reference = raw.receive()["data"]["mcp.reference"]
        whole, offset = "", 0
        while offset is not None:
            raw.send({"action": "mcp.get_data", "params": {"reference": reference["id"], "offset": offset}})
            part = raw.receive()["data"]
            assert len(part["part"]) <= 8192
            whole, offset = whole + part["part"], part.get("next_offset")
    assert len(whole) == reference["bytes"] and json.loads(whole) == {"rows": list(range(10_000))}


@coroutine
async def test_a_client_has_long_data_whole_while_they_are_kept() -> None:
    """R-ACT-29."""
    with Raw(ARCHIVE % 0.05) as raw:
        raw.send({"action": "rows.read", "params": {}})
        reference = raw.receive()["data"]["mcp.reference"]
        await asyncio.sleep(0.1)
        raw.send({"action": "mcp.get_data", "params": {"reference": reference["id"], "offset": 0}})
        assert raw.receive()["error"]["type"] == "RESOURCE_NOT_FOUND"
    async with acting([sys.executable, "-c", ARCHIVE % 60]) as client:
        assert (await client.action("rows.read")).data == {"rows": list(range(10_000))}
        assert "mcp.get_data" in await client.action_schemas()
    with pytest.raises(ValueError, match="seconds"):
        async with acting(Server("archive", actions=True, references=References(1, ttl=-1))):
            pass


@coroutine
async def test_what_may_pass_is_tried_again_and_what_keeps_failing_left_alone() -> None:
    """R-ACT-35, R-ACT-36."""
    server, calls = Server("flaky", actions=True), dict[str, int]()

    @server.tool
    def flaky(type: str, until: int) -> dict[str, int]:
        calls[type] = calls.get(type, 0) + 1
        if calls[type] < until:
            raise ActionError(type, "not now", {"retry_after_seconds": 0.002})
        return {"calls": calls[type]}

    @server.tool
    def tell(context: Context) -> dict[str, int]:
        context.partial("once")
        return {}

    async with acting(server) as client:
        assert (await client.action("flaky", {"type": "DEPENDENCY_ERROR", "until": 3}, retry=AT_ONCE)).data == {"calls": 3}
        with pytest.raises(ActionError) as raised:
            await client.action("flaky", {"type": "CONFLICT", "until": 3}, retry=AT_ONCE)
        assert calls["CONFLICT"] == 1 and not raised.value.is_transient
        assert raised.value.metadata["server_id"] == "flaky"
        with pytest.raises(ActionError) as raised:
            await client.action("flaky", {"type": "TIMEOUT_ERROR", "until": 9}, retry=AT_ONCE)
        assert calls["TIMEOUT_ERROR"] == 3 and raised.value.is_transient and raised.value.retry_after == 0.002
        other = ("flaky", {"type": "CONFLICT", "until": 1})
        once = RetryPolicy(tries=1)
        limited = {"type": "RATE_LIMIT_EXCEEDED", "until": 9}
        assert (await client.action("flaky", limited, retry=once, fallback=other)).data == {"calls": 2}
        parts: list[Any] = []
        story = ("tell", {})
        assert (await client.action("flaky", limited, retry=once, fallback=story, on_partial=parts.append)).data == {}
        assert parts == ["once"]
        for _ in range(2):
            with pytest.raises(ActionError):
                await client.action("flaky", limited, retry=once, breaker=BreakerPolicy(failures=2, pause=60))
        with pytest.raises(BreakerOpen):
            await client.action("flaky", limited, retry=once)
        assert calls["RATE_LIMIT_EXCEEDED"] == 4


@coroutine
async def test_params_that_cannot_be_right_are_not_sent_once_the_schemas_are_known() -> None:
    """R-ACT-07."""
    async with acting(offer()) as client:
        await client.action_schemas()
        with pytest.raises(InvalidParams, match="at /b"):
            await client.action("calculator.add", {"a": 1, "b": "2"})


@coroutine
async def test_a_call_that_is_given_up_has_no_answer_and_the_next_one_its_own() -> None:
    server = Server("slow", actions=True)

    @server.tool
    async def slow() -> str:
        await asyncio.sleep(60)
        return "late"

    @server.tool(name="mcp.health_check")
    def health() -> str:
        raise ActionError("DEPENDENCY_ERROR", "the disk is full")

    async with acting(server) as client:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.action("slow"), 0.05)
        with pytest.raises(TimeoutError) as raised:
            await client.action("slow", timeout=0.05, retry=RetryPolicy(tries=1))
        assert raised.value.for_people == "It took too long: please try again."  # type: ignore[attr-defined]
        with pytest.raises(ActionError, match="the disk is full"):
            await client.action_health()


@pytest.mark.parametrize("address", ["http://127.0.0.1:0/mcp", "ws://127.0.0.1:0/mcp", "tcp:127.0.0.1:0?framing=length"])
@coroutine
async def test_clients_of_both_languages_are_served_on_each_carrier(address: str) -> None:
    """R-ACT-21, R-ACT-28, R-ACT-41."""
    async with offer().listening(address) as at, acting(str(at)) as actions, Client(str(at)) as mcp:
        for n in range(20):
            sum, result = await asyncio.gather(
                actions.action("calculator.add", {"a": n, "b": 1}), mcp.call_tool("calculator.add", {"a": n, "b": 2})
            )
            assert (sum.data, result.structured) == ({"result": n + 1}, {"result": n + 2})
        with pytest.raises(ActionError, match="No access"):
            await actions.action("file_system.read", {"path": "/a"})
        assert (await actions.action("where", streamed=True)).partials[0] == [1, None]
    with pytest.raises((CarrierError, OSError)) as raised:
        async with acting(str(at)) as late:
            await late.action("where", retry=RetryPolicy(tries=1))
    if isinstance(raised.value, McpError):
        assert raised.value.is_transient


def test_lines_are_the_documents() -> None:
    """R-ACT-04, R-ACT-06, R-ACT-32, on the wire."""
    with Raw(EXAMPLE) as raw:
        raw.send({"action": "file_system.write", "params": {"path": "/p", "content": ""}, "metadata": {"request_id": "w-1"}})
        answer = raw.receive()
        error = {"type": "PERMISSION_DENIED", "message": "Write access denied to /p", "code": 403, "help_url": "https://example.com/access"}
        assert answer["status"] == "error" and answer["error"] == error and answer["metadata"]["request_id"] == "w-1"
        raw.send({"action": "file_system.list_directory", "params": {"path": "/usr/data", "recursive": False}})
        answer = raw.receive()
        assert answer["status"] == "success" and answer["data"] == CALLED[2]


@coroutine
async def test_the_example_prints_what_the_document_does() -> None:
    """R-ACT-07, R-ACT-16, R-ACT-24."""
    server = await asyncio.create_subprocess_exec(*EXAMPLE, "http://127.0.0.1:0/mcp", stderr=subprocess.PIPE)
    try:
        assert server.stderr
        address = (await server.stderr.readline()).decode().split()[-1]
        for at in (address, f"stdio:{' '.join(EXAMPLE)}"):
            called = await asyncio.create_subprocess_exec(*EXAMPLE, "call", at, stdout=subprocess.PIPE)
            out, _ = await called.communicate()
            assert called.returncode == 0 and [json.loads(line) for line in out.splitlines()] == CALLED
    finally:
        server.terminate()
        await server.communicate()
