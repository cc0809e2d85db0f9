"""Servers of the official SDK's and of FastMCP's, as they run by themselves, served by the engine with their kernel
kept, and accelerated: the same interactions, and every message compared."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from forks import Forks

WAYS = ["own", "served", "accelerated"]
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
CAPABILITIES = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
CLIENT = {"name": "raw", "version": "1"}
SECONDS = 180
"""No test takes longer: a conversation of this length takes seconds, and an SDK is imported slowly."""
ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"x": 3}},
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "said"}},
    "roots/list": {"roots": [{"uri": "file:///home/me"}]},
}
Message = dict[str, Any]
Difference = tuple[str, Callable[[list[Message], list[Message]], bool]]


def worded(theirs: list[Message], ours: list[Message]) -> bool:
    """The engine refuses it where the kernel did, in its own words."""
    return [one["error"]["code"] for one in theirs] == [one["error"]["code"] for one in ours]


def silent(theirs: list[Message], ours: list[Message]) -> bool:
    """Progress without the sentences that the revision does not have."""
    return [{**one, "params": without(one["params"], "message")} if "params" in one else one for one in theirs] == ours


def in_one_line(theirs: list[Message], ours: list[Message]) -> bool:
    """The sentence of an error."""
    told = [" ".join(one["error"]["message"].split()) for one in theirs]
    return told == [one["error"]["message"] for one in ours]


def without(params: Message, name: str) -> Message:
    return {key: value for key, value in params.items() if key != name}


# Where the engine and the SDK differ, by revision and step: the requirement that the engine follows, and how.
DIFFERENCES: dict[tuple[str, str], Difference] = {
    **{(revision, "prompt 'a'"): ("R-RPC-14", in_one_line) for revision in [*HANDSHAKES, STATELESS]},
    (STATELESS, "ping"): ("R-PNG-03", worded),
    ("2024-11-05", "progress"): ("R-PRG, the table of notifications", silent),
}


def call(name: object, **arguments: Any) -> Message:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


def lists() -> Iterator[tuple[str, list[Message]]]:
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield method, [{"method": method}]
        yield f"{method} again, with params", [{"method": method, "params": {"_meta": {"com.example/a": 1}}}]
        yield f"{method} from a cursor", [{"method": method, "params": {"cursor": "x"}}]


def common() -> Iterator[tuple[str, list[Message]]]:
    """The requests to every server."""
    yield from lists()
    yield "ping", [{"method": "ping"}]
    yield "resource", [{"method": "resources/read", "params": {"uri": "memo://a"}}]
    yield "resource of a template", [{"method": "resources/read", "params": {"uri": "memo://x/of/me"}}]
    yield "resource that fails", [{"method": "resources/read", "params": {"uri": "memo://x/of/nobody"}}]
    yield "resource of bytes", [{"method": "resources/read", "params": {"uri": "bytes://a"}}]
    for uri in ("json://a", "fails://a", "crashes://a", "seen://a", "seen://..%2Fa", "text://a"):
        yield f"resource {uri}", [{"method": "resources/read", "params": {"uri": uri}}]
    yield "no resource", [{"method": "resources/read", "params": {"uri": "none://a"}}]
    yield "resource without a uri", [{"method": "resources/read", "params": {}}]
    yield "prompt", [{"method": "prompts/get", "params": {"name": "greet", "arguments": {"who": "me"}}}]
    yield "prompt without an argument", [{"method": "prompts/get", "params": {"name": "greet"}}]
    for n in ("1", "3", "a", 1):
        yield f"prompt {n!r}", [{"method": "prompts/get", "params": {"name": "talk", "arguments": {"n": n}}}]
    yield "prompt of more", [{"method": "prompts/get", "params": {"name": "greet", "arguments": {"who": "a", "more": ""}}}]
    yield "prompt with the context", [{"method": "prompts/get", "params": {"name": "seen_prompt"}}]
    yield "no prompt", [{"method": "prompts/get", "params": {"name": "none"}}]
    reference = {"type": "ref/prompt", "name": "greet"}
    argument = {"name": "who", "value": "a"}
    yield "completion", [{"method": "completion/complete", "params": {"ref": reference, "argument": argument}}]
    yield "method of nobody's", [{"method": "com.example/none"}]
    yield "method of its own", [{"method": "com.example/own", "params": {"a": [1, {"b": None}]}}]
    yield "tool without a name", [{"method": "tools/call", "params": {"arguments": {}}}]
    yield "tool with a number for a name", [call(1)]
    yield "no tool", [call("none")]
    yield "arguments that are an array", [{"method": "tools/call", "params": {"name": "add", "arguments": [1]}}]
    yield "arguments that are null", [{"method": "tools/call", "params": {"name": "nothing", "arguments": None}}]
    yield "no arguments", [{"method": "tools/call", "params": {"name": "nothing"}}]
    yield "more params", [{"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "a"}, "own": 1}}]
    yield "meta", [{"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "a"}, "_meta": {"own": 1}}}]
    for text in ("", "a", "5", "null", '["a"]', "ü\n🎉", "a" * 5000):
        yield f"echo {text[:6]!r}", [call("echo", text=text)]
    for wrong in (1, None, ["a"], {}, True):
        yield f"echo {wrong!r}", [call("echo", text=wrong)]
    yield "echo of nothing", [call("echo")]
    yield "echo of more", [call("echo", text="a", more=1)]
    yield "many at once", [call("add", a=i, b=i) for i in range(20)]
    for how in ("tool", "mcp", "time", "other"):
        yield f"failure: {how}", [call("fail", how=how)]
    for a in (1, "5", 1.0, 1.5, "a", None, True, 2**70, "null", [1]):
        yield f"add {a!r}", [call("add", a=a)]
    for point in ({"x": 1}, '{"x": 1}', {"x": "a"}, 5):
        yield f"shift {point!r}", [call("shift", point=point, by=[1, 2])]
    yield "shift by text", [call("shift", point={"x": 1}, by="[1, 2]")]
    for text in (None, "a", "null", "5", '["a"]', '{"a": 1}'):
        yield f"maybe {text!r}", [call("maybe", text=text)]
    for value in (None, 1.5, "5", "[1]", "null", [1, {"a": None}], {"a": 2**60}):
        yield f"anything {value!r}", [call("anything", value=value)]
        yield f"untyped {value!r}", [call("untyped", value=value)]
    yield "colour", [call("choose", colour="red", weight=2)]
    yield "no colour", [call("choose", colour="blue", weight=2)]
    yield "no weight", [call("choose", colour="red", weight=-1)]
    for name in ("pair", "unstructured", "plain", "nothing", "unicode", "whole", "wrong", "log", "refuse"):
        yield name, [call(name, **{"pair": {"a": 1}, "unstructured": {"value": 1}, "plain": {"text": "a"}}.get(name, {}))]
    yield "still", [call("still", a=1)]
    yield "still, with text", [call("still", a="b")]
    for name in ("who", "aloud", "ask", "sample", "roots"):
        yield name, [call(name)]
    token = {"_meta": {"progressToken": "token"}}
    yield "progress", [{"method": "tools/call", "params": {"name": "progress", "arguments": {"n": 3}, **token}}]
    yield "progress nobody asked for", [call("progress", n=2)]
    yield "tool that adds one", [call("grow")]
    yield "tools/list after that", [{"method": "tools/list"}]
    yield "tool that was added", [call("grown", a="1", text="a")]


class Conversation:
    """A client of a server that runs `how`, on its stdin and stdout."""

    def __init__(self, server: Forks, how: str, revision: str) -> None:
        self.server = server
        self.how = how
        self.revision = revision
        self.count = 0
        self.asked = 0

    async def hold(self, steps: list[tuple[str, list[Message]]]) -> dict[str, list[Message]]:
        """Plays the steps, and returns the server's messages in each."""
        loop = asyncio.get_running_loop()
        stdin, writing = os.pipe()
        reading, stdout = os.pipe()
        process = await self.server.run(self.how, stdin=stdin, stdout=stdout)
        self.reader = asyncio.StreamReader(1 << 24)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.reader), open(reading, "rb"))
        self.writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, open(writing, "wb"))
        said = {"opening": await self.open()}
        for name, messages in steps:
            said[name] = await self.step(messages)
        said["cancel"] = await self.cancel()
        self.writer.close()
        assert await process.ends_well()
        return said

    async def open(self) -> list[Message]:
        if self.revision == STATELESS:
            return await self.step([{"method": "server/discover"}])
        params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": CLIENT}
        said = await self.step([{"method": "initialize", "params": params}])
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said

    def send(self, message: Message) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    def request(self, message: Message) -> Message:
        self.count += 1
        if self.revision == STATELESS:
            own = {"protocolVersion": STATELESS, "clientCapabilities": {"elicitation": {}}, "clientInfo": CLIENT}
            params = message.get("params", {})
            meta = {**{f"io.modelcontextprotocol/{name}": value for name, value in own.items()}, **params.get("_meta", {})}
            message = {**message, "params": {**params, "_meta": meta}}
        return {"jsonrpc": "2.0", "id": self.count, **message}

    async def step(self, messages: list[Message]) -> list[Message]:
        """Returns all messages until every request is answered, several in any order."""
        requests = [self.request(message) for message in messages]
        open = {request["id"] for request in requests}
        for request in requests:
            self.send(request)
        said: list[Message] = []
        while open:
            message = json.loads(await asyncio.wait_for(self.reader.readline(), 20))
            if "method" in message and "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]})
                self.asked += 1
                message["id"] = f"asked {self.asked}"
            elif "id" in message:
                open.discard(message["id"])
            said.append(normal(message))
        return sorted(said, key=lambda one: str(one.get("id"))) if len(messages) > 1 else said

    async def cancel(self) -> list[Message]:
        """A call that is given up is not answered, and the next one is."""
        slow = self.request(call("slow"))
        self.send(slow)
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow["id"]}})
        return await self.step([call("echo", text="after")])


def normal(message: Any) -> Any:
    """Without what is random, and without `params` and a `_meta` that say nothing, which some releases write."""
    if isinstance(message, dict):
        said = {key: "sealed" if key == "requestState" else normal(value) for key, value in message.items()}
        return {key: value for key, value in said.items() if key not in ("_meta", "params") or value != {}}
    return [normal(one) for one in message] if isinstance(message, list) else message


@pytest.fixture(scope="module", params=["lowlevel", "highlevel", "fast"])
def server(request: pytest.FixtureRequest) -> Iterator[Forks]:
    with Forks(request.param) as forks:
        yield forks


async def compare(
    conversation: type[Conversation], server: Forks, revision: str, allowed: dict[tuple[str, str], Difference]
) -> None:
    """Has a server run by itself, served and accelerated, and finds what it says otherwise."""
    talks = (conversation(server, how, revision).hold([*common()]) for how in WAYS)
    theirs, *ours = await asyncio.wait_for(asyncio.gather(*talks), SECONDS)
    differences = {}
    for how, all_said in zip(WAYS[1:], ours):
        for name, said in theirs.items():
            rule = allowed.get((revision, name))
            if all_said[name] != said and (rule is None or not rule[1](said, all_said[name])):
                differences[f"{name}, {how}"] = said, all_said[name]
    assert not differences, json.dumps(differences, indent=1)[:20000]


@pytest.mark.parametrize("revision", [*HANDSHAKES, STATELESS])
def test_a_server_says_the_same_as_by_itself(server: Forks, revision: str) -> None:
    asyncio.run(compare(Conversation, server, revision, DIFFERENCES))
