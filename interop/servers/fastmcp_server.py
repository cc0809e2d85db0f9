"""A server on FastMCP, with what of ../features.py it can do."""

import asyncio
import base64
import json
import sys
from urllib.parse import urlsplit

import key_value.aio.stores.memory  # noqa: F401 (which FastMCP imports late: in each fork, see ../forked.py)
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.resources import ResourceContent, ResourceResult
from fastmcp.server.extensions import ServerExtension
from fastmcp.tools.base import ToolResult

from python_rounds import Rounds, Unanswered, answer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
ICON = types.Icon(src="https://example.com/icon.png", mime_type="image/png")
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

server = FastMCP("fastmcp", version="1", list_page_size=5, cache_ttl=60_000, cache_scope="public")
sleeps = {"active": 0, "started": 0, "finished": 0, "cancelled": 0}


class Interop(ServerExtension):
    identifier = "example.com/interop"

    def settings(self) -> dict:
        return {"version": 1}


server.add_extension(Interop())
tool = server.tool(output_schema=None)


@tool
def echo(text: str) -> str:
    return text


@tool
async def sleep(ms: int) -> str:
    sleeps["active"] += 1
    sleeps["started"] += 1
    try:
        await asyncio.sleep(ms / 1000)
        sleeps["finished"] += 1
    except asyncio.CancelledError:
        sleeps["cancelled"] += 1
        raise
    finally:
        sleeps["active"] -= 1
    return "slept"


@tool
def stats() -> str:
    counts = json.dumps(sleeps)
    sleeps.update(started=sleeps["active"], finished=0, cancelled=0)
    return counts


@tool
async def progress(n: int, context: Context) -> str:
    for i in range(1, n + 1):
        await context.report_progress(i, n)
    return "done"


@server.tool(title="Addition", icons=[ICON], annotations={"readOnlyHint": True}, output_schema=SUM)
def add(a: int, b: int) -> dict:
    return {"sum": a + b}


@tool
async def log(context: Context) -> str:
    for level in ("debug", "info", "warning", "error"):
        await context.log(level, level)
    return "logged"


@tool
async def touch(context: Context) -> str:
    await context.send_notification(types.ToolListChangedNotification())
    return "touched"


@server.tool(name="context", output_schema=None)
def seen(context: Context) -> ToolResult:
    meta = context.request_context.meta or {}
    given = {key: value for key, value in dict(meta).items() if key == "traceparent" or key.startswith("example.com/")}
    return ToolResult(json.dumps({"meta": given, "extension": context.client_extension_settings(Interop.identifier)}), meta={"example.com/seen": True})


def asking(name: str) -> None:
    """Adds a tool that asks the client."""

    async def asks(context: Context, arguments: dict):
        session, modern = context.session, context._is_modern_protocol()
        rounds = Rounds(session, modern, context.input_responses, context.request_state)
        try:
            return await answer(name, arguments, rounds)
        except Unanswered as question:
            return question.result

    if name == "ask_model":

        async def function(text: str, context: Context):
            return await asks(context, {"text": text})

    elif name == "ask_user":

        async def function(message: str, context: Context):
            return await asks(context, {"message": message})

    else:

        async def function(context: Context):
            return await asks(context, {})

    server.tool(function, name=name, output_schema=None)


for name in ("ask_model", "ask_tools", "ask_user", "ask_page", "ask_roots", "interview"):
    asking(name)


@server.resource("test://greeting", name="greeting", mime_type="text/plain")
def greeting() -> str:
    return "hello"


@server.resource("test://pixel", name="pixel", mime_type="image/png")
def pixel() -> ResourceResult:
    return ResourceResult([ResourceContent(PNG, mime_type="image/png")])


@server.resource("test://item/{id}", name="item", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.prompt
def greet(who: str) -> str:
    return f"Greet {who}."


@server.completion
def names(_reference, argument, _context) -> list[str]:
    return [name for name in ("Ada", "Adele", "Grace") if name.startswith(argument.value)]


def main() -> None:
    if sys.argv[1:]:
        at = urlsplit(sys.argv[1])
        server.run("http", show_banner=False, host=at.hostname, port=at.port, path=at.path, log_level="warning")
    else:
        server.run(show_banner=False)


if __name__ == "__main__":
    main()
