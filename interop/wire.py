"""Checks what one side sent against the shapes of the protocol and the rules of correlation.

    python3 wire.py RECORD client|server      prints what is wrong with that side's messages
    python3 wire.py --traces FOLDER           checks what the tests of a package made it send

Of a test that breaks the rules on purpose only the messages of our side are checked, each by
itself, and not what its peer refused; in a recording of a real session also how they belong
together.

Every message is validated as the definition of its method in the revision it was spoken in: a
request with a modern `_meta` is of the revision named there, every other message is of the
handshake's, except that what a subscription brings is modern in the trace of an endpoint that
has clients of both eras. A result is of the type its request's method has. One exemption: an
error with `id: null` before the handshake and up to 2025-06-18, whose schemas ask for an id that
cannot be known (later revisions leave it out); where a trace has several sessions, nobody can tell
whose it is.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import record

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ID_MAY_BE_NULL = {"2024-11-05", "2025-03-26", "2025-06-18"}
REFUSED = {-32600, -32601, -32602}  # the request, its method or its parameters
LONG = 10_000  # characters; what is longer is rare, and slow to search
CANCELLED = -32800
CROSSING_NS = 50_000_000
EXTENSIONS = ("tasks/", "notifications/tasks", "skills/", "resources/directory/")  # not in the schema
MADE_UP = "com.example/"  # what tests make up begins so
ACTION = {"action", "status", "type"}  # messages of the action dialect have one of these, and no schema here
OF_PROFILES = {"batch/execute", "notifications/_experimental/stream"}  # methods that only profiles of the protocol have
OF_FASTMCP = "notifications/tool/streamContent"  # what npm's fastmcp sends of its own, through our transport
ON_PURPOSE = "no/such_method"  # what a step asks for
HANDSHAKE_DEFAULT = "2025-11-25"  # for what is sent before any handshake


@functools.cache
def schemas() -> Path:
    """The folder of the shapes of all messages, as JSON Schema."""
    command = [os.environ.get("CARGO", "cargo"), "xtask", "schemas"]
    done = subprocess.run(command, cwd=Path(__file__).resolve().parent, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


def told(problems: list[str], line: record.Line) -> list[str]:
    """The problems with the message they are of."""
    return [f"{problem} in {line.raw[:300].decode(errors='replace')}" for problem in problems]


def members(value: object) -> dict:
    """The value's members, of which anything but an object has none."""
    return value if isinstance(value, dict) else {}


def of_extension(method: object, revision: str) -> bool:
    """Whether the method is of an official extension or of a program's own, which no schema describes."""
    if not isinstance(method, str):
        return False
    return method in OF_PROFILES or method.startswith(MADE_UP) or (revision >= "2026-07-28" and method.startswith(EXTENSIONS))


class Schema:
    """The definitions of one revision, by method."""

    def __init__(self, path: Path) -> None:
        import jsonschema_rs

        self.document = json.loads(path.read_text())
        self.definitions = self.document["$defs"]
        self.make = functools.partial(jsonschema_rs.validator_for, validate_formats=False)
        self.validators: dict[str, object] = {}
        self.known: dict[tuple[str, str], list[str]] = {}

    def errors(self, name: str, value: object) -> list[str]:
        """Returns the faults of the value; values that differ only in their integers are checked once."""
        text = json.dumps(value)
        key = (name, re.sub("(?<=[:,] )[0-9]+", "0", text) if len(text) < LONG else text)
        if key not in self.known:
            if name not in self.validators:
                self.validators[name] = self.make({**self.document, "$ref": f"#/$defs/{name}"})
            found = list(self.validators[name].iter_errors(value))[:3]
            self.known[key] = [f"{name}: {'/'.join(map(str, e.instance_path))}: {e.message[:200]}" for e in found]
        return self.known[key]

    @functools.cache
    def of_method(self, union: str, method: object) -> str | None:
        """The member of `union` (say `ServerRequest`) that has this method."""
        # A union of one may be a reference, or the definition itself.
        union_schema = self.definitions.get(union, {})
        for member in union_schema.get("anyOf", [union_schema]):
            name = member.get("$ref", union).rpartition("/")[2]
            if self.definitions.get(name, {}).get("properties", {}).get("method", {}).get("const") == method:
                return name
        return None

    def first(self, *names: str) -> str:
        return next(name for name in names if name in self.definitions)

    def response(self, request: str) -> tuple[str, bool]:
        """The definition that answers `request`, and whether it is of the whole message."""
        stem = request.removesuffix("Request")
        for name, whole in ((f"{stem}ResultResponse", True), (f"{stem}Result", False)):
            if name in self.definitions:
                return name, whole
        return "EmptyResult", False


@functools.cache
def schema_of(revision: str) -> Schema | None:
    """The schema of that revision, if there is such a revision."""
    path = schemas() / f"{revision}.json"
    return Schema(path) if path.exists() else None


class Wire:
    """Follows one recording, and collects what `side` did wrong."""

    def __init__(self, side: str, together: bool = True, http: bool = False) -> None:
        self.side, self.together, self.http = side, together, http
        self.handshake: str | None = None
        self.handshakes: set[str] = set()  # all there were: an endpoint has many sessions
        self.modern_seen = False
        # (who asked, id with its type) -> (method, revision, progress token)
        self.asked: dict[tuple[str, str], tuple[str, str, str]] = {}
        self.doubtful: dict[tuple[str, str], list[str]] = {}  # what is wrong with what was asked
        self.tokens: dict[str, str] = {}  # of requests not yet answered, with their revision
        self.progress: dict[str, float] = {}
        self.cancelled: dict[tuple[str, str], int] = {}
        self.messages = 0
        self.problems: list[str] = []

    def follow(self, recording: record.Recording) -> None:
        for line in recording.lines:
            ours = line.sender == self.side
            self.messages += ours
            if line.fault:
                if ours:
                    self.problems.append(f"{line.fault}: {line.raw[:120]!r}")
                continue
            problems = self.frame(line)
            if ours:
                self.problems += told(problems, line)
        self.problems += [problem for problems in self.doubtful.values() for problem in problems]
        if self.side == record.SERVER and self.together:
            for key, (method, *_) in self.asked.items():
                if key[0] == record.CLIENT and key not in self.cancelled:
                    self.problems.append(f"{method} with id {key[1]} was never answered")

    def frame(self, line: record.Line) -> list[str]:
        if isinstance(line.value, list):
            if self.handshake != "2025-03-26":
                return ["an array in a revision without batches"]
            return [p for value in line.value for p in self.message(line, value)]
        return self.message(line, line.value)

    def message(self, line: record.Line, value: object) -> list[str]:
        if not isinstance(value, dict):
            return ["not an object"]
        if "jsonrpc" not in value and ACTION & value.keys() and "method" not in value:
            self.messages -= line.sender == self.side
            return []
        if "method" in value:
            return self.request(line, value) if "id" in value else self.notification(line, value)
        return self.answer(line, value)

    def broken(self, rule: str) -> list[str]:
        """A rule between messages that was broken."""
        return [rule] if self.together else []

    def revision_of(self, value: dict) -> str:
        params = members(value.get("params"))
        meta = members(params.get("_meta"))
        if META_VERSION in meta:
            self.modern_seen = True
            return str(meta[META_VERSION])
        if value["method"] == "initialize":
            return str(params.get("protocolVersion"))
        return self.handshake or HANDSHAKE_DEFAULT

    def request(self, line: record.Line, value: dict) -> list[str]:
        revision = self.revision_of(value)
        method = str(value["method"])
        key = (line.sender, json.dumps(value["id"]))
        again = self.broken(f"id {key[1]} is still in flight") if key in self.asked else []
        meta = members(value.get("params")).get("_meta")
        token = json.dumps(members(meta).get("progressToken"))
        self.asked[key] = (method, revision, token)
        self.tokens[token] = revision
        self.cancelled.pop(key, None)
        problems = self.validate(line.sender, "Request", revision, value)
        if problems and line.sender == self.side and not self.together:
            # A test may ask wrongly, to see it refused.
            self.doubtful[key] = told(problems, line)
            return again
        return again + problems

    def notification(self, line: record.Line, value: dict) -> list[str]:
        revision = self.revision_of(value)
        if self.handshake is None and self.modern_seen:
            revision = "2026-07-28"
        params = members(value.get("params"))
        if not self.together and META_SUBSCRIPTION in members(params.get("_meta")):
            # The trace of one endpoint has clients of both eras; subscriptions are of the modern one.
            revision = "2026-07-28"
        problems = []
        if value["method"] == "notifications/progress":
            token = json.dumps(params.get("progressToken"))
            if token not in self.tokens:
                problems = self.broken(f"progress for {token}, which nobody waits for")
            revision = self.tokens.get(token, revision)
            if (now := params.get("progress", 0)) <= self.progress.get(token, float("-inf")):
                problems = self.broken(f"progress {now} for {token} does not increase")
            self.progress[token] = now
        elif value["method"] == "notifications/cancelled":
            key = (line.sender, json.dumps(params.get("requestId")))
            if key in self.asked:
                revision = self.asked[key][1]
                self.cancelled[key] = line.at_ns
        return problems + self.validate(line.sender, "Notification", revision, value)

    def answer(self, line: record.Line, value: dict) -> list[str]:
        asker = record.CLIENT if line.sender == record.SERVER else record.SERVER
        key = (asker, json.dumps(value.get("id")))
        known = value.get("id") is not None
        method, revision, token = self.asked.pop(key, (None, self.handshake or HANDSHAKE_DEFAULT, ""))
        self.tokens.pop(token, None)
        self.progress.pop(token, None)
        problems = []
        doubtful = self.doubtful.pop(key, [])
        if members(value.get("error")).get("code") not in REFUSED:
            self.problems += doubtful
        if known and method is None:
            problems += self.broken("an answer to nothing")
        late_ns = line.at_ns - self.cancelled.pop(key, line.at_ns)
        # A result may cross the cancellation on its way; an error says that it was read.
        # Over HTTP each request has a response of its own, which says that it was cancelled.
        is_told = self.http and members(value.get("error")).get("code") == CANCELLED
        if late_ns > (CROSSING_NS if "result" in value else 0) and not is_told:
            problems += self.broken(f"an answer {late_ns / 1e6:.1f} ms after its cancellation")
        if "result" in value:
            if method == "initialize" and isinstance(value["result"], dict):
                revision = self.handshake = str(value["result"].get("protocolVersion"))
                self.handshakes.add(revision)
            return problems + self.validate_result(method, revision, value, asker)
        schema = schema_of(revision)
        if schema is None:
            return problems
        spoken = {revision} if self.together else self.handshakes
        if "id" in value and value["id"] is None and (self.handshake is None or spoken & ID_MAY_BE_NULL):
            value = {**value, "id": 0}
        return problems + schema.errors(schema.first("JSONRPCErrorResponse", "JSONRPCError"), value)

    def validate(self, sender: str, kind: str, revision: str, value: dict) -> list[str]:
        schema = schema_of(revision)
        if schema is None:
            return []
        problems = schema.errors(f"JSONRPC{kind}", value)
        name = schema.of_method(f"{sender.capitalize()}{kind}", value["method"])
        if name is None and (value["method"] in (ON_PURPOSE, OF_FASTMCP) or of_extension(value["method"], revision)):
            return problems
        if name is None:
            return [*problems, f"a {sender} may not send {value['method']}"]
        return problems + schema.errors(name, value)

    def validate_result(self, method: str | None, revision: str, value: dict, asker: str) -> list[str]:
        schema = schema_of(revision)
        if schema is None:
            return []
        problems = schema.errors(schema.first("JSONRPCResultResponse", "JSONRPCResponse"), value)
        request = method and schema.of_method(f"{asker.capitalize()}Request", method)
        result = members(value["result"])
        if of_extension(method, revision) or result.get("resultType") == "task":
            return problems
        if method == "tools/call" and "task" in result and "CreateTaskResult" in schema.definitions:
            return problems + schema.errors("CreateTaskResult", result)
        if not request:
            return problems + ([f"a result for {method}, which {revision} does not have"] if method else [])
        name, whole = schema.response(request)
        return problems + schema.errors(name, value if whole else value["result"])


def check(
    recording: record.Recording, side: str, together: bool = True, http: bool = False
) -> tuple[int, list[str]]:
    """How many messages `side` sent in the recording, and what is wrong with them."""
    wire = Wire(side, together, http)
    wire.follow(recording)
    return wire.messages, wire.problems


def check_traces(folder: Path) -> tuple[int, list[str]]:
    """How many messages our side sent in all traces of the folder, and what is wrong with them."""
    count, problems = 0, []
    for path in sorted(folder.iterdir()):
        side, trace = record.read_trace(path)
        wire = Wire(side, together=False, http=True)
        wire.follow(trace)
        count += wire.messages
        problems += [f"{path.name}: {problem}" for problem in wire.problems]
    return count, problems


if __name__ == "__main__":
    if sys.argv[1] == "--traces":
        count, found = check_traces(Path(sys.argv[2]))
    else:
        count, found = check(record.read(Path(sys.argv[1])), sys.argv[2])
    print(*found, f"{count} messages, {len(found)} problems", sep="\n")
    sys.exit(bool(found))
