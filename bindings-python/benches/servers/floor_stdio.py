"""As little as a server in Python can do on stdio: asyncio and orjson, no checks."""

import asyncio
import os
import sys

import orjson

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "floor", "version": "1"}}


def answered(line: bytes) -> bytes:
    message = orjson.loads(line)
    match message["method"]:
        case "tools/call":
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
        case "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
        case "initialize":
            result = INFO
        case _:
            return b""
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, option=orjson.OPT_APPEND_NEWLINE)


class Floor(asyncio.Protocol):
    def __init__(self) -> None:
        self.rest = b""
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        os.write(1, b"".join(map(answered, lines)))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)


async def main() -> None:
    _, floor = await asyncio.get_running_loop().connect_read_pipe(Floor, sys.stdin)
    await floor.ended


if __name__ == "__main__":
    asyncio.run(main())
