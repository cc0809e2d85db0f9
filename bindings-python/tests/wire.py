"""HTTP as bytes: what the tests send to our servers without a client of anybody's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

STATELESS = "2026-07-28"
SESSION = "mcp-session-id"


def call(id: object, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Response:
    """The head of an answer, and its body to come."""

    def __init__(self, wire: Wire, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._reader = wire.reader

    async def chunks(self) -> AsyncIterator[bytes]:
        if "content-length" in self.headers:
            yield await self._reader.readexactly(int(self.headers["content-length"]))
        elif self.headers.get("transfer-encoding") == "chunked":
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield await self._reader.readexactly(size)
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)

    async def json(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json", self.headers
        message: dict[str, Any] = json.loads(b"".join([chunk async for chunk in self.chunks()]))
        return message

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The messages of a stream of events; those without data are left out."""
        assert self.headers["content-type"] == "text/event-stream", self.headers
        buffer = b""
        async for chunk in self.chunks():
            buffer += chunk
            *whole, buffer = buffer.split(b"\n\n")
            for event in whole:
                data = [line[6:] for line in event.splitlines() if line.startswith(b"data: ")]
                if any(data):
                    yield json.loads(b"\n".join(data))


class Wire:
    """A connection on which requests are made one after the other."""

    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.url = urlsplit(address)
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, address: str, ssl: SSLContext | None = None) -> Wire:
        url = urlsplit(address)
        return cls(address, *await asyncio.open_connection(url.hostname, url.port, ssl=ssl))

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.writer.close()

    async def send(self, method: str, body: bytes = b"", path: str | None = None, **headers: str) -> Response:
        given = {
            "host": self.url.netloc,
            "accept": "text/event-stream, application/json",
            "content-type": "application/json",
            "content-length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{method} {path or self.url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        pairs = [line.split(": ", 1) for line in head[1:] if line]
        return Response(self, int(head[0].split()[1]), {name.lower(): value for name, value in pairs})

    async def post(self, message: object, **headers: str) -> Response:
        return await self.send("POST", json.dumps(message).encode(), **headers)

    async def stateless(self, message: dict[str, Any], _headers: Mapping[str, str] = {}, **meta: Any) -> Response:
        """A request of 2026-07-28, which stands alone."""
        own = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        meta = {**{f"io.modelcontextprotocol/{name}": value for name, value in own.items()}, **meta}
        params = {**message.get("params", {}), "_meta": meta}
        headers = {"mcp_protocol_version": STATELESS, "mcp_method": message["method"], **_headers}
        if "name" in params:
            headers["mcp_name"] = params["name"]
        return await self.post({**message, "params": params}, **headers)

    async def begin(self, revision: str) -> dict[str, str]:
        """Begins a session; gives the headers of what follows in it."""
        client = {"name": "raw", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        hello = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert (await hello.json())["result"]["protocolVersion"] == revision
        headers = {"mcp_session_id": hello.headers[SESSION]}
        if revision >= "2025-06-18":
            headers["mcp_protocol_version"] = revision
        ready = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        assert ready.status == 202
        return headers
