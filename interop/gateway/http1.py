"""As much of HTTP/1.1 as the servers and clients here need, on asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

Message = dict[str, Any]
EVENTS = "text/event-stream"


async def head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """The first line and the fields; an empty line where the connection ends."""
    try:
        first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ConnectionError("it ends within a head") from error
        return "", {}
    return first, {name.lower(): value for name, _, value in (field.partition(": ") for field in fields if field)}


async def request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """The method, the fields and the body of the next request."""
    first, fields = await head(reader)
    if not first:
        return None
    return first.split(" ")[0], fields, await reader.readexactly(int(fields.get("content-length", 0)))


def respond(writer: asyncio.StreamWriter, status: int) -> None:
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())


def begin(writer: asyncio.StreamWriter, more: dict[str, str]) -> None:
    """Begins a stream of events."""
    fields = {"Content-Type": EVENTS, "Transfer-Encoding": "chunked", **more}
    writer.write(("HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n").encode())


def event(writer: asyncio.StreamWriter, message: Message) -> None:
    data = f"data: {json.dumps(message)}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def end(writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")


async def chunks(reader: asyncio.StreamReader, fields: dict[str, str]) -> AsyncIterator[bytes]:
    if "content-length" in fields:
        yield await reader.readexactly(int(fields["content-length"]))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)


async def messages(reader: asyncio.StreamReader, fields: dict[str, str]) -> AsyncIterator[Message]:
    """The messages of an answer: of its events, or the only one of its body."""
    if fields.get("content-type", "").startswith(EVENTS):
        rest = b""
        async for chunk in chunks(reader, fields):
            *whole, rest = (rest + chunk).split(b"\n\n")
            for one in whole:
                data = b"".join(line[6:] for line in one.split(b"\n") if line.startswith(b"data: "))
                if data.strip():
                    yield json.loads(data)
        return
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    if body:
        yield json.loads(body)
