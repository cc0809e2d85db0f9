"""A conversation with a published server: its lists, and three calls of each tool, with right, wrong and missing arguments."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from published.right import RIGHT
from published.servers import Published
from published.site import SITE, address

Message = dict[str, Any]
LISTS = {"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}
STATELESS = "2026-07-28"
CLIENT = {"name": "raw", "version": "1"}
START_SECONDS, ANSWER_SECONDS, END_SECONDS = 120, 120, 30


class Talk:
    """A client of a server process, one request at a time."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str], revision: str) -> None:
        pipe = subprocess.PIPE
        self.errors = (folder.parent / f"{folder.name}.stderr").open("w+b")
        self.process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdin=pipe, stdout=pipe, stderr=self.errors
        )
        self.revision = revision
        self.count = 0
        self.buffer = b""
        self.seconds = START_SECONDS

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream:
                stream.close()

    def send(self, message: Message) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The next line of stdout; empty at its end."""
        assert self.process.stdout
        until = time.monotonic() + self.seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not selector.select(max(0, until - time.monotonic())):
                    raise TimeoutError(f"no answer after {self.seconds} s: {self.stderr()[-2000:]}")
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    return b""
                self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def request(self, method: str, params: Message | None = None) -> Message:
        """Sends a request and returns its answer, without the id, and with the notifications before it."""
        self.begin(method, params)
        said = []
        while True:
            line = self.line()
            if not line:
                return {"ended": self.process.wait(END_SECONDS), "said": said}
            if not line.startswith(b"{"):
                # What the server itself prints.
                said.append({"printed": line.decode(errors="replace")})
                continue
            message = json.loads(line)
            if message.get("id") == self.count:
                del message["id"]
                return {**message, "before": said} if said else message
            said.append(message)

    def begin(self, method: str, params: Message | None = None) -> int:
        self.count += 1
        params = dict(params or {})
        if self.revision == STATELESS:
            own = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": CLIENT}
            params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in own.items()}
        self.send({"id": self.count, "method": method, **({"params": params} if params else {})})
        return self.count

    def open(self) -> Message:
        if self.revision == STATELESS:
            answer = self.request("server/discover")
        else:
            answer = self.request("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": CLIENT})
            self.send({"method": "notifications/initialized"})
        self.seconds = ANSWER_SECONDS
        return answer

    def end(self) -> int:
        """Ends stdin; returns the exit status."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(END_SECONDS)

    def stderr(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def conversation(talk: Talk, server: Published) -> Iterator[tuple[str, object]]:
    """Everything that the server says, step by step."""
    yield "opening", talk.open()
    tools: list[Message] = []
    for method, name in LISTS.items():
        answer = talk.request(method)
        yield method, answer
        if method == "tools/list":
            tools = answer.get("result", {}).get(name, [])
    for tool in tools:
        name = tool["name"]
        if name in server.without or server.is_listed_only:
            continue
        schema = tool["inputSchema"]
        right = arguments(schema, name, server)
        for how, given in (("right", right), ("wrong", wrong(right, schema)), ("missing", {})):
            yield f"{name} {how} {json.dumps(given)}", talk.request("tools/call", {"name": name, "arguments": given})
    if server.is_listed_only:
        tools = []
    yield "no such tool", talk.request("tools/call", {"name": "no-such-tool", "arguments": {}})
    yield "cancelled", cancelled(talk, tools)
    yield "end", talk.end()


def cancelled(talk: Talk, tools: list[Message]) -> Message:
    """A call that is given up does not keep the next request."""
    if tools:
        number = talk.begin("tools/call", {"name": tools[0]["name"], "arguments": {}})
        talk.send({"method": "notifications/cancelled", "params": {"requestId": number}})
    answer = talk.request("tools/list")
    # Whether the call was answered before is a matter of time.
    answer.pop("before", None)
    return answer


def arguments(schema: Message, tool: str, server: Published) -> Message:
    """Right arguments: those that are written down, or by the schema the required ones and those whose values are known."""
    written = RIGHT.get(server.name, {}).get(tool)
    if written is not None:
        return written
    required, known = schema.get("required", ()), server.known
    made = {}
    for name, of in schema.get("properties", {}).items():
        value = known.get(f"{tool}.{name}", known.get(name))
        if value is not None:
            made[name] = address() + "a" if value == SITE else value
        elif name in required:
            made[name] = example(of, schema)
    return made


def example(of: Message, whole: Message) -> Any:
    """A value by its schema."""
    if "$ref" in of:
        target: Any = whole
        for part in of["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return example(target, whole)
    for key in ("default", "const"):
        if of.get(key) is not None:
            return of[key]
    if of.get("enum"):
        return of["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if of.get(key):
            return example(next((one for one in of[key] if one.get("type") != "null"), of[key][0]), whole)
    kind = of.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: example(one, whole) for name, one in of.get("properties", {}).items() if name in of.get("required", ())}
    values = {"string": "text", "integer": of.get("minimum", 1), "number": 1.5, "boolean": True, "null": None}
    return [example(of.get("items", {}), whole)] if kind == "array" else values.get(str(kind), "any")


def wrong(right: Message, schema: Message) -> Message:
    """The same arguments with values of other types."""
    if not right:
        return {"surplus": 1}
    return {name: ["wrong"] if isinstance(value, dict) else {"wrong": [1]} for name, value in right.items()}


# What differs from run to run.
MASKS = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?([+-]\d\d:?\d\d|Z)?"), "TIME"),
    (re.compile(r"\d\d:\d\d:\d\d([.,]\d+)?"), "TIME"),
    (re.compile(r"\d\d/\d\d/\d\d"), "DATE"),
    (re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b\d+\.\d+( ?(s|ms|seconds|milliseconds)\b)"), r"N\1"),
    (re.compile(r"/tmp/tmp\w+"), "TEMPORARY"),
    (re.compile(r'(_s|_seconds)": ?\d+(\.\d+)?(e-\d+)?'), r'\1":N'),
]


def masked(value: Any) -> Any:
    """A value without what differs from run to run, and without a `_meta` or `params` that say nothing."""
    if isinstance(value, str):
        for pattern, word in MASKS:
            value = pattern.sub(word, value)
        return value
    if isinstance(value, dict):
        said = {masked(key): "N" if key.endswith(("_s", "_seconds")) else masked(one) for key, one in value.items()}
        return {key: one for key, one in said.items() if key not in ("_meta", "params") or one != {}}
    return [masked(one) for one in value] if isinstance(value, list) else value


def ended_by(signum: int, talk: Talk) -> int:
    """Starts the server, and ends it by a signal; returns the exit status."""
    talk.open()
    talk.process.send_signal(signum)
    return talk.process.wait(END_SECONDS)


def shape(value: Any) -> Any:
    """The types in a value."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else type(value).__name__


TERMINATIONS = (signal.SIGTERM,)
