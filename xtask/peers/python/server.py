"""The diagnostic tools on the official Python SDK: MCPServer, or with PEER_API=low Server."""

import json
import os

import anyio
from mcp.server.stdio import stdio_server

COUNTS = {"active": 0, "started": 0, "finished": 0, "cancelled": 0}


async def sleep(ms: int) -> str:
    COUNTS["active"] += 1
    COUNTS["started"] += 1
    ending = "cancelled"
    try:
        await anyio.sleep(ms / 1000)
        ending = "finished"
    finally:
        COUNTS["active"] -= 1
        COUNTS[ending] += 1
    return "slept"


def resize(text: str, n: int) -> str:
    return text[:16] + "x" * (n - 16)


def stats() -> str:
    return json.dumps(COUNTS)


def convenient():
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("peer")
    server.tool(structured_output=False)(sleep)
    server.tool(structured_output=False)(resize)
    server.tool(structured_output=False)(stats)

    @server.tool(structured_output=False)
    def echo(text: str) -> str:
        return text

    @server.tool(structured_output=False)
    async def progress(n: int, ctx: Context) -> str:
        for done in range(1, n + 1):
            await ctx.report_progress(done, n)
        return "done"

    return server.run_stdio_async


def low_level():
    import mcp_types as types
    from mcp.server.lowlevel import Server

    def tool(name: str, **arguments: str) -> types.Tool:
        properties = {key: {"type": kind} for key, kind in arguments.items()}
        schema = {"type": "object", "properties": properties, "required": list(arguments)}
        return types.Tool(name=name, description=f"Diagnostic: {name}.", input_schema=schema)

    tools = [
        tool("echo", text="string"),
        tool("resize", text="string", n="integer"),
        tool("sleep", ms="integer"),
        tool("progress", n="integer"),
        tool("stats"),
    ]

    async def list_tools(ctx, params) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx, params) -> types.CallToolResult:
        args = params.arguments or {}
        match params.name:
            case "echo":
                text = args["text"]
            case "resize":
                text = resize(args["text"], args["n"])
            case "sleep":
                text = await sleep(args["ms"])
            case "progress":
                for done in range(1, args["n"] + 1):
                    await ctx.session.report_progress(done, args["n"])
                text = "done"
            case "stats":
                text = stats()
            case other:
                raise ValueError(f"no tool {other}")
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server = Server("peer", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    return serve


if __name__ == "__main__":
    anyio.run(low_level() if os.environ.get("PEER_API") == "low" else convenient())
