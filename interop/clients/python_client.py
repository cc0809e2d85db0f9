"""A client on the official Python SDK (`mcp`), driven by the steps of ../scripts.py."""

from contextlib import asynccontextmanager

import mcp_types as types
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

import python_steps as steps


def server():
    """As the SDK wants it named."""
    first, *rest = steps.SERVER
    if steps.CARRIER == "stdio":
        return StdioServerParameters(command=first, args=rest)
    return sse_client(first) if steps.CARRIER == "sse" else first


class Connected:
    def __init__(self, client: Client) -> None:
        self.session, self.server_capabilities = client.session, client.server_capabilities
        self.read, self.prompt = client.read_resource, client.get_prompt
        self.client = client

    async def call(self, tool, arguments, progress=None, timeout=None, meta=None):
        options = {"read_timeout_seconds": timeout, "progress_callback": progress, "meta": meta}
        return await self.client.call_tool(tool, arguments, **options)

    async def tools(self, params=None):
        return await self.client.list_tools(cursor=params and params.cursor)


@asynccontextmanager
async def connect():
    async def model(_context, params):
        return await steps.model(params)

    async def user(_context, params):
        return steps.user(params)

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=steps.ROOT)])

    client = Client(
        server(),
        mode="auto" if steps.MODERN else "legacy",
        client_info=steps.INFO,
        sampling_callback=model,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        elicitation_callback=user,
        list_roots_callback=roots,
        logging_callback=steps.logged,
        message_handler=steps.told,
        extensions=steps.EXTENSIONS,
    )
    async with client:
        yield Connected(client)


def main() -> None:
    steps.play(connect)


if __name__ == "__main__":
    main()
