"""A server of FastMCP's."""

import os

os.environ.setdefault("FASTMCP_LOG_LEVEL", "CRITICAL")
os.environ.setdefault("FASTMCP_CHECK_FOR_UPDATES", "off")
os.environ.setdefault("FASTMCP_SHOW_SERVER_BANNER", "false")

from typing import Any, Optional

import anyio
import how
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from pydantic import BaseModel

server = FastMCP("fast", version="1", instructions="Be kind.")


class Point(BaseModel):
    x: int
    y: int = 0


@server.tool
def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@server.tool(title="Echo", tags={"a"})
async def echo(text: str) -> str:
    return text


@server.tool
def shift(point: Point, by: list[int]) -> Point:
    return Point(x=point.x + by[0], y=point.y + by[1])


@server.tool
def maybe(text: Optional[str] = None) -> list[str]:
    return [] if text is None else [text, text]


@server.tool
def anything(value: Any) -> dict[str, Any]:
    return {"value": value}


@server.tool
def untyped(value):
    return value


@server.tool
def nothing() -> None:
    return None


@server.tool
def unicode() -> str:
    return 'ünïcödé "quoted" \n \u2028 🎉'


@server.tool
def whole() -> ToolResult:
    return ToolResult(content="text", structured_content={"a": 1}, meta={"own": 1})


@server.tool
async def fail(how: str) -> str:
    if how == "tool":
        raise ToolError("on purpose")
    if how == "time":
        raise TimeoutError
    raise ValueError("no such luck")


@server.tool
def wrong() -> int:
    return "no number"  # type: ignore[return-value]


@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", Point)
    return answer.action


@server.tool
async def progress(n: int, ctx: Context) -> str:
    for step in range(n):
        await ctx.report_progress(step, n, "on")
    await ctx.info("done")
    return "done"


@server.tool
async def who() -> str:
    from fastmcp.server.dependencies import get_http_headers

    headers = get_http_headers(include={"authorization"})
    return f"{headers.get('x-who')} {headers.get('authorization')}"


@server.tool
def still(a: int, ctx: Context) -> int:
    return a + len(ctx.fastmcp.name)


@server.tool
async def aloud(ctx: Context) -> list[str]:
    await ctx.warning("aloud")
    read = await ctx.read_resource("memo://a")
    return [str(ctx.request_id), str(read.contents[0].content)]


@server.tool
async def slow() -> str:
    await anyio.sleep(60)
    return "late"


@server.tool
def grow() -> str:
    server.tool(echo, name="grown")
    return "grown"


@server.resource("memo://a", mime_type="text/plain")
def memo() -> str:
    return "memo"


@server.resource("memo://{name}/of/{who}")
def memos(name: str, who: str) -> str:
    if who == "nobody":
        raise ValueError("no such luck")
    return f"{name} of {who}"


@server.resource("fails://a")
def fails() -> str:
    raise ValueError("no such luck")


@server.resource("seen://{name}")
async def seen(name: str, ctx: Context) -> str:
    return f"{name} {ctx.fastmcp.name}"


@server.prompt
def greet(who: str, how: str = "kindly") -> str:
    return f"Greet {who} {how}"


@server.prompt
async def talk(n: int, ctx: Context) -> list[str]:
    if n > 2:
        raise ValueError("no such luck")
    return ["a", ctx.fastmcp.name]


if __name__ == "__main__":
    how.run(server)
