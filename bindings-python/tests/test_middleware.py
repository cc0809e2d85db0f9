"""Middleware: around calls, reads, prompts, completions and lists."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from mcpbolt import (
    InvalidArguments,
    Call,
    Client,
    CompletionRequest,
    Context,
    Image,
    Message,
    Misuse,
    PeerError,
    Policy,
    ProtocolError,
    ResourceContents,
    Results,
    Server,
    Text,
    Tool,
    ToolError,
    ToolResult,
)
from support import client, coroutine

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


def offering(**options: Any) -> Server:
    """A server that has one of everything."""
    server = Server("all", **options)

    @server.tool
    def plain(n: int) -> str:
        return f"{n} on {threading.current_thread().name}"

    @server.tool(inline=True)
    def quick(n: int) -> str:
        return str(n)

    @server.tool
    async def soon(n: int, context: Context) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"n": n}

    @server.resource("memo://one", mime_type="text/plain")
    def one() -> str:
        return "1"

    @server.resource("memo://at/{place}")
    async def at(place: str) -> str:
        return place

    @server.prompt(description="A poem")
    def poem(about: str) -> str:
        return f"of {about}"

    @server.completion
    def complete(request: CompletionRequest) -> list[str]:
        return [request.value + "ris"]

    return server


async def all_of(caller: Client) -> list[Any]:
    """What a client gets from everything."""
    (prompt,) = await caller.list_prompts()
    completed = (await caller.complete(prompt, "about", "pa")).values if caller.server_info.revision > "2025" else None
    return [
        (await caller.call_tool("plain", {"n": 1})).text.split(" on ")[0],
        (await caller.call_tool("quick", {"n": 2})).text,
        (await caller.call_tool("soon", {"n": 3})).wire["content"],
        (await caller.read_resource("memo://one"))[0],
        (await caller.read_resource("memo://at/home"))[0].text,
        (await caller.get_prompt("poem", {"about": "x"})).messages,
        (await caller.get_prompt("poem", {"about": "x"})).description,
        completed,
        [tool.name for tool in await caller.list_tools()],
        [resource.uri for resource in await caller.list_resources()],
        [template.uri_template for template in await caller.list_resource_templates()],
        [prompt.name for prompt in await caller.list_prompts()],
    ]


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_middleware_that_only_carries_on_changes_nothing(revision: str) -> None:
    seen: list[tuple[str, str | None]] = []
    replies: list[object] = []
    watched = offering()

    @watched.middleware
    async def watch(call: Call, next: Any) -> Any:
        seen.append((call.method, call.name))
        reply = await next(call)
        replies.append(reply)
        return reply

    async with Client(offering(), revision=revision) as plain, Client(watched, revision=revision) as caller:
        assert await all_of(caller) == await all_of(plain)
    assert ("tools/call", "soon") in seen and ("resources/read", "memo://at/home") in seen
    assert ("prompts/get", "poem") in seen and ("tools/list", None) in seen
    kinds = {type(reply[0]) if isinstance(reply, list) else type(reply) for reply in replies}
    assert {ToolResult, ResourceContents, Message, Tool} <= kinds
    assert all(method != "initialize" for method, _ in seen)


@coroutine
async def test_the_first_middleware_is_the_outermost_and_each_may_change_answer_or_raise() -> None:
    order: list[str] = []

    async def outer(call: Call, next: Any) -> Any:
        order.append(f"outer {call.name}")
        if call.method != "tools/call":
            return await next(call)
        if call.arguments["n"] == 0:
            return "answered outside"
        if call.arguments["n"] < 0:
            raise ToolError("no such number")
        reply = await next(call)
        order.append("outer again")
        reply.content.append(Text("seen"))
        return reply

    async def inner(call: Call, next: Any) -> Any:
        order.append(f"inner {call.name}")
        if call.method == "tools/call":
            call.arguments = {"n": call.arguments["n"] + 1}
        return await next(call)

    server = offering(middleware=[outer, inner])
    async with Client(server) as caller:
        result = await caller.call_tool("plain", {"n": 1})
        assert result.content[0].text.startswith("2 on Dummy") and result.content[1] == Text("seen")
        assert order == ["outer plain", "inner plain", "outer again"]
        assert (await caller.call_tool("quick", {"n": 0})).text == "answered outside"
        refused = await caller.call_tool("quick", {"n": -1})
        assert refused.is_error and refused.text == "no such number"
        order.clear()
        assert [tool.name for tool in await caller.list_tools()] == ["plain", "quick", "soon"]
        assert order == ["outer None", "inner None"]


@coroutine
async def test_replies_of_every_kind_may_be_replaced() -> None:
    server = offering()

    @server.middleware
    async def instead(call: Call, next: Any) -> Any:
        match call.method:
            case "resources/read":
                (contents,) = await next(call)
                return [ResourceContents(contents.uri, contents.text + "!", contents.mime_type)]
            case "prompts/get":
                return [*await next(call), Message("and so on", "assistant")]
            case "completion/complete":
                assert call.name == "poem" and dict(call.arguments) == {"about": "pa"}
                return [*await next(call), "pan"]
            case "tools/list":
                tools = await next(call)
                tools[0].wire["description"] = "changed"
                return [tool for tool in tools if tool.name != "quick"]
            case "resources/list":
                return []
        return await next(call)

    async with Client(server) as caller:
        assert (await caller.read_resource("memo://one"))[0] == ResourceContents("memo://one", "1!", "text/plain")
        assert (await caller.read_resource("memo://at/sea"))[0].text == "sea!"
        prompt = await caller.get_prompt("poem", {"about": "x"})
        assert [message.text for message in prompt.messages] == ["of x", "and so on"]
        assert prompt.description == "A poem"
        (listed,) = await caller.list_prompts()
        completed = await caller.complete(listed, "about", "pa")
        assert (completed.values, completed.total, completed.has_more) == (["paris", "pan"], 2, False)
        tools = await caller.list_tools()
        assert [tool.name for tool in tools] == ["plain", "soon"] and tools[0].description == "changed"
        assert await caller.list_resources() == []
        assert len(await caller.list_resource_templates()) == 1


@coroutine
async def test_new_arguments_are_checked_as_the_clients_are() -> None:
    server = offering()
    wrong: list[BaseException] = []

    @server.middleware
    async def change(call: Call, next: Any) -> Any:
        with pytest.raises(TypeError):
            call.arguments["n"] = 1  # type: ignore[index]
        new: dict[str, Any] = {"tools/call": {"n": "text"}, "prompts/get": {"abuot": "y"}}.get(call.method, {"place": 7})
        try:
            call.arguments = new
        except Exception as error:
            wrong.append(error)
        if call.method == "prompts/get":
            call.arguments = {"about": "y"}
        elif call.name == "memo://at/home":
            call.arguments = {"place": "away"}
        return await next(call)

    async with Client(server) as caller:
        assert (await caller.call_tool("quick", {"n": 5})).text == "5"
        assert (await caller.get_prompt("poem", {"about": "x"})).messages[0].text == "of y"
        assert (await caller.read_resource("memo://at/home"))[0].text == "away"
    assert [type(error) for error in wrong] == [InvalidArguments, ValueError, ValueError]


@coroutine
async def test_what_functions_raise_comes_through_and_what_middleware_raises_is_answered() -> None:
    seen: list[BaseException] = []
    server = Server("raising")

    @server.tool
    def fails(how: str) -> str:
        raise {"tool": ToolError("a"), "protocol": ProtocolError(-32099, "b"), "any": OSError("secret")}[how]

    @server.resource("memo://one")
    def one() -> str:
        return "1"

    @server.middleware
    async def watch(call: Call, next: Any) -> Any:
        if call.method == "resources/read":
            raise ProtocolError("not_found", "not here")
        try:
            return await next(call)
        except Exception as error:
            seen.append(error)
            raise

    async with Client(server) as caller:
        assert (await caller.call_tool("fails", {"how": "tool"})).text == "a"
        with pytest.raises(PeerError) as raised:
            await caller.call_tool("fails", {"how": "protocol"})
        assert raised.value.code == -32099
        assert (await caller.call_tool("fails", {"how": "any"})).text == "the tool failed unexpectedly"
        with pytest.raises(PeerError, match="not here"):
            await caller.read_resource("memo://one")
        with pytest.raises(PeerError, match="unknown tool"):
            await caller.call_tool("none")
    assert [type(error) for error in seen] == [ToolError, ProtocolError, OSError]


@coroutine
async def test_it_stands_between_cleaning_and_approval_and_around_the_cache() -> None:
    order: list[str] = []

    def clean(tool: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        order.append("clean")
        return {"n": arguments["n"] + 1}

    async def approve(tool: str, arguments: dict[str, Any], context: Context) -> bool:
        order.append(f"approve {arguments['n']}")
        return True

    server = Server("order", sanitise={"*": clean}, approval={"*": approve})
    kept = Results(60, scope="public")

    @server.middleware
    async def middle(call: Call, next: Any) -> Any:
        order.append(f"middleware {call.arguments['n']}")
        call.arguments = {"n": call.arguments["n"] * 10}
        reply = await next(call)
        reply.content.append(Text("after"))
        return reply

    @server.tool(kept=kept)
    def tell(n: int) -> str:
        order.append(f"tool {n}")
        return str(n)

    async with Client(server) as caller:
        for _ in range(2):
            assert [block.text for block in (await caller.call_tool("tell", {"n": 1})).content] == ["20", "after"]
    assert order == ["clean", "middleware 2", "approve 20", "tool 20", "clean", "middleware 2", "approve 20"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@coroutine
async def test_a_list_keeps_its_pages_and_its_hints(revision: str) -> None:
    server = Server("pages", page_size=2, cache_lists=60)
    for n in range(5):
        server.tool(name=f"t{n}")(lambda: "")

    @server.middleware
    async def hide(call: Call, next: Any) -> Any:
        return [tool for tool in await next(call) if tool.name != "t1"]

    async with Client(server, revision=revision) as caller:
        first = (await caller.request("tools/list")).parse()
        assert [tool["name"] for tool in first["tools"]] == ["t0"] and first["nextCursor"]
        assert ("ttlMs" in first) == (revision == "2026-07-28")
        assert [tool.name for tool in await caller.list_tools()] == ["t0", "t2", "t3", "t4"]
        with pytest.raises(PeerError, match="unknown cursor"):
            await caller.request("tools/list", {"cursor": "page-9"})
        with pytest.raises(PeerError) as raised:
            await caller.request("prompts/list")
        assert raised.value.code == -32601


@coroutine
async def test_the_caller_and_the_variables_of_the_task_are_there() -> None:
    who: ContextVar[str | None] = ContextVar("who")
    policy = Policy(keys={"secret": ("alice", [])})
    server = Server("callers", policy=policy)

    @server.middleware
    async def name(call: Call, next: Any) -> Any:
        who.set(call.principal)
        assert call.context.principal == call.principal
        return await next(call)

    @server.tool
    def plain() -> str | None:
        return who.get()

    @server.tool
    async def soon() -> str | None:
        return who.get()

    from mcpbolt import ApiKey

    async with server.listening("http://127.0.0.1:0/mcp") as address, Client(address, auth=ApiKey("secret")) as caller:
        assert (await caller.call_tool("plain")).text == "key:alice"
        assert (await caller.call_tool("soon")).text == "key:alice"


@coroutine
async def test_a_plain_function_beside_it_holds_up_nobody_and_a_cancelled_call_ends_with_it() -> None:
    server = Server("beside")
    begun, told, go = threading.Event(), threading.Event(), threading.Event()
    ended: list[str] = []

    @server.middleware
    async def watch(call: Call, next: Any) -> Any:
        try:
            return await next(call)
        finally:
            ended.append(str(call.name))

    @server.tool
    def block(context: Context) -> str:
        begun.set()
        while not context.cancelled and not go.is_set():
            time.sleep(0.01)
        told.set()
        go.wait(30)
        return "done"

    @server.tool
    def quick() -> str:
        return "quick"

    async with Client(server) as caller:
        blocked = asyncio.ensure_future(caller.call_tool("block"))
        assert (await caller.call_tool("quick")).text == "quick"
        await asyncio.to_thread(begun.wait, 30)
        blocked.cancel()
        await asyncio.to_thread(told.wait, 30)
        assert (await caller.call_tool("quick")).text == "quick"
        assert ended == ["quick", "quick"]
        go.set()
        while "block" not in ended:
            await asyncio.sleep(0.01)
        assert (await caller.call_tool("block")).text == "done"


@coroutine
async def test_next_may_be_called_again() -> None:
    server = Server("again")
    tries: list[int] = []

    @server.tool
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")
        return "at last"

    @server.middleware
    async def retry(call: Call, next: Any) -> Any:
        for _ in range(2):
            try:
                return await next(call)
            except OSError:
                pass
        return await next(call)

    async with Client(server) as caller:
        assert (await caller.call_tool("flaky")).text == "at last"


@coroutine
async def test_what_is_no_middleware_or_comes_too_late_is_refused() -> None:
    server = offering(list_changes=True)

    def plain(call: Call, next: Any) -> Any:
        return next(call)

    async def late(call: Call, next: Any) -> Any:
        return await next(call)

    with pytest.raises(TypeError, match="plain.*coroutine function"):
        server.middleware(plain)
    async with Client(server):
        with pytest.raises(Misuse, match="middleware"):
            server.middleware(late)


STDIO = """
import logging, sys
from mcpbolt import Server

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(message)s")
server = Server("stdio")

@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)

@server.middleware
async def log(call, next):
    reply = await next(call)
    logging.getLogger("mine").info("%s %s %s", call.method, call.name, dict(call.arguments))
    return reply

server.run()
"""


@coroutine
async def test_a_server_with_middleware_alone_runs_on_stdin_and_stdout() -> None:
    import sys

    lines: list[str] = []
    async with client([sys.executable, "-c", STDIO], on_stderr=lines.append) as caller:
        assert (await caller.call_tool("add", {"a": 1, "b": 2})).text == "3"
        many = [caller.call_tool("add", {"a": n, "b": n}) for n in range(200)]
        assert [answer.text for answer in await asyncio.gather(*many)] == [str(2 * n) for n in range(200)]
    assert lines[0] == "mine tools/call add {'a': 1, 'b': 2}"


@pytest.mark.parametrize("has_middleware", [True, False])
@coroutine
async def test_a_union_with_any_value_is_as_free_as_any_value(has_middleware: bool) -> None:
    server = Server("free")
    if has_middleware:

        @server.middleware
        async def around(call: Call, next: Any) -> Any:
            return await next(call)

    @server.tool
    def free(kind: str) -> Any | None:
        made = {"text": "a", "none": None, "dict": {"n": 1}, "list": [1, "b"]}
        return ToolResult(Text("told"), meta={"n": 1}) if kind == "result" else made[kind]

    @server.tool(kept=Results(60))
    def kept() -> Any | None:
        return {"n": 1}

    @server.tool
    def images(n: int) -> list | None:  # type: ignore[type-arg]
        return [Image(b"png", "image/png")] * n or None

    async with Client(server) as caller:
        assert [tool.output_schema for tool in await caller.list_tools()] == [None] * 3
        said = {kind: await caller.call_tool("free", {"kind": kind}) for kind in ("text", "none", "dict", "list", "result")}
        assert not any(result.is_error for result in said.values())
        assert (said["text"].text, said["none"].content, said["dict"].structured) == ("a", [], {"n": 1})
        assert said["list"].text == '[1,"b"]' and said["result"].text == "told"
        for _ in range(2):
            assert (await caller.call_tool("kept")).structured == {"n": 1}
        pictures = await caller.call_tool("images", {"n": 2})
        assert pictures.content == [Image(b"png", "image/png")] * 2 and pictures.structured is None
        assert (await caller.call_tool("images", {"n": 0})).content == []


@pytest.mark.parametrize("is_checked", [True, False])
@coroutine
async def test_what_middleware_changes_in_a_reply_is_sent(is_checked: bool) -> None:
    """The reply stands for a text, until it is changed."""
    changes: dict[str, Any] = {
        "nothing": lambda reply: None,
        "text": lambda reply: setattr(reply.content[0], "text", "other"),
        "annotated": lambda reply: setattr(reply.content[0], "annotations", {"priority": 1}),
        "noted": lambda reply: setattr(reply.content[0], "meta", {"a": 1}),
        "longer": lambda reply: reply.content.append(Text("more")),
        "replaced": lambda reply: setattr(reply, "content", [Image(b"x")]),
        "meta": lambda reply: setattr(reply, "meta", {"b": 2}),
        "failed": lambda reply: setattr(reply, "is_error", True),
    }
    if is_checked:
        changes["structured"] = lambda reply: reply.structured.update(result="other")
    server = Server("changes")

    @server.tool(output_schema=None if is_checked else False)
    def echo(how: str) -> str:
        return "text"

    expected: dict[str, ToolResult] = {}

    @server.middleware
    async def change(call: Call, next: Any) -> Any:
        reply = await next(call)
        changes[call.arguments["how"]](reply)
        expected[call.arguments["how"]] = reply
        return reply

    async with Client(server, revision="2025-11-25") as caller:
        for how in changes:
            answer, reply = await caller.call_tool("echo", {"how": how}), expected[how]
            assert [block.wire() for block in answer.content] == [block.wire() for block in reply.content], how  # type: ignore[union-attr, attr-defined]
            assert (answer.structured, answer.meta or None, answer.is_error) == (
                reply.structured,
                reply.meta,
                reply.is_error,
            ), how
