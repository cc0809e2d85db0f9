"""The diagnostic server: `echo`, `resize`, `sleep`, `progress`, `stats`, and `MCP_TOOLS=N` more.

Any load generator can drive it; the tools of every language's diagnostic server are the same.
"""

import os
import sys
from typing import Annotated

from mcpbolt import Context, Server

server = Server("mcpbolt-python-diagnostic", "1.0.0")


class Sleeps:
    """Counts `sleep` handlers, so that a leak after cancellation shows."""

    def __init__(self) -> None:
        self.active = self.started = self.finished = self.cancelled = 0

    def __enter__(self) -> None:
        self.active += 1
        self.started += 1

    def __exit__(self, kind: object, *_: object) -> None:
        self.active -= 1
        if kind is None:
            self.finished += 1
        else:
            self.cancelled += 1


sleeps = Sleeps()


@server.tool
def echo(text: str) -> str:
    """Returns the text."""
    return text


@server.tool
def resize(text: str, n: int) -> str:
    """Returns n bytes."""
    head = text.encode()[:16].decode(errors="ignore")  # as much as fits
    return head + "x" * (n - len(head.encode()))


@server.tool
async def sleep(ms: int) -> str:
    """Waits."""
    import asyncio

    with sleeps:
        await asyncio.sleep(ms / 1000)
    return "slept"


@server.tool
def progress(n: int, context: Context) -> str:
    """Reports n times."""
    for i in range(1, n + 1):
        context.progress(i, n)
    return "done"


@server.tool
def stats() -> str:
    """Counts sleepers."""
    import json

    return json.dumps(vars(sleeps))


def dummy(
    path: Annotated[str, "Where to look"],
    limit: Annotated[int, "How many at most"] = 10,
    verbose: Annotated[bool, "Say more"] = False,
) -> str:
    return path


for number in range(int(os.environ.get("MCP_TOOLS", "0"))):
    about = f"Dummy tool number {number}, here to make the list long."
    server.tool(name=f"tool_{number:03}", description=about)(dummy)

if __name__ == "__main__":
    server.run(sys.argv[1] if len(sys.argv) > 1 else "stdio:")
