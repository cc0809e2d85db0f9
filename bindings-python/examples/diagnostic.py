"""The diagnostic server: `echo`, `resize`, `sleep`, `progress`, `stats`, and `MCP_TOOLS=N` more.

Any load generator can drive it; the tools of every language's diagnostic server are the same.
An address may follow, as `http://127.0.0.1:0/mcp`; where it listens stands on stderr then.

`MCP_TARGETS=1` adds what attacks aim at: the tools `touch` and `job`, templates of resources, subscriptions. With
`MCP_ACTIONS=0` the action dialect is left as it is by default. `MCP_KEYS=alice:key-a,bob:key-b` adds a verifier that
knows these clients by their API keys, `MCP_JWT=SECRET` adds tokens that this secret signs by HS256, `MCP_QUOTA=N`
allows each client N calls a day, `MCP_OPENING=N` gives a connection N seconds to begin to speak,
`MCP_TLS=CERTIFICATE,KEY` names the files of an `https:` address.
"""

import os
import sys
from typing import Annotated

from mcpbolt import Context, Jwt, Policy, ServeOptions, Server

targets = os.environ.get("MCP_TARGETS") == "1"
keys, quota = os.environ.get("MCP_KEYS"), os.environ.get("MCP_QUOTA")
secret = os.environ.get("MCP_JWT")
issuer, audience = "https://issuer.example", "https://server.example/mcp"
policy = Policy(
    keys={key: (client, ()) for client, key in (pair.split(":") for pair in keys.split(","))} if keys else None,
    jwt=Jwt("HS256", secret, issuer=issuer, audience=audience) if secret else None,
    quota=(int(quota), 24 * 60 * 60) if quota else None,
)
server = Server(
    "mcpbolt-python-diagnostic",
    "1.0.0",
    policy=policy if keys or quota else None,
    subscriptions=targets,
    actions=os.environ.get("MCP_ACTIONS") != "0",
)


class Sleeps:
    """Counts `sleep` handlers, so that a leak after cancellation shows."""

    def __init__(self) -> None:
        self.active = self.started = self.finished = self.cancelled = self.touched = 0

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


if targets:

    @server.tool
    def touch() -> str:
        """Counts its calls."""
        sleeps.touched += 1
        # On stdio, this line tells the attacker what ran even if the connection is broken.
        print("touched", file=sys.stderr, flush=True)
        return "touched"

    @server.tool(task="optional")
    async def job(ms: int, context: Context) -> str:
        """A task."""
        import asyncio

        context.begin_task()
        await asyncio.sleep(ms / 1000)
        return "done"

    @server.resource("memo:note")
    def note() -> str:
        """A note."""
        return "a note"

    @server.resource("file:///docs/{name}")
    def docs(name: str) -> str:
        """By name."""
        return f"name={name}"

    @server.resource("notes://{name}/text")
    def notes(name: str) -> str:
        """By name."""
        return f"name={name}"


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
    certificate, _, private = os.environ.get("MCP_TLS", "").partition(",")
    opening = os.environ.get("MCP_OPENING")
    options = ServeOptions(
        tls=(certificate, private) if private else None,
        header_timeout=float(opening) if opening else None,
    )
    server.run(sys.argv[1] if len(sys.argv) > 1 else "stdio:", options=options)
