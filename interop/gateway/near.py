"""A client by hand of either era, on HTTP. It has the same ids, tokens and URIs as all others, and knows for everything
that comes whether it may come to it, and on that stream.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from typing import Any

import http1
from far import MODERN, SUBSCRIPTION, VERSION

Message = dict[str, Any]
OLD = "2025-11-25"
DEADLINE = 30.0  # seconds for a call whose server is well
CAPABILITIES = {"elicitation": {}}
INFO = {"name": "crowd", "version": "1"}
URIS = 10
IDLE = 2.0  # seconds after which a connection is not used again: servers close them at some time


class Tally:
    """What came of all calls, and what came to the wrong place."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()  # by what the errors say
        self.misplaced: list[str] = []
        self.answered: list[str] = []  # the texts of the calls that were answered
        self.updates = 0

    def wrong(self, story: str) -> None:
        self.misplaced.append(story[:400])


class Broken(Exception):
    """The connection to the gateway has ended before an answer came."""


class Near:
    def __init__(self, number: int, revision: str, port: int, tally: Tally, seed: int) -> None:
        self.number, self.revision, self.port, self.tally = number, revision, port, tally
        self.modern = revision == MODERN
        self.random = random.Random(f"{seed}/{number}")
        self.secret = f"secret-{number}"
        self.session: dict[str, str] = {}
        self.last = 0
        self.uris: set[str] = set()
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, float]] = []
        self.stands: asyncio.Task | None = None
        self.heard: Counter[str] = Counter()

    # What it sends.

    def request(self, method: str, params: Message) -> Message:
        self.last += 1
        if self.modern:
            meta = {VERSION: self.revision, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
            params = {**params, "_meta": {**params.get("_meta", {}), **meta}}
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}

    async def send(self, method: str, message: Message | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer, since = self.idle.pop() if self.idle else (None, None, 0.0)
        if time.monotonic() - since > IDLE:
            writer.close() if writer else None
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
            except OSError as error:
                raise Broken(str(error)) from error
        fields = {"Host": f"127.0.0.1:{self.port}", "Accept": "application/json, text/event-stream", **self.session}
        body = b""
        if message:
            body = json.dumps(message).encode()
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if message and self.modern:
            params = message.get("params", {})
            fields |= {"MCP-Protocol-Version": self.revision, "Mcp-Method": message["method"]}
            fields |= {"Mcp-Name": params["name"]} if "name" in params else {}
        head = f"{method} /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(head.encode() + b"\r\n" + body)
        return reader, writer

    async def told(self, message: Message) -> None:
        """Sends what has no answer."""
        reader, writer = await self.send("POST", message)
        first, fields = await http1.head(reader)
        async for extra in http1.messages(reader, fields):
            self.tally.wrong(f"client {self.number}: {first} {extra} for {message}")
        self.idle.append((reader, writer, time.monotonic()))

    # What it hears.

    async def exchange(self, message: Message, text: str, leave_after: int | None = None) -> Message:
        """The answer to a request; `{}` if the client leaves before, after that many reports of progress."""
        reader, writer = await self.send("POST", message)
        answer, steps, is_whole = None, 0, False
        try:
            first, fields = await http1.head(reader)
            if "mcp-session-id" in fields:
                self.session = {"Mcp-Session-Id": fields["mcp-session-id"], "MCP-Protocol-Version": self.revision}
            async for heard in http1.messages(reader, fields):
                where = f"client {self.number}, {message['method']} {text}: {heard}"
                if answer is not None:
                    self.tally.wrong(f"after the answer: {where}")
                elif heard.get("method") == "notifications/progress":
                    report, steps = heard["params"], steps + 1
                    if (report["progressToken"], report.get("message")) != (self.token(message), text):
                        self.tally.wrong(where)
                elif heard.get("method") == "elicitation/create" and "id" in heard:
                    await self.asked(heard, text)
                elif heard.get("id") == message["id"] and "method" not in heard:
                    answer = heard
                else:
                    self.tally.wrong(where)
                if leave_after is not None and steps >= leave_after and answer is None:
                    return {}
            is_whole = True
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise Broken(repr(error)) from error
        finally:
            self.idle.append((reader, writer, time.monotonic())) if is_whole else writer.close()
        if answer is None:
            raise Broken(f"{first}: no answer to {message['method']} {text}")
        return answer

    @staticmethod
    def token(message: Message) -> Any:
        return message["params"].get("_meta", {}).get("progressToken")

    async def asked(self, question: Message, text: str) -> None:
        """The user says the secret of this client, if the question is about its call."""
        if question["params"]["message"] != text:
            self.tally.wrong(f"client {self.number}, {text}: asked {question}")
        said = {"action": "accept", "content": {"secret": self.secret}}
        await self.told({"jsonrpc": "2.0", "id": question["id"], "result": said})

    # What it does.

    async def open(self, uris: list[str]) -> None:
        self.uris = set(uris)
        ready = asyncio.Event()
        if not self.modern:
            hello = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": INFO}
            answer = await self.exchange(self.request("initialize", hello), "")
            if "result" not in answer:
                self.tally.wrong(f"client {self.number}: {answer}")
            await self.told({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.stands = asyncio.ensure_future(self.listen(ready))
        await asyncio.wait_for(ready.wait(), DEADLINE)
        for uri in uris if not self.modern else ():
            answer = await self.exchange(self.request("resources/subscribe", {"uri": uri}), "")
            if "result" not in answer:
                self.tally.failed[json.dumps(answer["error"])] += 1

    async def listen(self, ready: asyncio.Event) -> None:
        """Reads the stream that belongs to no call, to its end."""
        message, identity = None, None
        if self.modern:
            message = self.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": sorted(self.uris)}})
            identity = message["id"]
        reader, writer = await self.send("POST" if message else "GET", message)
        try:
            _, fields = await http1.head(reader)
            ready.set() if not message else None
            async for heard in http1.messages(reader, fields):
                params = heard.get("params", {})
                ours = params.get("_meta", {}).get(SUBSCRIPTION) == identity
                match heard.get("method"):
                    case "notifications/subscriptions/acknowledged" if ours:
                        ready.set()
                    case "notifications/resources/updated" if ours and params["uri"] in self.uris:
                        self.tally.updates += 1
                        self.heard[params["uri"]] += 1
                    case method if method and method.endswith("/list_changed"):
                        pass
                    case _:
                        self.tally.wrong(f"client {self.number}, on its stream: {heard}")
            self.tally.wrong(f"client {self.number}: its stream has ended")
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            self.tally.wrong(f"client {self.number}: its stream broke off: {error!r}")
        finally:
            writer.close()

    async def call(self, tool: str, text: str, name: str, **more: Any) -> str:
        """Calls a tool, and answers what it asks. Returns how that ended."""
        leave_after = more.pop("leave_after", None)
        params: Message = {"name": tool, "arguments": {"text": text, **more}}
        if "steps" in more:
            params["_meta"] = {"progressToken": "same"}
        message = self.request("tools/call", params)
        answer = await self.exchange(message, text, leave_after)
        if answer.get("result", {}).get("resultType") == "input_required":
            result = answer["result"]
            answers = {}
            for key, asked in result["inputRequests"].items():
                if asked["params"]["message"] != text:
                    self.tally.wrong(f"client {self.number}, {text}: {answer}")
                answers[key] = {"action": "accept", "content": {"secret": self.secret}}
            again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
            answer = await self.exchange(self.request("tools/call", again), text)
        if not answer:
            if not self.modern:
                cancel = {"requestId": message["id"]}
                await self.told({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
            return "left"
        if error := answer.get("error"):
            self.tally.failed[json.dumps(error.get("data", error))] += 1
            return "failed"
        expected = f"{name}:{text}" + (f":{self.secret}" if tool.endswith("ask") else "")
        if (found := answer["result"]["content"][0].get("text")) != expected:
            self.tally.wrong(f"client {self.number}: {found!r} for {expected!r}")
        self.tally.answered.append(text)
        return "answered"

    async def close(self) -> None:
        if self.stands:
            self.stands.cancel()
            await asyncio.wait([self.stands])
        if self.session:
            reader, writer = await self.send("DELETE", None)
            await http1.head(reader)
            writer.close()
        for _, writer, _ in self.idle:
            writer.close()
