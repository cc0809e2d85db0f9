"""Drives a stdio server with the official Python SDK (`mcp`).

    python python_client.py REVISION -- COMMAND [ARGUMENT...]

Prints one JSON object a line for each check. run.py knows the checks and what they must say.
"""

import json
import sys
import time
from contextlib import AsyncExitStack

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

REVISION, _, COMMAND, *ARGUMENTS = sys.argv[1:]
MODERN = REVISION >= "2026"


def say(check: str, **facts) -> None:
    print(json.dumps({"check": check, **facts}), flush=True)


async def handshake(session: ClientSession) -> types.Implementation | None:
    if MODERN:
        await session.discover()
        return session.server_info
    # `session.initialize()` offers only the newest revision.
    result = await session.send_request(
        types.InitializeRequest(
            params=types.InitializeRequestParams(
                protocol_version=REVISION,
                capabilities=types.ClientCapabilities(),
                client_info=types.Implementation(name="interop-python", version="1"),
            )
        ),
        types.InitializeResult,
    )
    session.adopt(result)
    await session.send_notification(types.InitializedNotification())
    return result.server_info


async def call(session: ClientSession, tool: str, progress=None, **arguments) -> str:
    result = await session.call_tool(tool, arguments, progress_callback=progress)
    if result.is_error:
        raise RuntimeError(f"isError: {result.content}")
    return result.content[0].text


async def outcome(request) -> dict:
    """What came of a request that ought to fail."""
    try:
        result = await request
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}
    return {"is_error": getattr(result, "is_error", None)}


async def checks(session: ClientSession) -> None:
    info = await handshake(session)
    say("connect", revision=session.protocol_version, name=info and info.name)
    tools = (await session.list_tools()).tools
    say("list", tools=[t.name for t in tools])
    for name, text in json.loads(sys.stdin.read()).items():
        say("echo", of=name, same=await call(session, "echo", text=text) == text)
    resized = await call(session, "resize", text="0123456789abcdefgh", n=100_000)
    say("resize", same=resized == "0123456789abcdef" + "x" * 99_984)

    say("unknown_tool", **await outcome(session.call_tool("no_such_tool", {})))
    say("bad_arguments", **await outcome(session.call_tool("echo", {"text": 7})))
    unknown = types.Request(method="no/such_method", params=types.RequestParams())
    say("unknown_method", **await outcome(session.send_request(unknown, types.EmptyResult)))
    if not MODERN:
        say("ping", **await outcome(session.send_ping()))

    seen: list[list[float | None]] = []

    async def on_progress(progress: float, total: float | None, _message: str | None) -> None:
        seen.append([progress, total])

    text = await call(session, "progress", on_progress, n=20)
    say("progress", text=text, seen=list(seen))

    before = json.loads(await call(session, "stats"))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: call(session, "sleep", ms=60_000))
        await anyio.sleep(0.3)
        during = json.loads(await call(session, "stats"))
        group.cancel_scope.cancel()
    await anyio.sleep(0.3)
    say("cancel", before=before, during=during, after=json.loads(await call(session, "stats")))

    wrong = []

    async def one(i: int) -> None:
        if await call(session, "echo", text=f"call {i}") != f"call {i}":
            wrong.append(i)

    async with anyio.create_task_group() as group:
        for i in range(300):
            group.start_soon(one, i)
    say("concurrent", wrong=wrong)


async def main() -> None:
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            server = StdioServerParameters(command=COMMAND, args=ARGUMENTS)
            streams = await stack.enter_async_context(stdio_client(server))
            async with ClientSession(*streams, client_info=types.Implementation(name="interop-python", version="1")) as session:
                await checks(session)
            began = time.monotonic()
        say("close", seconds=time.monotonic() - began)


anyio.run(main)
