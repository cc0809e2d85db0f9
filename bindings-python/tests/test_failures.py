"""Exceptions of handlers and callbacks: in the log, and at the hooks of the program."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest

from mcpbolt import Call, Client, Context, PeerError, Server, ToolError
from support import coroutine


def failing(**options: Any) -> Server:
    server = Server("fails", **options)

    @server.tool
    def plain() -> None:
        raise OSError("plain is broken")

    @server.tool
    async def soon() -> None:
        await asyncio.sleep(0)
        raise OSError("soon is broken")

    @server.tool(inline=True)
    def quick() -> None:
        raise OSError("quick is broken")

    @server.tool
    def told() -> None:
        raise ToolError("as the model may know")

    @server.resource("memo://one")
    def one() -> str:
        raise OSError("one is broken")

    return server


async def fail(caller: Client) -> None:
    for tool in ("plain", "soon", "quick"):
        assert (await caller.call_tool(tool)).text == "the tool failed unexpectedly"
    assert (await caller.call_tool("told")).is_error
    with pytest.raises(PeerError, match="unexpectedly"):
        await caller.read_resource("memo://one")


@coroutine
async def test_unexpected_exceptions_are_logged_with_their_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(failing()) as caller:
        await fail(caller)
    of_server = [record for record in caplog.records if record.name == "mcpbolt.server.fails"]
    said = [record.getMessage() for record in of_server if record.levelno == logging.ERROR]
    assert said == [
        "Error calling tool 'plain'",
        "Error calling tool 'soon'",
        "Error calling tool 'quick'",
        "Error reading resource 'memo://one'",
    ]
    for record in of_server:
        assert record.levelno == logging.ERROR and record.exc_info is not None
        assert record.exc_info[2] is not None and "is broken" in str(record.exc_info[1])


@coroutine
async def test_answers_of_errors_are_logged_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = failing()

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def loud() -> None:
        raise ToolError("as the model may know", log_level=logging.ERROR)

    @server.prompt
    def ask() -> str:
        raise ToolError("not now")

    outer = Server("outer")
    outer.mount("inner", server)
    caplog.set_level(logging.DEBUG)
    async with Client(outer) as caller:
        for name, arguments in (("told", {}), ("loud", {}), ("add", {"a": "secret", "secret": 1})):
            assert (await caller.call_tool(f"inner_{name}", arguments)).is_error
        with pytest.raises(PeerError, match="not now"):
            await caller.get_prompt("inner_ask")
    async with Client(server, revision="2025-03-26") as caller:
        with pytest.raises(PeerError, match="invalid arguments"):
            await caller.call_tool("add", {"a": "secret", "b": 1})
    refused = "Invalid arguments for tool {}: {{'error_count': {}, 'error_types': {}}}"
    of_add = ["int_parsing", "missing_argument", "unexpected_keyword_argument"]
    assert [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "mcpbolt.server.fails"] == [
        ("INFO", "Error calling tool 'inner_told'"),
        ("ERROR", "Error calling tool 'inner_loud'"),
        ("WARNING", refused.format("'inner_add'", 3, of_add)),
        ("INFO", "Error rendering prompt 'inner_ask'"),
        ("WARNING", refused.format("'add'", 1, ["int_parsing"])),
    ]
    assert not any(one.exc_info for one in caplog.records)


@coroutine
async def test_clients_are_told_unexpected_exceptions_if_the_server_says_so() -> None:
    async with Client(failing(mask_error_details=False)) as caller:
        assert (await caller.call_tool("plain")).text == "Error calling tool 'plain': plain is broken"
        with pytest.raises(PeerError, match="Error reading resource 'memo://one': one is broken"):
            await caller.read_resource("memo://one")
    outer = Server("outer")
    outer.mount("", failing(mask_error_details=False))
    async with Client(outer) as caller:
        assert (await caller.call_tool("plain")).text == "the tool failed unexpectedly"


@coroutine
async def test_hooks_are_called_with_the_exception_and_the_call() -> None:
    server = failing()
    seen: list[tuple[str, str | None, str | None]] = []

    @server.on_error
    def broken(error: BaseException, call: Call | None) -> None:
        raise RuntimeError("the hook is broken too")

    @server.on_error
    def note(error: BaseException, call: Call | None) -> None:
        assert call is not None and isinstance(call.context, Context)
        seen.append((str(error), call.name, call.method))

    async with Client(server) as caller:
        await fail(caller)
    assert seen == [
        ("plain is broken", "plain", "tools/call"),
        ("soon is broken", "soon", "tools/call"),
        ("quick is broken", "quick", "tools/call"),
        ("one is broken", "memo://one", "resources/read"),
    ]

    async def late(error: BaseException, call: Call | None) -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        server.on_error(late)


@coroutine
async def test_exceptions_of_callbacks_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise OSError("the callback is broken")

    server = Server("calls back", on_initialized=broken)
    seen: list[object] = []
    server.on_error(lambda error, call: seen.append(call))

    @server.tool
    def work(context: Context) -> None:
        context.info("hello")

    async with Client(server, revision="2025-11-25", on_log=broken) as caller:
        await caller.call_tool("work")
    names = {record.name for record in caplog.records}
    assert {"mcpbolt.server.calls back", "mcpbolt.client"} <= names and seen == [None]


LOOSE = """
from mcpbolt import Server
from mcpbolt import ToolError
server = Server("loose")
@server.tool
def work():
    raise OSError("with a traceback")
@server.tool
def told():
    raise ToolError("as the model may know", log_level=50)
server.run()
"""


def test_without_a_configuration_of_logging_they_go_to_stderr() -> None:
    from support import Raw

    with Raw(LOOSE, stderr=subprocess.PIPE) as server:
        for id, tool in enumerate(("work", "told")):
            server.call(id, tool)
            assert server.receive()["result"]["isError"]
        status, _, stderr = server.end(10)
    assert status == 0 and "Error calling tool 'work'" in stderr and "OSError: with a traceback" in stderr
    assert "Traceback" in stderr and "in work" in stderr and "told" not in stderr


@coroutine
async def test_a_context_logs_at_each_level() -> None:
    """R-LOG-02"""
    server = Server("levels")
    logs: list[dict[str, Any]] = []

    @server.tool
    def work(context: Context) -> None:
        context.debug("not wanted")
        context.info({"a": 1})
        context.warning("careful", "disk")
        context.error("broken")

    async with Client(server, revision="2025-11-25", on_log=logs.append) as caller:
        await caller.set_log_level("info")
        await caller.call_tool("work")
    assert logs == [
        {"level": "info", "data": {"a": 1}},
        {"level": "warning", "data": "careful", "logger": "disk"},
        {"level": "error", "data": "broken"},
    ]
