"""A server of the SDK's before 2.0, of FastMCP's before 4.0, or of its low level: `former.py KIND`."""

import sys

import anyio

KIND = sys.argv[1]

if KIND == "fastmcp":
    from fastmcp import Context, FastMCP
else:
    from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("former", instructions="Be kind.")


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@server.tool()
async def echo(text: str) -> str:
    return text


@server.tool()
def fail() -> str:
    raise ValueError("a reason")


@server.tool()
async def progress(n: int, ctx: Context) -> str:
    for step in range(n):
        await ctx.report_progress(step, n)
    await ctx.info("done")
    return "done"


@server.tool()
async def ask(ctx: Context) -> str:
    from mcp.types import SamplingMessage, TextContent

    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say."))
    session = ctx.session if KIND == "fastmcp" else ctx.request_context.session
    said = await session.create_message(messages=[message], max_tokens=9)
    roots = await session.list_roots()
    return f"{said.content.text} {[str(root.uri) for root in roots.roots]}"


@server.tool()
async def slow() -> str:
    await anyio.sleep(60)
    return "late"


@server.resource("memo://a")
def memo() -> str:
    return "memo"


@server.prompt()
def greet(who: str) -> str:
    return f"Greet {who}"


async def by_hand() -> None:
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    own = Server("former", version="1")

    @own.list_tools()
    async def lists() -> list[types.Tool]:
        return [types.Tool(name="add", description="Adds.", inputSchema={"type": "object", "properties": {"a": {"type": "integer"}}})]

    @own.call_tool()
    async def call(name: str, arguments: dict[str, object]) -> list[types.TextContent]:
        return [types.TextContent(type="text", text=str(arguments))]

    async with stdio_server() as (read, write):
        await own.run(read, write, own.create_initialization_options())


if KIND == "lowlevel":
    anyio.run(by_hand)
else:
    server.run()
