"""The same servers over HTTP: by their own applications under uvicorn, and served by the engine, kept and accelerated."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator

import httpx2
import pytest
from forks import Forks
from test_existing import (
    ANSWERS,
    DIFFERENCES,
    STATELESS,
    Conversation,
    Difference,
    Message,
    call,
    compare,
    normal,
    server as server,
)

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", STATELESS]
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
KINDS = "application/json, text/event-stream"


class OverHttp(Conversation):
    """A client of a server that runs `how`, at an address of its own."""

    def __init__(self, server: Forks, how: str, revision: str) -> None:
        super().__init__(server, how, revision)
        # Held until the server takes it, so that no two have the same.
        self.place = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.place.getsockname()[1]}/mcp"
        self.session: str | None = None
        # The messages that belong to no request.
        self.standing: list[Message] = []

    async def hold(self, steps: list[tuple[str, list[Message]]]) -> dict[str, list[Message]]:
        self.place.close()
        nothing, output = os.open(os.devnull, os.O_RDONLY), os.dup(2)
        process = await self.server.run(self.how, self.url, stdin=nothing, stdout=output)
        try:
            async with httpx2.AsyncClient(timeout=30, limits=httpx2.Limits(max_connections=200)) as self.http:
                await self.until_it_listens()
                said = {"opening": await self.open()}
                listening = asyncio.ensure_future(self.listen())
                for name, messages in steps:
                    said[name] = await self.step(messages)
                said["cancel"] = await self.cancel()
                said["standing"] = self.standing
                listening.cancel()
        finally:
            os.kill(process.pid, signal.SIGTERM)
            ends_well = await process.ends_well()
        # By itself it ends by the signal.
        assert ends_well or self.how == "own"
        return said

    async def until_it_listens(self) -> None:
        for _ in range(1000):
            try:
                await self.http.get(self.url.replace("/mcp", "/none"))
                return
            except httpx2.TransportError:
                await asyncio.sleep(0.02)
        raise AssertionError("nobody listens")

    async def open(self) -> list[Message]:
        if self.revision == STATELESS:
            return await self.step([{"method": "server/discover"}])
        client = {"protocolVersion": self.revision, "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}}}
        said = await self.step([{"method": "initialize", "params": {**client, "clientInfo": {"name": "raw", "version": "1"}}}])
        await self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    def headers(self, message: Message) -> dict[str, str]:
        headers = {"accept": KINDS, "x-who": "Ada", "authorization": "Bearer sesame"}
        if self.session is not None:
            headers["mcp-session-id"] = self.session
        if self.session is not None or self.revision == STATELESS:
            headers["mcp-protocol-version"] = self.revision
        if self.revision == STATELESS and "method" in message:
            headers["mcp-method"] = message["method"]
            name = message.get("params", {}).get(NAMED.get(message["method"]))
            if isinstance(name, str):
                headers["mcp-name"] = name
        return headers

    async def tell(self, message: Message) -> None:
        said = await self.http.post(self.url, json=message, headers=self.headers(message))
        assert said.status_code == 202, said.text

    async def exchange(self, message: Message) -> list[Message]:
        """Everything that is said on the answer to one message."""
        said = []
        async with self.http.stream("POST", self.url, json=message, headers=self.headers(message)) as answer:
            self.session = answer.headers.get("mcp-session-id", self.session)
            async for one in messages(answer):
                said.append(await self.hear(one))
        return said

    async def hear(self, message: Message) -> Message:
        """Answers what is asked; gives it as it is compared."""
        if "method" in message and "id" in message:
            await self.tell({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]})
            self.asked += 1
            message["id"] = f"asked {self.asked}"
        heard: Message = normal(message)
        return heard

    async def step(self, messages: list[Message]) -> list[Message]:
        requests = [self.request(message) for message in messages]
        said = await asyncio.gather(*(self.exchange(request) for request in requests))
        return [one for each in said for one in each]

    async def listen(self) -> None:
        """Collects the server's messages outside of requests, as long as the session lasts."""
        if self.session is None:
            return
        async with self.http.stream("GET", self.url, headers=self.headers({}), timeout=None) as answer:
            async for one in messages(answer):
                self.standing.append(await self.hear(one))

    async def cancel(self) -> list[Message]:
        """A call that is given up does not keep the next one."""
        slow = self.request(call("slow"))
        calling = asyncio.ensure_future(self.exchange(slow))
        await asyncio.sleep(0.1)
        if self.session is not None:
            await self.tell(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow["id"]}}
            )
        calling.cancel()
        return await self.step([call("echo", text="after")])


async def messages(answer: httpx2.Response) -> AsyncIterator[Message]:
    """The messages of an answer, be it one or events."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        body = await answer.aread()
        if body:
            yield json.loads(body)
        return
    buffer = b""
    async for chunk in answer.aiter_bytes():
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_says_the_same_over_http(server: Forks, revision: str) -> None:
    asyncio.run(compare(OverHttp, server, revision, {**DIFFERENCES, **OVER_HTTP}))


def of_the_params(theirs: list[Message], ours: list[Message]) -> bool:
    """It is refused for what it says, not for its headers."""
    codes = [one["error"]["code"] for each in (theirs, ours) for one in each]
    return codes == [-32020, -32602]


# As `DIFFERENCES`, where HTTP is the reason.
OVER_HTTP: dict[tuple[str, str], Difference] = {
    # There the header that such a name cannot have is missed before the name is looked at.
    (STATELESS, "tool with a number for a name"): ("no header can say such a name", of_the_params),
}
