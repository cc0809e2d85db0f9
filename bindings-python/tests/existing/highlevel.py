"""A server of the SDK's decorators."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import anyio
import how
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

state = {"open": 0}


@asynccontextmanager
async def lifespan(server):
    state["open"] += 1
    yield state


server = MCPServer("highlevel", version="1", instructions="Be kind.", log_level="CRITICAL", lifespan=lifespan)


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Pair:
    a: int
    b: str


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@server.tool(title="Echo", meta={"com.example/a": 1})
async def echo(text: str) -> str:
    return text


@server.tool()
async def plain(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], _meta={"own": 1})


@server.tool()
def shift(point: Point, by: list[int]) -> Point:
    return Point(x=point.x + by[0], y=point.y + by[1])


@server.tool()
def pair(a: int) -> Pair:
    return Pair(a, str(a))


@server.tool()
def maybe(text: Optional[str] = None) -> list[str]:
    return [] if text is None else [text, text]


@server.tool()
def choose(colour: Literal["red", "green"], weight: Annotated[float, Field(gt=0)]) -> bool:
    return colour == "red" and weight > 1


@server.tool()
def anything(value: Any) -> dict[str, Any]:
    return {"value": value}


@server.tool(structured_output=False)
def unstructured(value: int) -> dict[str, int]:
    return {"value": value}


@server.tool()
def untyped(value):
    return value


@server.tool()
def nothing() -> None:
    return None


@server.tool()
def unicode() -> str:
    return 'ünïcödé "quoted" \n \u2028 🎉'


@server.tool()
async def fail(how: str) -> str:
    if how == "tool":
        raise ToolError("on purpose")
    if how == "mcp":
        raise MCPError(code=-32050, message="not today", data={"why": "rain"})
    raise ValueError("a secret")


@server.tool()
def wrong() -> int:
    return "no number"  # type: ignore[return-value]


@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("How many?", Point)
    return f"{answer.action} {answer.data if answer.action == 'accept' else None}"


@server.tool()
async def sample(ctx: Context) -> str:
    from mcp_types import SamplingMessage

    said = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text="Say."))], max_tokens=9
    )
    return said.content.text


@server.tool()
async def roots(ctx: Context) -> str:
    return str([str(root.uri) for root in (await ctx.session.list_roots()).roots])


@server.tool()
async def progress(n: int, ctx: Context) -> str:
    for step in range(n):
        await ctx.report_progress(step, n, "on")
    await ctx.info("done")
    return str(ctx.request_context.lifespan_context["open"])


@server.tool()
async def who(ctx: Context) -> str:
    session = ctx.request_context.session._connection.session_id
    headers = ctx.headers or {}
    known = session is None or headers.get("mcp-session-id", session) == session
    return f"{headers.get('x-who')} {headers.get('authorization')} {known}"


@server.tool()
async def aloud(ctx: Context) -> list[str]:
    await ctx.log("warning", {"a": 1}, logger_name="own")
    read = [*await ctx.read_resource("memo://a")]
    return [str(ctx.request_id), str(ctx.protocol_version), str(read[0].content), str(ctx.client_capabilities is None)]


@server.tool()
def still(a: int, ctx: Context) -> int:
    return a + len(str(ctx.protocol_version))


@server.tool()
async def slow() -> str:
    await anyio.sleep(60)
    return "late"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(lambda a: a, name="grown", description="Was added.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("memo://a", mime_type="text/plain")
def memo() -> str:
    return "memo"


@server.resource("memo://{name}/of/{who}")
def memos(name: str, who: str) -> str:
    if who == "nobody":
        raise ValueError("a secret")
    return f"{name} of {who}"


@server.resource("bytes://a")
def some_bytes() -> bytes:
    return b"\x00\xff"


@server.resource("json://a")
async def some_json() -> dict[str, Any]:
    return {"a": [1, None]}


@server.resource("fails://a")
def fails() -> str:
    raise ResourceError("on purpose") if state["open"] else ValueError("never")


@server.resource("crashes://a", mime_type="text/x-own", meta={"com.example/a": 1})
def crashes() -> str:
    raise ValueError("a secret")


@server.resource("seen://{name}")
async def seen(name: str, ctx: Context) -> str:
    return f"{name} {ctx.protocol_version}"


server.add_resource(TextResource(uri="text://a", text="still", meta={"com.example/a": 1}))


@server.prompt()
def greet(who: str, how: str = "kindly") -> str:
    return f"Greet {who} {how}"


@server.prompt()
async def talk(n: int) -> list[Message]:
    if n > 2:
        raise ValueError("a secret")
    return [UserMessage("ü"), AssistantMessage("b")]


@server.prompt()
def seen_prompt(ctx: Context):
    return f"in {ctx.protocol_version}"


@server.completion()
async def complete(ref, argument, context):
    from mcp_types import Completion

    return Completion(values=[argument.value + "!"])


if __name__ == "__main__":
    how.run(server)
