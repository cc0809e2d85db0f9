"""A server on the official Python SDK, with everything that ../features.py looks at."""

import json
import sys
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import anyio
import mcp_types as types
import uvicorn
from jsonschema import Draft202012Validator, ValidationError
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import INVALID_PARAMS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from python_rounds import Rounds, Unanswered, answer

GREETING, PIXEL, ITEM = "test://greeting", "test://pixel", "test://item/{id}"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
EXTENSION = "example.com/interop"
PAGE = 5
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def schema(**properties: str) -> dict:
    members = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": members, "required": list(properties)}


ICON = types.Icon(src="https://example.com/icon.png", mime_type="image/png")
ARGUMENTS = {
    "echo": {"text": "string"},
    "sleep": {"ms": "integer"},
    "progress": {"n": "integer"},
    "add": {"a": "integer", "b": "integer"},
    "ask_model": {"text": "string"},
    "ask_user": {"message": "string"},
} | dict.fromkeys(("stats", "log", "touch", "context", "ask_tools", "ask_page", "ask_roots", "interview"), {})
TOOLS = {name: types.Tool(name=name, input_schema=schema(**arguments)) for name, arguments in ARGUMENTS.items()}
ARGUMENTS_OF = {name: Draft202012Validator(tool.input_schema) for name, tool in TOOLS.items()}
TOOLS["add"].title, TOOLS["add"].icons = "Addition", [ICON]
TOOLS["add"].annotations = types.ToolAnnotations(read_only_hint=True)
TOOLS["add"].output_schema = schema(sum="integer")


@dataclass
class Sleeps:
    active: int = 0
    started: int = 0
    finished: int = 0
    cancelled: int = 0


SLEEPS = Sleeps()
BUS = InMemorySubscriptionBus()
subscribed: set[str] = set()
level = "debug"


async def sleep(seconds: float) -> str:
    SLEEPS.active += 1
    SLEEPS.started += 1
    try:
        await anyio.sleep(seconds)
        SLEEPS.finished += 1
    except BaseException:
        SLEEPS.cancelled += 1
        raise
    finally:
        SLEEPS.active -= 1
    return "slept"


def text_result(text: str, **members) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **members)


async def list_tools(_ctx, params) -> types.ListToolsResult:
    at = int(params.cursor) if params and params.cursor else 0
    following = str(at + PAGE) if at + PAGE < len(TOOLS) else None
    return types.ListToolsResult(tools=list(TOOLS.values())[at : at + PAGE], next_cursor=following)


async def touch(ctx) -> str:
    if ctx.protocol_version >= "2026":
        await BUS.publish(ToolsListChanged())
        await BUS.publish(ResourceUpdated(GREETING))
        return "touched"
    await ctx.session.send_tool_list_changed()
    if GREETING in subscribed:
        await ctx.session.send_resource_updated(GREETING)
    return "touched"


async def log(ctx) -> str:
    for one in ("debug", "info", "warning", "error"):
        if ctx.protocol_version >= "2026" or LEVELS.index(one) >= LEVELS.index(level):
            await ctx.session.send_log_message(one, {"level": one}, "interop", ctx.request_id)
    return "logged"


def context(ctx) -> types.CallToolResult:
    meta = dict(ctx.meta or {})
    given = {key: value for key, value in meta.items() if key == "traceparent" or key.startswith("example.com/")}
    declared = ctx.session.client_capabilities
    extension = ((declared and declared.extensions) or {}).get(EXTENSION)
    return text_result(json.dumps({"meta": given, "extension": extension}), _meta={"example.com/seen": True})


async def perform(ctx, params) -> types.CallToolResult:
    args = params.arguments or {}
    match params.name:
        case "echo":
            return text_result(args["text"])
        case "sleep":
            return text_result(await sleep(args["ms"] / 1000))
        case "progress":
            for i in range(1, args["n"] + 1):
                await ctx.session.report_progress(i, args["n"])
            return text_result("done")
        case "stats":
            counts = json.dumps(asdict(SLEEPS))
            SLEEPS.started, SLEEPS.finished, SLEEPS.cancelled = SLEEPS.active, 0, 0
            return text_result(counts)
        case "add":
            total = {"sum": args["a"] + args["b"]}
            return text_result(json.dumps(total), structured_content=total)
        case "log":
            return text_result(await log(ctx))
        case "touch":
            return text_result(await touch(ctx))
        case "context":
            return context(ctx)
    rounds = Rounds(ctx.session, ctx.protocol_version >= "2026", params.input_responses, params.request_state)
    return text_result(await answer(params.name, args, rounds))


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    if params.name not in TOOLS:
        raise MCPError(INVALID_PARAMS, f"unknown tool {params.name}")
    try:
        ARGUMENTS_OF[params.name].validate(params.arguments or {})
        return await perform(ctx, params)
    except ValidationError as error:
        if ctx.protocol_version < "2025-11-25":
            raise MCPError(INVALID_PARAMS, error.message) from None
        return text_result(error.message, is_error=True)
    except Unanswered as question:
        return question.result


async def list_resources(_ctx, _params) -> types.ListResourcesResult:
    greeting = types.Resource(uri=GREETING, name="greeting", mime_type="text/plain")
    return types.ListResourcesResult(resources=[greeting, types.Resource(uri=PIXEL, name="pixel", mime_type="image/png")])


async def list_templates(_ctx, _params) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[types.ResourceTemplate(uri_template=ITEM, name="item")])


async def read_resource(_ctx, params) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == GREETING:
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text="hello")
    elif uri == PIXEL:
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://item/"):
        item = uri.removeprefix("test://item/").replace("%20", " ")
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"item {item}")
    else:
        raise MCPError(INVALID_PARAMS, "no such resource", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


async def subscribe(_ctx, params) -> types.EmptyResult:
    subscribed.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(_ctx, params) -> types.EmptyResult:
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def set_level(_ctx, params) -> types.EmptyResult:
    global level
    level = params.level
    return types.EmptyResult()


async def list_prompts(_ctx, _params) -> types.ListPromptsResult:
    who = types.PromptArgument(name="who", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[who])])


async def get_prompt(_ctx, params) -> types.GetPromptResult:
    if params.name != "greet" or "who" not in (params.arguments or {}):
        raise MCPError(INVALID_PARAMS, "no such prompt, or no `who`")
    text = types.TextContent(type="text", text=f"Greet {params.arguments['who']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


async def complete(_ctx, params) -> types.CompleteResult:
    values = [name for name in ("Ada", "Adele", "Grace") if name.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


server = Server(
    "mcp",
    version="1",
    cache_hints={"tools/list": CacheHint(60_000, "public")},
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(BUS),
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)
server.extensions[EXTENSION] = {"version": 1}


async def serve() -> None:
    changing = NotificationOptions(tools_changed=True)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(changing))


def listen(address: str) -> None:
    """Serves Streamable HTTP at `/mcp`, and the pair of endpoints from `/sse` on."""
    at = urlsplit(address)
    changing = NotificationOptions(tools_changed=True)
    pair = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with pair.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options(changing))
        return Response()

    routes = [Route("/sse", stream), Mount("/messages/", pair.handle_post_message)]
    app = server.streamable_http_app(custom_starlette_routes=routes)
    uvicorn.run(app, host=at.hostname, port=at.port, log_level="warning")


def main() -> None:
    if sys.argv[1:]:
        listen(sys.argv[1])
    else:
        anyio.run(serve)


if __name__ == "__main__":
    main()
