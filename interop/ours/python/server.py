"""Our server in Python, with everything that ../../features.py looks at."""

import asyncio
import base64
import json
import sys
from typing import TypedDict

from mcpbolt import CompletionRequest, Context, Icon, ServeOptions, Server, TaskLimits, ToolResult

GREETING, PIXEL, ITEM = "test://greeting", "test://pixel", "test://item/{id}"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

EXTENSION = "example.com/interop"

server = Server(
    "python",
    "1",
    list_changes=True,
    subscriptions=True,
    page_size=5,
    cache_lists=60,
    cache_scope="public",
    extensions={EXTENSION: {"version": 1}},
    task_limits=TaskLimits(poll_interval=0.01),
)
sleeps = {"active": 0, "started": 0, "finished": 0, "cancelled": 0}


@server.tool
def echo(text: str) -> str:
    return text


@server.tool
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


@server.tool
def stats() -> str:
    counts = json.dumps(sleeps)
    sleeps.update(started=sleeps["active"], finished=0, cancelled=0)
    return counts


@server.tool
def progress(n: int, context: Context) -> str:
    for i in range(1, n + 1):
        context.progress(i, n)
    return "done"


@server.tool(task="optional")
async def job(context: Context) -> str:
    context.begin_task()
    context.task_message("at work")
    await asyncio.sleep(0.03)
    return "done"


class Sum(TypedDict):
    sum: int


icon = Icon("https://example.com/icon.png", "image/png")


@server.tool(title="Addition", annotations={"readOnlyHint": True}, icons=[icon])
def add(a: int, b: int) -> Sum:
    return {"sum": a + b}


@server.tool
def log(context: Context) -> str:
    for level in ("debug", "info", "warning", "error"):
        context.log(level, {"level": level}, "interop")
    return "logged"


@server.tool
def touch() -> str:
    server.tool(name="extra")(echo)
    server.remove_tool("extra")
    server.resource_updated(GREETING)
    return "touched"


@server.tool
def context(context: Context) -> ToolResult:
    given = {key: value for key, value in context.meta.items() if key == "traceparent" or key.startswith("example.com/")}
    text = json.dumps({"meta": given, "extension": context.extension(EXTENSION)})
    return ToolResult(text, meta={"example.com/seen": True})


@server.tool
async def ask_model(text: str, context: Context) -> str:
    return (await context.sample(text, max_tokens=100)).text


@server.tool
async def ask_tools(context: Context) -> str:
    weather = {"name": "weather", "inputSchema": {"type": "object"}}
    said = await context.sample("How warm is it?", max_tokens=100, tools=[weather])
    (use,) = said.content
    return f"uses {use['name']}" if isinstance(use, dict) else "uses nothing"


@server.tool
async def ask_user(message: str, context: Context) -> str:
    answer = await context.elicit(message, NAME)
    return f"accept {answer.content['name']}" if answer.accepted else answer.action


@server.tool
async def ask_page(context: Context) -> str:
    return (await context.elicit_url("Sign in.", "https://example.com/sign-in", "errand-1")).action


@server.tool
def ask_roots(context: Context) -> str:
    return " ".join(root.uri for root in context.roots().wait())


@server.tool
async def interview(context: Context) -> str:
    answer = await context.elicit("Who?", NAME)
    return (await context.sample(answer.content["name"], max_tokens=100)).text


@server.resource(GREETING, name="greeting", mime_type="text/plain")
def greeting() -> str:
    return "hello"


@server.resource(PIXEL, name="pixel", mime_type="image/png")
def pixel() -> bytes:
    return PNG


@server.resource(ITEM, name="item", mime_type="text/plain")
def item(id: str) -> str:
    return f"item {id}"


@server.prompt
def greet(who: str) -> str:
    return f"Greet {who}."


@server.completion
def names(request: CompletionRequest) -> list[str]:
    return [name for name in ("Ada", "Adele", "Grace") if name.startswith(request.value)]


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(sys.argv[1], options=ServeOptions(cors=True))
    else:
        server.run()
