"""A server of functions for whole methods."""

import anyio
import how
import mcp_types as types
from mcp.server.lowlevel import Server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [types.Tool(name="echo", description="Echoes.", input_schema=SCHEMA)]


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS, next_cursor="more" if not params or not params.cursor else None)


async def call_tool(ctx, params):
    text = (params.arguments or {}).get("text", "")
    match params.name:
        case "echo":
            return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
        case "fail":
            raise ValueError("no such luck")
        case "refuse":
            from mcp.shared.exceptions import MCPError

            raise MCPError(code=-32050, message="not today", data={"why": "rain"})
        case "log":
            await ctx.session.send_log_message("warning", {"said": text}, "own", related_request_id=ctx.request_id)
            return types.CallToolResult(content=[], structured_content={"a": 1})
        case "progress":
            for step in range(3):
                await ctx.session.report_progress(step, 2, "on")
            return types.CallToolResult(content=[])
        case "who":
            headers = ctx.request.headers if ctx.request else {}
            said = f"{headers.get('x-who')} {headers.get('authorization')}"
            return types.CallToolResult(content=[types.TextContent(type="text", text=said)])
        case "wrong":
            return {"content": "no list"}
        case "slow":
            await anyio.sleep(60)
    return types.CallToolResult(content=[], is_error=True)


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="memo://a", name="a")])


async def read_resource(ctx, params):
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="memo")])


async def complete(ctx, params):
    return types.CompleteResult(completion=types.Completion(values=[params.argument.value + "!"]))


async def own(ctx, params):
    return {"method": ctx.method, "params": dict(ctx.params or {})}


server = Server(
    "lowlevel",
    version="1",
    instructions="Be kind.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_completion=complete,
)
server.add_request_handler("com.example/own", types.RequestParams, own)

if __name__ == "__main__":
    how.run(server)
