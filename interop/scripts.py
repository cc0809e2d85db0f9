"""What our own clients are told to do with servers not written here, and what they must report.

A driver (one in each language) reads the steps as JSON from its standard input and prints one
outcome a line, a JSON object. A step names what to `do`:

    info                                {revision, name}
    tools | resources | prompts         {names}: of the whole list; of resources the URIs
    call {tool, arguments}              {text, is_error}, or {code} of an error
         progress: true                 adds {seen}: [[progress, total], …] until the answer
         cancel_ms | timeout_ms         {ended: "cancelled" | "timed out"}
    many {tool, argument, count}        {answers}: `count` calls at once, each with the text "call I"
    read {uri}                          {text}, or {code}
    prompt {name, arguments}            {text} of its first message, or {code}
    ping                                {}
    close                               {strays}: the server has ended; how many frames concerned nobody
"""

from __future__ import annotations

import json
from collections.abc import Callable

from verdict import TEXTS

Step = tuple[dict, dict]  # what to do, and what the outcome must hold
Script = Callable[[str], list[Step]]  # for a revision
INVALID_PARAMS, RESOURCE_NOT_FOUND = -32602, -32002


def call(tool: str, **arguments) -> dict:
    return {"do": "call", "tool": tool, "arguments": arguments}


def many(tool: str, argument: str, prefix: str = "", count: int = 300) -> Step:
    answers = [f"{prefix}call {i}" for i in range(count)]
    return {"do": "many", "tool": tool, "argument": argument, "count": count}, {"answers": answers}


def ping(revision: str) -> list[Step]:
    return [({"do": "ping"}, {})] if revision < "2026" else []


def diagnostic(name: str) -> Script:
    """For the reference servers, which have the diagnostic tools, one resource and one prompt."""

    def script(revision: str) -> list[Step]:
        bad = {"code": INVALID_PARAMS} if revision < "2025-11-25" else {"is_error": True}
        return [
            ({"do": "info"}, {"revision": revision, "name": name}),
            ({"do": "tools"}, {"names": ["echo", "resize", "sleep", "progress", "stats"]}),
            *((call("echo", text=text), {"text": text, "is_error": False}) for text in TEXTS.values()),
            (call("no_such_tool"), {"code": INVALID_PARAMS}),
            (call("echo", text=7), bad),
            *ping(revision),
            (call("progress", n=20) | {"progress": True}, {"text": "done", "seen": [[i, 20] for i in range(1, 21)]}),
            (call("sleep", ms=60_000) | {"cancel_ms": 200}, {"ended": "cancelled"}),
            (call("sleep", ms=60_000) | {"timeout_ms": 200}, {"ended": "timed out"}),
            (call("sleep", ms=300), {"text": "slept"}),
            (call("stats"), {"text": {"active": 0, "started": 3, "finished": 1, "cancelled": 2}}),
            many("echo", "text"),
            ({"do": "resources"}, {"names": ["test://greeting"]}),
            ({"do": "read", "uri": "test://greeting"}, {"text": "hello"}),
            ({"do": "read", "uri": "test://missing"}, {"code": {INVALID_PARAMS, RESOURCE_NOT_FOUND}}),
            ({"do": "prompts"}, {"names": ["greet"]}),
            ({"do": "prompt", "name": "greet", "arguments": {"who": "Ada"}}, {"text": "Greet Ada."}),
            ({"do": "prompt", "name": "greet", "arguments": {}}, {"code": INVALID_PARAMS}),
            ({"do": "close"}, {}),
        ]

    return script


def everything(revision: str) -> list[Step]:
    """For `@modelcontextprotocol/server-everything`."""
    slow = call("trigger-long-running-operation", duration=1, steps=4) | {"progress": True}
    sleepy = call("trigger-long-running-operation", duration=60, steps=1) | {"cancel_ms": 200}
    done = "Long running operation completed. Duration: 1 seconds, Steps: 4."
    document = "demo://resource/static/document/features.md"
    return [
        ({"do": "info"}, {"revision": revision, "name": "mcp-servers/everything"}),
        ({"do": "tools"}, {"names": {"echo", "get-sum", "trigger-long-running-operation"}}),
        *((call("echo", message=text), {"text": f"Echo: {text}"}) for text in TEXTS.values()),
        (call("get-sum", a=2, b=40), {"text": "The sum of 2 and 40 is 42."}),
        (call("no-such-tool"), {"is_error": True}),
        *ping(revision),
        (slow, {"text": done, "seen": [[1, 4], [2, 4], [3, 4], [4, 4]]}),
        (sleepy, {"ended": "cancelled"}),
        many("echo", "message", "Echo: "),
        ({"do": "resources"}, {"names": {document}}),
        ({"do": "prompts"}, {"names": {"simple-prompt", "args-prompt"}}),
        ({"do": "prompt", "name": "simple-prompt", "arguments": {}}, {"text": "This is a simple prompt without arguments."}),
        ({"do": "close"}, {}),
    ]


def garbage(revision: str) -> list[Step]:
    """For servers/garbage_server.py: the answers come, and nothing was said about the noise."""
    return [
        ({"do": "info"}, {"revision": revision, "name": "garbage"}),
        (call("noise"), {"is_error": False}),
        (call("received"), {"text": []}),
        ({"do": "close"}, {"strays": lambda count: count > 90}),
    ]


def holds(expected: object, found: object) -> bool:
    """A dict asks for its members; a set for some of a list, or for one of its own; a function for
    its consent; else equality. A text is compared as JSON where something else than text is expected.
    """
    if callable(expected):
        return expected(found)
    if isinstance(expected, str) or not isinstance(found, str):
        if isinstance(expected, dict) and isinstance(found, dict):
            return all(key in found and holds(value, found[key]) for key, value in expected.items())
        if isinstance(expected, set):
            return expected <= set(found) if isinstance(found, list) else found in expected
        return expected == found
    return holds(expected, json.loads(found))


def judge(script: list[Step], outcomes: list[dict]) -> list[str]:
    """What is wrong with, or missing from, the outcomes a driver printed."""
    told = [json.dumps(step)[:100] for step, _ in script]
    problems = [f"{step}: not reached" for step in told[len(outcomes) :]]
    for step, (_, expected), found in zip(told, script, outcomes):
        if not holds(expected, found):
            problems.append(f"{step}: {json.dumps(found)[:300]}, not {str(expected)[:200]}")
    return problems
