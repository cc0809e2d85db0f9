"""`echo` as others have it, by itself or on this package: `theirs.py KIND HOW ADDRESS [logged]`.

The kinds are `server` and `mcpserver` of the official SDK's, and `fastmcp`. By itself (`own`) it runs as fast as it
comes: on uvloop and httptools, with answers in JSON and without sessions. The others are `served` and `accelerated`.
"""

import os
import sys
from typing import Any
from urllib.parse import urlsplit

os.environ.setdefault("FASTMCP_LOG_LEVEL", "CRITICAL")
os.environ.setdefault("FASTMCP_CHECK_FOR_UPDATES", "off")
os.environ.setdefault("FASTMCP_SHOW_SERVER_BANNER", "false")


def low_level() -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tools = [types.Tool(name="echo", description="Returns the text.", input_schema=schema)]

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])

    return Server("theirs", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)


def high_level() -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("theirs", log_level="CRITICAL")

    @server.tool()
    async def echo(text: str) -> str:
        """Returns the text."""
        return text

    return server


def fast() -> Any:
    from fastmcp import FastMCP

    server = FastMCP("theirs")
    if "logged" in sys.argv:
        server.add_middleware(logged())

    @server.tool
    async def echo(text: str) -> str:
        """Returns the text."""
        return text

    return server


def logged() -> Any:
    """Middleware that logs each call, as that of `native.py` does."""
    import logging

    from fastmcp.server.middleware import Middleware

    logging.basicConfig(level=logging.INFO)
    log = logging.getLogger("calls")

    class Logged(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            result = await call_next(context)
            log.info("%s %s", context.method, context.message.name)
            return result

    return Logged()


async def on_stdio(server: Any) -> None:
    if hasattr(server, "run_stdio_async"):
        return await server.run_stdio_async()
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def by_itself(server: Any, address: str) -> None:
    import uvloop

    if address == "stdio:":
        return uvloop.run(on_stdio(server))
    import uvicorn

    app = server.http_app if hasattr(server, "http_app") else server.streamable_http_app
    uvicorn.run(
        app(json_response=True, stateless_http=True),
        port=urlsplit(address).port or 0,
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )


if __name__ == "__main__":
    kind, how, address = sys.argv[1:4]
    server = {"server": low_level, "mcpserver": high_level, "fastmcp": fast}[kind]()
    if how == "own":
        by_itself(server, address)
    else:
        from mcpbolt.mcp import accelerate, run

        run(accelerate(server) if how == "accelerated" else server, address)
