"""Our client in Python as a driver of the scripts in ../../scripts.py, which says what the steps
and their outcomes are.

    driver.py REVISION -- COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from mcpbolt import Client, McpError, RequestTimeout, Text

Outcome = dict[str, Any]


async def call(client: Client, step: dict[str, Any]) -> Outcome:
    seen: list[tuple[float, float | None]] = []
    report: Callable[..., object] | None = None
    if step.get("progress"):
        report = lambda progress, total, _: seen.append((progress, total))  # noqa: E731
    timeout = step["timeout_ms"] / 1000 if "timeout_ms" in step else None
    calling = asyncio.ensure_future(
        client.call_tool(step["tool"], step["arguments"], timeout=timeout, on_progress=report)
    )
    if "cancel_ms" in step:
        await asyncio.sleep(step["cancel_ms"] / 1000)
        calling.cancel()
    try:
        result = await calling
    except asyncio.CancelledError:
        return {"ended": "cancelled"}
    except RequestTimeout:
        return {"ended": "timed out"}
    outcome = {"text": result.text, "is_error": result.is_error}
    return outcome | {"seen": seen} if report else outcome


async def many(client: Client, step: dict[str, Any]) -> Outcome:
    calls = (client.call_tool(step["tool"], {step["argument"]: f"call {i}"}) for i in range(step["count"]))
    return {"answers": [result.text for result in await asyncio.gather(*calls)]}


async def perform(client: Client, step: dict[str, Any]) -> Outcome:
    match step["do"]:
        case "info":
            return {"revision": client.server_info.revision, "name": client.server_info.name}
        case "tools":
            return {"names": [tool.name for tool in await client.list_tools()]}
        case "resources":
            return {"names": [resource.uri for resource in await client.list_resources()]}
        case "prompts":
            return {"names": [prompt.name for prompt in await client.list_prompts()]}
        case "read":
            return {"text": (await client.read_resource(step["uri"]))[0].text}
        case "prompt":
            content = (await client.get_prompt(step["name"], step["arguments"])).messages[0].content
            return {"text": content.text if isinstance(content, Text) else None}
        case "ping":
            await client.ping()
            return {}
        case "call":
            return await call(client, step)
        case "many":
            return await many(client, step)
    return {"unknown": step["do"]}


async def told(client: Client, step: dict[str, Any]) -> Outcome:
    try:
        return await perform(client, step)
    except McpError as error:
        return {"failed": str(error)} if error.code is None else {"code": error.code}


async def main(revision: str, command: list[str], steps: list[dict[str, Any]]) -> None:
    opening = "handshake" if revision < "2026" else "probe"
    client = Client(command, revision=revision, opening=opening, name="interop-python", version="1")
    async with client:
        for step in steps:
            if step["do"] == "close":
                break
            print(json.dumps(await told(client, step)), flush=True)
    print(json.dumps({"strays": client.stray_count}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[3:], json.load(sys.stdin)))
