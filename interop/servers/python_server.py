"""A server on the official Python SDK, with the diagnostic tools, one resource and one prompt.

The interop clients are proved on it, and our own clients drive it.
"""

import json
from dataclasses import asdict, dataclass

import anyio
import mcp_types as types
from jsonschema import ValidationError, validate
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS


def schema(**properties: str) -> dict:
    members = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": members, "required": list(properties)}


TOOLS = {
    tool.name: tool
    for tool in (
        types.Tool(name="echo", description="Returns the text.", input_schema=schema(text="string")),
        types.Tool(name="resize", description="Returns n bytes.", input_schema=schema(text="string", n="integer")),
        types.Tool(name="sleep", description="Waits.", input_schema=schema(ms="integer")),
        types.Tool(name="progress", description="Reports n times.", input_schema=schema(n="integer")),
        types.Tool(name="stats", description="Counts sleepers.", input_schema=schema()),
    )
}
GREETING = "test://greeting"


@dataclass
class Sleeps:
    active: int = 0
    started: int = 0
    finished: int = 0
    cancelled: int = 0


SLEEPS = Sleeps()


async def sleep(seconds: float) -> None:
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


def text_result(text: str, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def list_tools(_ctx, _params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=list(TOOLS.values()))


async def call_tool(ctx, params) -> types.CallToolResult:
    args = params.arguments or {}
    if params.name not in TOOLS:
        raise MCPError(INVALID_PARAMS, f"unknown tool {params.name}")
    try:
        validate(args, TOOLS[params.name].input_schema)
    except ValidationError as error:
        if ctx.protocol_version < "2025-11-25":
            raise MCPError(INVALID_PARAMS, error.message) from None
        return text_result(error.message, is_error=True)
    match params.name:
        case "echo":
            return text_result(args["text"])
        case "resize":
            return text_result(args["text"][:16] + "x" * (args["n"] - 16))
        case "sleep":
            await sleep(args["ms"] / 1000)
            return text_result("slept")
        case "progress":
            for i in range(1, args["n"] + 1):
                await ctx.session.report_progress(i, args["n"])
            return text_result("done")
        case _:
            return text_result(json.dumps(asdict(SLEEPS)))


async def list_resources(_ctx, _params) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri=GREETING, name="greeting", mime_type="text/plain")])


async def read_resource(_ctx, params) -> types.ReadResourceResult:
    if str(params.uri) != GREETING:
        raise MCPError(INVALID_PARAMS, "no such resource", {"uri": str(params.uri)})
    contents = types.TextResourceContents(uri=GREETING, mime_type="text/plain", text="hello")
    return types.ReadResourceResult(contents=[contents])


async def list_prompts(_ctx, _params) -> types.ListPromptsResult:
    who = types.PromptArgument(name="who", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[who])])


async def get_prompt(_ctx, params) -> types.GetPromptResult:
    if params.name != "greet" or "who" not in (params.arguments or {}):
        raise MCPError(INVALID_PARAMS, "no such prompt, or no `who`")
    text = types.TextContent(type="text", text=f"Greet {params.arguments['who']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


server = Server(
    "interop-python-server",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
