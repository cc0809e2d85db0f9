"""A resource server of OAuth: notes, which some clients may read and fewer may write.

`MCP_POLICY` in the environment takes the place of the policy below: a JSON object whose members are those of `Policy`, with
times in milliseconds.
"""

import json
import os
import re
import sys
from typing import Any

from mcpbolt import Context, Issuer, Policy, ResourceServer, Server

policy = Policy(
    resource=ResourceServer("http://127.0.0.1:8000/mcp", issuers=["https://login.example"], scopes=["notes"]),
    scopes={"note.write": ["notes:write"]},
)


def snake(members: dict[str, Any], *times: str) -> dict[str, Any]:
    """The keyword arguments for members of a JSON object; times become seconds."""
    return {
        re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name): value / 1000 if name in times else value
        for name, value in members.items()
    }


def issuer(said: Any) -> Any:
    if isinstance(said, str):
        return said
    asked = said.get("introspection")
    place = asked and (asked["url"], asked["clientId"], asked["clientSecret"])
    return Issuer(said["issuer"], jwks=said.get("jwks"), introspection=place)


if "MCP_POLICY" in os.environ:
    said = snake(json.loads(os.environ["MCP_POLICY"]))
    members = snake(said.pop("resource"), "leeway", "cachedFor", "keyRefresh", "keyCooldown", "proofAge")
    if nonces := members.pop("proof_nonces", None):
        members["proof_nonces"] = (nonces["secret"], nonces["period"] / 1000)
    members["issuers"] = [issuer(one) for one in members["issuers"]]
    policy = Policy(resource=ResourceServer(members.pop("url"), **members), **said)

server = Server("notes", "1.0.0", policy=policy)


@server.tool(name="note.read")
def read(context: Context) -> str:
    """Reads the note."""
    return f"read by {context.principal}"


@server.tool(name="note.write")
def write() -> str:
    """Writes the note."""
    return "written"


@server.tool(name="note.erase")
def erase() -> str:
    """Erases the note."""
    return "erased"


@server.resource("note:///public/a")
def public() -> str:
    """A note."""
    return "a note"


@server.resource("note:///secret/b")
def secret() -> str:
    """A secret."""
    return "a secret"


@server.prompt
def summary() -> str:
    """Asks for a summary."""
    return "Summarize the notes."


if __name__ == "__main__":
    server.run(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/mcp")
