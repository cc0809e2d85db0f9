"""A server of the action dialect, which is a server of MCP as it stands, and a client of such servers.

python actions.py                                       serves on stdin and stdout
python actions.py http://127.0.0.1:8000/mcp             serves there
python actions.py call http://127.0.0.1:8000/mcp        calls each action there, and prints what comes, a line each
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TypedDict

from mcpbolt import ActionError, Client, Context, Server

server = Server("actions", "1.0.0", actions=True)


class Sum(TypedDict):
    result: float


class Entry(TypedDict):
    name: str
    type: str
    size: int | None


class Listing(TypedDict):
    files: list[Entry]
    path: str


FOLDERS: dict[str, list[Entry]] = {
    "/usr/data": [
        {"name": "file1.txt", "type": "file", "size": 1024},
        {"name": "subdir", "type": "directory", "size": None},
    ]
}
FILES = {"/data/file1.txt": "File 1 content"}
EXAMPLE = {"request": {"params": {"a": 5, "b": 3}}, "response": {"data": {"result": 8}}}


@server.tool(name="calculator.add", action={"examples": [EXAMPLE], "errors": ["VALIDATION_ERROR"]})
def add(a: float, b: float) -> Sum:
    """Adds two numbers."""
    return {"result": a + b}


@server.tool(name="file_system.list_directory", action={"errors": ["RESOURCE_NOT_FOUND"]})
def list_directory(path: str, recursive: bool = False) -> Listing:
    """Lists what is in a directory."""
    if path not in FOLDERS:
        raise ActionError("RESOURCE_NOT_FOUND", f"Directory '{path}' not found.", {"path": path})
    return {"files": FOLDERS[path], "path": path}


@server.tool(name="file_system.read")
def read(path: str) -> dict[str, str]:
    """Reads a file."""
    if path not in FILES:
        raise ActionError("RESOURCE_NOT_FOUND", f"File '{path}' not found.", {"path": path})
    return {"content": FILES[path]}


@server.tool(name="file_system.write", action={"errors": ["PERMISSION_DENIED"]})
def write(path: str, content: str) -> dict[str, str]:
    """Writes a file."""
    raise ActionError("PERMISSION_DENIED", f"Write access denied to {path}", help_url="https://example.com/access")


@server.tool(name="llm.generate")
def generate(prompt: str, context: Context) -> dict[str, str]:
    """Generates text, token by token."""
    tokens = ["Once", " upon", " a", " time"]
    for token in tokens:
        context.partial({"token": token})
    return {"full_text": "".join(tokens)}


async def call(address: str) -> None:
    def show(what: object) -> None:
        if isinstance(what, ActionError):
            what = {"type": what.type, "message": what.message, "code": what.code}
        print(json.dumps(what))

    async with Client(address, opening="actions") as client:
        show((await client.action("calculator.add", {"a": 5, "b": 3})).data)
        try:
            await client.action("calculator.add", {"a": 5, "b": "three"})
        except ActionError as error:
            show(error)
        where = {"path": "/usr/data", "recursive": False}
        show((await client.action("file_system.list_directory", where, context="conversation-123")).data)
        show((await client.action("llm.generate", {"prompt": "Write a story"}, on_partial=show)).data)
        reading = ("file_system.read", {"path": "/data/file1.txt"})
        writing = ("file_system.write", {"path": "/data/file2.txt", "content": "New content"})
        for result in (await client.action_batch([reading, writing], continue_on_error=True)).results():
            show(result)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["call", address]:
            asyncio.run(call(address))
        case [address]:
            server.run(address)
        case _:
            server.run()
