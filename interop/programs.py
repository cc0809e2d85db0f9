"""Sessions of our clients with servers that are finished programs, whose tools we do not choose."""

from __future__ import annotations

from features import TEXTS
from scripts import Step, call, many


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
        ({"do": "ping"}, {}),
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
