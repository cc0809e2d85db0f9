"""FastMCP's client, driven by the steps of ../scripts.py."""

from contextlib import asynccontextmanager

import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

import python_steps as steps


def server() -> StdioTransport | StreamableHttpTransport:
    first, *rest = steps.SERVER
    return StdioTransport(first, rest, keep_alive=False) if steps.CARRIER == "stdio" else StreamableHttpTransport(first)


class Connected:
    def __init__(self, client: Client) -> None:
        self.session, self.server_capabilities = client.session, client.server_capabilities
        self.read, self.client = client.read_resource_mcp, client

    async def call(self, tool, arguments, progress=None, timeout=None, meta=None):
        return await self.client.call_tool_mcp(tool, arguments, progress_handler=progress, timeout=timeout, meta=meta)

    async def tools(self, params=None):
        return await self.client.list_tools_mcp(cursor=params and params.cursor)

    async def prompt(self, name, arguments):
        return await self.client.get_prompt_mcp(name, arguments)


@asynccontextmanager
async def connect():
    async def model(_messages, params, _context):
        return await steps.model(params)

    async def user(_message, _kind, params, _context):
        return steps.user(params)

    client = Client(
        server(),
        mode="auto" if steps.MODERN else "legacy",
        client_info=steps.INFO,
        roots=[steps.ROOT],
        sampling_handler=model,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        elicitation_handler=user,
        log_handler=steps.logged,
        message_handler=steps.told,
        cache=True,
        extensions=steps.EXTENSIONS,
    )
    async with client:
        yield Connected(client)


def main() -> None:
    steps.play(connect)


if __name__ == "__main__":
    main()
