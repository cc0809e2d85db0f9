"""Calls that wait for approval, and arguments that are cleaned before a tool sees them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcpbolt import ActionError, CallToolResult, Client, Context, RetryPolicy, Server, ToolError
from support import client, coroutine

SERVER = """
import asyncio, functools, sys, time
from mcpbolt import Context, Policy, Server, ToolError

ran, ended, audit = [], [], []

def clean(tool, arguments, context):
    path = arguments["path"].strip()
    if path == "evil":
        raise ToolError(f"no evil by {tool}")
    arguments["path"] = path
    return {"gone": {}, "list": [1], "none": None}.get(path, arguments)

def approve(tool, arguments, context):
    assert isinstance(context, Context)
    # Its changes affect no other call.
    path = arguments.pop("path")
    if path == "late":
        try:
            time.sleep(0.6)
        finally:
            ended.append(tool)
    if path == "fail":
        raise OSError("no disk")
    return {"ok": True, "late": True, "odd": "yes"}.get(path, False)

def soon(hook):
    async def hooked(tool, arguments, context):
        await asyncio.sleep(0)
        if arguments["path"] != "late":
            return hook(tool, arguments, context)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(tool)
    return hooked

def either(hook, name):
    return soon(hook) if name in sys.argv else hook

names = ["erase", "wipe", "format", "late"]
server = Server(
    "disk",
    actions=True,
    policy=Policy(audit=audit.append, audit_arguments=True, timeouts={"late": 0.2}),
    approval=dict.fromkeys(names, either(approve, "approve")),
    sanitise=dict.fromkeys(names, either(clean, "clean")),
)

@server.tool
def erase(path: str) -> str:
    ran.append("erase")
    return path

@server.tool
def late(path: str) -> str:
    ran.append("late")
    return path

@server.tool
def look(path: str) -> str:
    return path

@server.tool
def told() -> dict[str, list]:
    return {"ran": ran, "ended": ended, "audit": [it["arguments"] for it in audit if it["name"] == "erase"]}

@server.tool(inline=True)
def format(path: str) -> str:
    ran.append("format")
    return path

if "async" in sys.argv:
    @server.tool
    async def wipe(path: str, context: Context) -> str:
        ran.append("wipe")
        return path
else:
    @server.tool
    def wipe(path: str, context: Context) -> str:
        ran.append("wipe")
        return path

server.run()
"""

HOOKS = [[], ["async"], ["approve"], ["clean"], ["async", "approve", "clean"]]
WHY = {
    "no": "the call was not approved",
    " evil": "no evil by {}",
    "gone": "path",
    "list": "the tool failed unexpectedly",
    "none": "the tool failed unexpectedly",
    "fail": "the tool failed unexpectedly",
    "odd": "the tool failed unexpectedly",
}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kinds", HOOKS, ids="-".join)
@coroutine
async def test_a_sensitive_call_is_cleaned_and_approved(kinds: list[str]) -> None:
    """R-S14-05: for clients of MCP, whether hooks and tools are plain functions or coroutine functions."""
    async with client([sys.executable, "-c", SERVER, *kinds]) as caller:

        async def told() -> dict[str, Any]:
            structured = (await caller.call_tool("told")).structured
            assert structured is not None
            return structured

        for tool in ("erase", "wipe", "format"):
            assert (await caller.call_tool(tool, {"path": " ok\n"})).text == "ok"
            for path, why in WHY.items():
                refused = await caller.call_tool(tool, {"path": path})
                assert refused.is_error and why.format(tool) in refused.text, refused
        assert (await caller.call_tool("look", {"path": " evil "})).text == " evil "
        assert (await told())["ran"] == ["erase", "wipe", "format"]

        async def is_told() -> bool:
            return len((await told())["audit"]) == 1 + len(WHY)

        await until(is_told)
        assert (await told())["audit"][0] == '{"path":" ok\\n"}', "the audit is told what came"
        late = await caller.call_tool("late", {"path": "late"})
        assert late.is_error and "longer than" in late.text

        async def is_over() -> bool:
            return (await told())["ended"] == ["late"]

        await until(is_over)
        # Had it been called, that would have been before this is answered.
        assert (await caller.call_tool("erase", {"path": "ok"})).text == "ok"
        assert "late" not in (await told())["ran"], "nobody waits for it any more"


@pytest.mark.parametrize("kinds", [[], ["async", "approve", "clean"]], ids="-".join)
@coroutine
async def test_so_is_an_action(kinds: list[str]) -> None:
    """R-S14-05"""
    async with client([sys.executable, "-c", SERVER, *kinds], opening="actions") as caller:
        for tool in ("erase", "wipe", "format"):
            assert (await caller.action(tool, {"path": " ok\n"})).data == {"result": "ok"}
            for path, why in WHY.items():
                with pytest.raises(ActionError, match=why.format(tool)) as raised:
                    await caller.action(tool, {"path": path})
                assert (raised.value.type == "VALIDATION_ERROR") == (path == "gone")
        with pytest.raises(ActionError) as raised:
            await caller.action("late", {"path": "late"}, retry=RetryPolicy(tries=1))
        assert raised.value.type == "TIMEOUT_ERROR"
        ran = (await caller.action("told")).data["ran"]
        assert ran == ["erase", "wipe", "format"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_the_user_may_be_asked(is_async: bool, revision: str) -> None:
    """R-S14-05: the one who approves asks through the context; `*` is every tool that is not named."""
    form = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}

    async def ask(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        return bool((await context.elicit(f"{tool} {arguments}?", form)).content["yes"])

    def ask_here(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        return bool(context.elicit(f"{tool} {arguments}?", form).wait().content["yes"])

    def never(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        return False

    server = Server("disk", approval={"*": ask if is_async else ask_here, "erase": never})
    ran: list[int] = []

    @server.tool
    def erase() -> str:
        return "erased"

    @server.tool
    def keep(number: int, function: str = "f") -> str:
        ran.append(number)
        return f"{number} {function}"

    asked: list[str] = []

    def user(request: Any) -> dict[str, Any]:
        asked.append(request.message)
        return {"yes": "1" in request.message}

    async with Client(server, revision=revision, on_elicitation=user) as caller:
        kept: CallToolResult = await caller.call_tool("keep", {"number": 1.0})
        assert kept.text == "1 f"
        assert (await caller.call_tool("keep", {"number": 2})).text == "the call was not approved"
        assert (await caller.call_tool("erase")).text == "the call was not approved"
    assert len(asked) == 2 and ran == [1]


@pytest.mark.parametrize("hooks", [{"approval": {"earse": bool}}, {"sanitise": {"*": dict, "earse": dict}}])
@coroutine
async def test_hooks_of_tools_that_there_are_not_are_refused(hooks: dict[str, Any]) -> None:
    """R-S14-05: a misspelt name would leave a sensitive tool to anybody."""
    server = Server("disk", **hooks)
    server.tool(lambda: "erased", name="erase")
    with pytest.raises(ValueError, match='no tool is called "earse"'):
        async with Client(server):
            pass
    async with Client(Server("disk", list_changes=True, **hooks)) as caller:
        assert await caller.list_tools() == []


@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_a_hook_that_takes_long_holds_up_nobody(is_async: bool) -> None:
    """R-S14-05: neither the network nor, where its tool is a coroutine function, the event loop."""
    waits = asyncio.Event()
    loop = asyncio.get_running_loop()

    def approve(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        asyncio.run_coroutine_threadsafe(waits.wait(), loop).result(10)
        return True

    def clean(tool: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        if arguments == {}:
            raise ToolError("nothing to look for")
        return arguments

    server = Server("disk", approval={"erase": approve}, sanitise={"look": clean})

    def erase() -> str:
        return "erased"

    async def erase_soon() -> str:
        return "erased"

    server.tool(name="erase")(erase_soon if is_async else erase)

    @server.tool
    async def look(word: str = "") -> str:
        return word

    async with server.listening("http://127.0.0.1:0/mcp") as address, Client(address) as caller:
        erased = asyncio.ensure_future(caller.call_tool("erase"))
        assert (await caller.call_tool("look", {"word": "a"})).text == "a"
        assert (await caller.call_tool("look")).text == "nothing to look for"
        assert not erased.done()
        waits.set()
        assert (await erased).text == "erased"


@coroutine
async def test_the_log_does_not_show_what_a_wrong_hook_returned(caplog: pytest.LogCaptureFixture) -> None:
    def clean(tool: str, arguments: dict[str, Any], context: Context) -> Any:
        return ["secret"]

    def approve(tool: str, arguments: dict[str, Any], context: Context) -> Any:
        return None if tool == "none" else "secret"

    server = Server("disk", approval={"erase": approve, "none": approve}, sanitise={"look": clean})
    for name in ("look", "erase", "none"):
        server.tool(name=name)(lambda: "")
    async with Client(server) as caller:
        for name in ("look", "erase", "none"):
            assert (await caller.call_tool(name)).is_error
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "tool 'look': its sanitise hook returned a value of type list; return a dict of the arguments",
        "tool 'erase': its approval hook returned a value of type str; return True or False",
        "tool 'none': its approval hook returned None; return True or False",
    ]
