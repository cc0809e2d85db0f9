"""Our client in Python, driven by the steps of ../../scripts.py.

client.py REVISION CARRIER SERVER...
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from mcpbolt import Client, ElicitationRequest, McpError, RequestTimeout, Sampled, SamplingRequest, Text

Outcome = dict[str, Any]
ROOT = "file:///interop"
SETTLED = 0.1  # seconds, after which whatever a call made the server tell has been told


class Driven:
    """The client, what it has heard, and what it answers."""

    def __init__(self, server: str | list[str], revision: str) -> None:
        self.modern = revision >= "2026"
        self.heard: list[str] = []
        self.client = Client(
            server,
            revision=revision,
            opening="probe" if self.modern else "handshake",
            name="interop-python",
            version="1",
            on_log=lambda message: self.heard.append(message["level"]),
            on_list_changed=lambda kind: self.heard.append(f"{kind}/list_changed"),
            on_resource_updated=lambda uri: self.heard.append(f"resources/updated {uri}"),
            on_sampling=self.model,
            sampling_tools=True,
            on_elicitation=user,
            on_elicitation_url=lambda _: True,
            roots=[ROOT],
            extensions={"example.com/interop": {"version": 2}},
            tasks=True,
        )

    async def model(self, request: SamplingRequest) -> Sampled:
        if request.tools:
            use = {"type": "tool_use", "id": "1", "name": request.tools[0]["name"], "input": {}}
            return Sampled(use, "m", stop_reason="toolUse")
        last = request.messages[-1].content
        text = last.text if isinstance(last, Text) else ""
        if text.startswith("nest ") and text != "nest 0":
            nested = {"text": f"nest {int(text[5:]) - 1}"}
            return Sampled(f"({(await self.client.call_tool('ask_model', nested)).text})", "m")
        return Sampled(f"said {text}", "m")

    def taken(self) -> list[str]:
        heard, self.heard = self.heard, []
        return heard

    async def call(self, step: dict[str, Any]) -> Outcome:
        seen: list[tuple[float, float | None]] = []
        report: Callable[..., object] | None = None
        if step.get("progress"):
            report = lambda progress, total, _: seen.append((progress, total))  # noqa: E731
        timeout = step["timeout_ms"] / 1000 if "timeout_ms" in step else None
        options = {"timeout": timeout, "on_progress": report, "meta": step.get("meta")}
        calling = asyncio.ensure_future(self.client.call_tool(step["tool"], step.get("arguments"), **options))
        if "cancel_ms" in step:
            await asyncio.sleep(step["cancel_ms"] / 1000)
            calling.cancel()
        try:
            result = await calling
        except asyncio.CancelledError:
            return {"ended": "cancelled"}
        except RequestTimeout:
            return {"ended": "timed out"}
        outcome = {"text": result.text, "is_error": result.is_error, "structured": result.structured}
        return outcome | {"meta": result.wire.get("_meta"), "seen": seen}

    async def logs(self, step: dict[str, Any]) -> Outcome:
        if self.modern:
            step = step | {"meta": {"io.modelcontextprotocol/logLevel": step["level"]}}
        else:
            await self.client.set_log_level(step["level"])
        self.taken()
        await self.call(step)
        await asyncio.sleep(SETTLED)
        return {"levels": self.taken()}

    async def listen(self, step: dict[str, Any]) -> Outcome:
        self.taken()
        if self.modern:
            async with self.client.listen(tools=True, uris=step["uris"]):
                during = await self.told(step)
        else:
            for uri in step["uris"]:
                await self.client.subscribe(uri)
            during = await self.told(step)
            for uri in step["uris"]:
                await self.client.unsubscribe(uri)
        return {"heard": during, "after": await self.told(step)}

    async def told(self, step: dict[str, Any]) -> list[str]:
        """Records the notifications during a call."""
        await self.call(step)
        await asyncio.sleep(SETTLED)
        return sorted(set(self.taken()))

    async def perform(self, step: dict[str, Any]) -> Outcome:
        client = self.client
        match step["do"]:
            case "info":
                info = client.server_info
                extensions = info.capabilities.get("extensions")
                return {"revision": info.revision, "name": info.name, "extensions": extensions}
            case "tools":
                return listed([await client.list_tools()], "name")
            case "pages":
                return {"pages": len([page async for page in client.tool_pages()])}
            case "resources":
                return listed([page async for page in client.resource_pages()], "uri")
            case "templates":
                return listed([page async for page in client.resource_template_pages()], "uriTemplate")
            case "prompts":
                return listed([page async for page in client.prompt_pages()], "name")
            case "read":
                (found,) = (await client.request("resources/read", {"uri": step["uri"]})).parse()["contents"]
                return {"text": found.get("text"), "blob": found.get("blob"), "mime": found.get("mimeType")}
            case "prompt":
                content = (await client.get_prompt(step["name"], step["arguments"])).messages[0].content
                return {"text": content.text if isinstance(content, Text) else None}
            case "complete":
                offered = await (client.list_prompts() if "prompt" in step else client.list_resource_templates())
                found = await client.complete(offered[0], step["argument"], step["value"])
                return {"values": found.values}
            case "ping":
                await client.ping()
                return {}
            case "request":
                await client.request(step["method"])
                return {}
            case "call":
                return await self.call(step)
            case "many":
                calls = (client.call_tool(step["tool"], {step["argument"]: f"call {i}"}) for i in range(step["count"]))
                return {"answers": [result.text for result in await asyncio.gather(*calls)]}
            case "task":
                task = await client.start_tool(step["tool"], step["arguments"])
                return {"text": (await task).text, "status": (await task.info()).status}
            case "logs":
                return await self.logs(step)
            case "listen":
                return await self.listen(step)
        return {"unknown": step["do"]}

    async def outcome(self, step: dict[str, Any]) -> Outcome:
        try:
            return await self.perform(step)
        except McpError as error:
            return {"failed": str(error)} if error.code is None else {"code": error.code}


async def user(request: ElicitationRequest) -> dict[str, object] | bool | None:
    return {"Who?": {"name": "Ada"}, "No?": False}.get(request.message)


def listed(pages: list[list[Any]], name: str) -> Outcome:
    items = [item.wire for page in pages for item in page]
    return {"names": [item[name] for item in items], "items": items}


async def main(revision: str, carrier: str, server: list[str], steps: list[dict[str, Any]]) -> None:
    driven = Driven(server if carrier == "stdio" else server[0], revision)
    async with driven.client as client:
        for step in steps:
            if step["do"] == "close":
                break
            print(json.dumps(await driven.outcome(step)), flush=True)
        began = time.monotonic()
    print(json.dumps({"strays": client.stray_count, "ms": (time.monotonic() - began) * 1000}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:], json.load(sys.stdin)))
