"""The steps of ../scripts.py for clients on the official Python SDK's session, which FastMCP's has, too.

Each brings a `connect` of its own and the few calls that it names differently.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import anyio
import jsonschema  # noqa: F401 (which the SDK imports late: in each fork, see ../forked.py)
import mcp.client.session
import mcp_types as types
from mcp.client import advertise
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError

# The arguments of `play`.
CARRIER, SERVER, MODERN = "", [""], False
ROOT = "file:///interop"
EXTENSIONS = [advertise("example.com/interop", {"version": 2})]
INFO = types.Implementation(name="interop", version="1")
SETTLED = 0.1  # seconds, after which whatever a call made the server tell has been handled

heard: list[str] = []


class Connected(Protocol):
    """The calls of the steps; the others are on the session."""

    session: mcp.client.session.ClientSession
    server_capabilities: types.ServerCapabilities
    call: Callable[..., Awaitable[types.CallToolResult]]
    tools: Callable[..., Awaitable[types.ListToolsResult]]  # out of a cache, if it has one
    read: Callable[[str], Awaitable[types.ReadResourceResult]]
    prompt: Callable[..., Awaitable[types.GetPromptResult]]


connected: Connected


async def model(params: types.CreateMessageRequestParams) -> types.CreateMessageResultWithTools:
    """The model: see ../scripts.py."""
    stop, content = "endTurn", None
    if params.tools:
        use = types.ToolUseContent(type="tool_use", id="1", name=params.tools[0].name, input={})
        stop, content = "toolUse", use
    else:
        last = params.messages[-1].content
        text = (last[0] if isinstance(last, list) else last).text
        if text.startswith("nest ") and text != "nest 0":
            nested = await connected.call("ask_model", {"text": f"nest {int(text[5:]) - 1}"})
            text = f"({nested.content[0].text})"
        else:
            text = f"said {text}"
        content = types.TextContent(type="text", text=text)
    result = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
    return result(role="assistant", model="m", content=content, stop_reason=stop)


def user(params: types.ElicitRequestParams) -> types.ElicitResult:
    if getattr(params, "url", None):
        return types.ElicitResult(action="accept")
    if params.message == "Who?":
        return types.ElicitResult(action="accept", content={"name": "Ada"})
    return types.ElicitResult(action="decline" if params.message == "No?" else "cancel")


async def told(message: object) -> None:
    """Writes down what the server tells."""
    match message:
        case types.ToolListChangedNotification():
            heard.append("tools/list_changed")
        case types.ResourceUpdatedNotification():
            heard.append(f"resources/updated {message.params.uri}")


async def logged(message: Any) -> None:
    heard.append(message.level)


def dump(value: Any) -> Any:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def call(step: dict) -> dict:
    seen: list[tuple] = []

    async def progressed(progress: float, total: float | None, _message: str | None) -> None:
        seen.append((progress, total))

    options: dict[str, Any] = {"meta": step["meta"]} if "meta" in step else {}
    if step.get("progress"):
        options["progress"] = progressed
    if "timeout_ms" in step:
        options["timeout"] = step["timeout_ms"] / 1000
    with anyio.move_on_after(step.get("cancel_ms", 60_000) / 1000):
        try:
            result = await connected.call(step["tool"], step.get("arguments", {}), **options)
        except MCPError as error:
            if error.error.code == types.REQUEST_TIMEOUT:
                return {"ended": "timed out"}
            raise
        text = result.content[0].text if result.content else None
        outcome = {"text": text, "is_error": bool(result.is_error), "structured": result.structured_content}
        return outcome | {"meta": result.meta, "seen": seen}
    return {"ended": "cancelled"}


async def many(step: dict) -> dict:
    answers: dict[int, str] = {}

    async def one(i: int) -> None:
        answers[i] = (await connected.call(step["tool"], {step["argument"]: f"call {i}"})).content[0].text

    async with anyio.create_task_group() as group:
        for i in range(step["count"]):
            group.start_soon(one, i)
    return {"answers": [answers[i] for i in range(step["count"])]}


async def pages(ask: Callable[..., Awaitable[Any]], of: str, name: str) -> dict:
    items, count, cursor = [], 0, None
    while count == 0 or cursor is not None:
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        items += [dump(item) for item in getattr(page, of)]
        count, cursor = count + 1, page.next_cursor
    return {"names": [item[name] for item in items], "pages": count, "items": items}


async def during(step: dict, options: dict | None = None) -> list[str]:
    """Records the notifications during a call."""
    heard.clear()
    await call(step | (options or {}))
    await anyio.sleep(SETTLED)
    return list(heard)


async def logs(step: dict) -> dict:
    if MODERN:
        return {"levels": await during(step, {"meta": {types.LOG_LEVEL_META_KEY: step["level"]}})}
    await connected.session.set_logging_level(step["level"])
    return {"levels": await during(step)}


@asynccontextmanager
async def listening(uris: list[str]):
    session = connected.session
    if MODERN:
        async with listen(session, tools_list_changed=True, resource_subscriptions=uris):
            yield
        return
    for uri in uris:
        await session.subscribe_resource(uri)
    yield
    for uri in uris:
        await session.unsubscribe_resource(uri)


async def hear(step: dict) -> dict:
    async with listening(step["uris"]):
        first = await during(step)
    await anyio.sleep(SETTLED)  # that nobody listens any more is told by and by
    return {"heard": sorted(set(first)), "after": sorted(set(await during(step)))}


async def complete(step: dict) -> dict:
    if "prompt" in step:
        ref = types.PromptReference(type="ref/prompt", name=step["prompt"])
    else:
        ref = types.ResourceTemplateReference(type="ref/resource", uri=step["template"])
    found = await connected.session.complete(ref, {"name": step["argument"], "value": step["value"]})
    return {"values": found.completion.values}


async def perform(step: dict) -> dict:
    session = connected.session
    match step["do"]:
        case "info":
            info, offered = session.server_info, dump(connected.server_capabilities)
            return {"revision": session.protocol_version, "name": info and info.name, "extensions": offered.get("extensions")}
        case "tools":
            return await pages(connected.tools, "tools", "name")
        case "pages":
            return await pages(session.list_tools, "tools", "name")
        case "resources":
            return await pages(session.list_resources, "resources", "uri")
        case "templates":
            return await pages(session.list_resource_templates, "resource_templates", "uriTemplate")
        case "prompts":
            return await pages(session.list_prompts, "prompts", "name")
        case "read":
            found = dump((await connected.read(step["uri"])).contents[0])
            return {"text": found.get("text"), "blob": found.get("blob"), "mime": found.get("mimeType")}
        case "prompt":
            return {"text": (await connected.prompt(step["name"], step["arguments"])).messages[0].content.text}
        case "complete":
            return await complete(step)
        case "ping":
            return dump(await session.send_ping())
        case "request":
            request = types.Request(method=step["method"], params=types.RequestParams())
            return dump(await session.send_request(request, types.EmptyResult))
        case "call":
            return await call(step)
        case "many":
            return await many(step)
        case "logs":
            return await logs(step)
        case "listen":
            return await hear(step)
    return {"unknown": step["do"]}


def play(connect: Callable[[], AbstractAsyncContextManager[Connected]]) -> None:
    """`SCRIPT REVISION CARRIER SERVER...`, with the steps on stdin."""
    global CARRIER, SERVER, MODERN
    revision, CARRIER, *SERVER = sys.argv[1:]
    MODERN = revision >= "2026"
    # A session offers only the newest revision of the handshake: to hold it to another, that is the newest.
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    anyio.run(run, connect)


async def run(connect: Callable[[], AbstractAsyncContextManager[Connected]]) -> None:
    global connected
    steps = json.loads(sys.stdin.read())
    async with connect() as connected:
        for step in steps[:-1]:
            try:
                outcome = await perform(step)
            except MCPError as error:
                outcome = {"code": error.error.code, "message": error.error.message}
            print(json.dumps(outcome), flush=True)
        began = time.monotonic()
    print(json.dumps({"ms": (time.monotonic() - began) * 1000}))
