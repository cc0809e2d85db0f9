"""The stdio transport for sessions of the official SDK's client, with the engine's process handling and codec."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from os import fspath
from typing import Any, TextIO

import anyio
import mcp_types as types
from mcp.client import stdio as sdk
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.shared.message import SessionMessage

from .. import _core
from .._event_loop import asyncio_loop
from .._wake import watch
from ._streams import Closing, Incoming

Item = SessionMessage | Exception


class Reading(Incoming[Item]):
    """The stream of the server's messages, in order. The engine calls its `on_…` methods."""

    def __init__(self, errlog: TextIO | None) -> None:
        super().__init__()
        self._errlog = errlog
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.on_stderr = None if errlog is None else self._show

    def on_message(self, kind: str, id: Any, method: Any, body: Any) -> None:
        if kind == "batch":
            for message in body:
                try:
                    self.on_message(*_core.unpack(message.raw))
                except ValueError as error:
                    self.put(error)
            return
        self.put(SessionMessage(_message(kind, id, method, body)))

    def on_bad(self, error: Exception) -> None:
        self.put(error)

    def _show(self, line: str) -> None:
        print(line, file=self._errlog, flush=True)

    def on_room(self) -> None:
        self.room.set()

    def on_ended(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_result(why)
        self.room.set()
        self.end()


class Writing(Closing):
    """The stream of the client's messages."""

    def __init__(self, wire: _core.Wire, reading: Reading) -> None:
        self._wire = wire
        self._reading = reading
        self._is_closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message; waits only while too much is queued.

        Raises:
            anyio.ClosedResourceError: The stream was closed on this side.
            anyio.BrokenResourceError: The server has ended.
        """
        if self._is_closed:
            raise anyio.ClosedResourceError
        if self._reading.ended.done():
            raise anyio.BrokenResourceError
        self._reading.room.clear()
        if not self._wire.send(encoded(item.message)):
            await self._reading.room.wait()

    def close(self) -> None:
        self._is_closed = True


def _message(kind: str, id: Any, method: Any, body: Any) -> types.JSONRPCMessage:
    """Makes the SDK's object of a message that the engine has validated; only an error is validated again."""
    if kind == "request":
        if body is None:
            return types.JSONRPCRequest.model_construct(jsonrpc="2.0", id=id, method=method)
        return types.JSONRPCRequest.model_construct(jsonrpc="2.0", id=id, method=method, params=body)
    if kind == "notification":
        if body is None:
            return types.JSONRPCNotification.model_construct(jsonrpc="2.0", method=method)
        return types.JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, params=body)
    if kind == "response":
        return types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=id, result=body)
    error = types.ErrorData.model_validate(body)
    return types.JSONRPCError.model_construct(jsonrpc="2.0", id=id, error=error)


def encoded(message: types.JSONRPCMessage) -> bytes:
    """Encodes a message for the wire."""
    if isinstance(message, types.JSONRPCRequest):
        return _core.encode_request(message.id, message.method, message.params)
    if isinstance(message, types.JSONRPCNotification):
        return _core.encode_notification(message.method, message.params)
    if isinstance(message, types.JSONRPCResponse):
        return _core.encode_response(message.id, message.result)
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


@asynccontextmanager
async def stdio_client(
    server: StdioServerParameters, errlog: TextIO = sys.stderr
) -> AsyncGenerator[tuple[Reading, Writing], None]:
    """Starts a server process and carries the SDK's messages: a replacement for `mcp.client.stdio.stdio_client`.

    The engine reads, parses and writes; lines that are not messages are received as exceptions, as with the SDK. The
    child runs in its own process group. At the end of the block its stdin is closed, then the group gets SIGTERM, then
    SIGKILL. For an encoding other than UTF-8 the SDK's own client is used.

    Raises:
        OSError: The server cannot be started.
        Misuse: No event loop of asyncio is running.
    """
    if server.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        async with sdk.stdio_client(server, errlog) as streams:
            yield streams  # type: ignore[misc]
        return
    loop = asyncio_loop("mcpbolt.mcp.stdio_client")
    reading = Reading(None if errlog is sys.__stderr__ else errlog)
    command = [server.command, *server.args]
    env = {**get_default_environment(), **(server.env or {})}
    wire = _core.Wire(command, None if server.cwd is None else fspath(server.cwd), list(env.items()), reading)
    forget = watch(loop, wire.wake(), wire.drain)
    try:
        yield reading, Writing(wire, reading)
    finally:
        wire.close()
        with anyio.CancelScope(shield=True):
            await reading.ended
        forget()
