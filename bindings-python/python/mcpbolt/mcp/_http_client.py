"""The Streamable HTTP transport for sessions of the official SDK's client, with the engine's HTTP and codec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from typing import Any

import anyio
import mcp_types as types
from mcp.client import streamable_http as sdk
from mcp.shared.message import ClientMessageMetadata, ResumptionTokenUpdateCallback, SessionMessage

from .. import _core
from .._auth import ApiKey, Basic, Bearer, ConnectOptions, connect_options
from .._event_loop import asyncio_loop
from .._wake import watch
from ._client import Reading, encoded
from ._streams import Closing

# The error codes for requests without an answer, by the kind of failure, as the SDK has them.
_CODES = {
    "session_lost": types.INVALID_REQUEST,
    "refused": types.INTERNAL_ERROR,
    "redirected": types.INVALID_REQUEST,
    "no_answer": types.PARSE_ERROR,
    "timed_out": types.REQUEST_TIMEOUT,
}


class HttpReading(Reading):
    """The stream of the server's messages, in order. The engine calls its `on_…` methods."""

    def __init__(self) -> None:
        super().__init__(None)
        # Requests in flight, by the engine's numbers: their ids, and the callbacks for resumption tokens.
        self.requests: dict[int, tuple[types.RequestId, ResumptionTokenUpdateCallback | None]] = {}
        self._telling: set[asyncio.Task[None]] = set()

    def on_message(self, kind: str, id: Any, method: Any, body: Any, of: int | None = None) -> None:
        if of is not None and kind in ("response", "error") and of in self.requests:
            # A resumed stream answers an earlier request, and a refusal may have no id.
            id = self.requests[of][0]
        super().on_message(kind, id, method, body)

    def on_bad(self, error: Exception, of: int | None = None) -> None:
        if of in self.requests:
            return self._answer(of, types.PARSE_ERROR, str(error))
        super().on_bad(error)

    def on_position(self, of: int | None, position: str) -> None:
        _, told = self.requests.get(of, (None, None)) if of is not None else (None, None)
        if told is not None:
            telling = asyncio.ensure_future(told(position))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def on_done(self, of: int, why: tuple[str, int | None, str] | None) -> None:
        self.room.set()
        if why is not None and of in self.requests:
            fault, status, text = why
            code = _CODES.get(fault, types.CONNECTION_CLOSED)
            if fault == "session_lost":
                text = "Session terminated"
            elif status == 404:
                code = types.METHOD_NOT_FOUND
            elif status is not None and fault == "no_answer":
                code = types.INVALID_REQUEST
            self._answer(of, code, text)
        self.requests.pop(of, None)

    def _answer(self, of: int, code: int, text: str) -> None:
        error = types.ErrorData(code=code, message=text)
        self.put(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=self.requests[of][0], error=error)))


class HttpWriting(Closing):
    """The stream of the client's messages."""

    def __init__(self, relay: _core.Relay, reading: HttpReading) -> None:
        self._relay = relay
        self._reading = reading
        self._is_closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message; a request waits while too much is in flight.

        Raises:
            anyio.ClosedResourceError: The stream was closed on this side.
        """
        if self._is_closed or self._reading.ended.done():
            raise anyio.ClosedResourceError
        message = item.message
        along = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else ClientMessageMetadata()
        is_request = isinstance(message, types.JSONRPCRequest)
        while is_request and self._relay.is_full() and not self._reading.ended.done():
            self._reading.room.clear()
            await self._reading.room.wait()
        of = self._relay.send(encoded(message), list((along.headers or {}).items()), along.resumption_token)
        if isinstance(message, types.JSONRPCRequest):
            self._reading.requests[of] = (message.id, along.on_resumption_token_update)

    def close(self) -> None:
        self._is_closed = True


@asynccontextmanager
async def streamable_http_client(
    url: str,
    *,
    http_client: Any = None,
    terminate_on_close: bool = True,
    max_sse_event_size: int | None = None,
    headers: Mapping[str, str] | None = None,
    auth: Bearer | Basic | ApiKey | None = None,
    connect_timeout: float | None = None,
    root_certificates: str | PathLike[str] | None = None,
    certificate: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
    options: ConnectOptions | None = None,
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Carries the SDK's messages over Streamable HTTP: a replacement for
    `mcp.client.streamable_http.streamable_http_client`.

    The engine handles requests, streams and their resumption, sessions, headers and parsing. A failed request
    fails alone: an unreachable server is an `MCPError` of the call and does not end the block.

    Args:
        url: The server's endpoint.
        http_client: A customized `httpx2.AsyncClient`, for OAuth for example. If given, the SDK's own client is
            used, and the arguments after `max_sse_event_size` have no effect.
        terminate_on_close: Whether the session is ended with the block.
        max_sse_event_size: The longest event of a stream, in bytes; by default the message limit, 128 MiB.
        headers: Further headers of each request. Like credentials, they are not sent to another origin.
        auth: Credentials: `mcpbolt.Bearer`, `Basic` or `ApiKey`.
        connect_timeout: Seconds within which the server must be connected; 30 by default.
        root_certificates: A PEM file of certificates to trust in addition to the system's.
        certificate: The client certificate, for servers that ask for one: the PEM files of the certificate and its key.
        options: Further options of the transport: proxy, timeouts, limits.

    Raises:
        ValueError: The URL or an option is not valid.
        Misuse: No event loop of asyncio is running.
    """
    if http_client is not None:
        # Not every release of the SDK has this parameter.
        more: dict[str, Any] = {} if max_sse_event_size is None else {"max_sse_event_size": max_sse_event_size}
        theirs = sdk.streamable_http_client(
            url, http_client=http_client, terminate_on_close=terminate_on_close, **more
        )
        async with theirs as streams:
            yield streams
        return
    loop = asyncio_loop("mcpbolt.mcp.streamable_http_client")
    reading = HttpReading()
    wire = connect_options(headers or {}, auth, connect_timeout, root_certificates, certificate, options)
    relay = _core.Relay(url, _core.to_json(wire), max_sse_event_size, terminate_on_close, reading)
    forget = watch(loop, relay.wake(), relay.drain)
    try:
        yield reading, HttpWriting(relay, reading)
    finally:
        relay.close()
        with anyio.CancelScope(shield=True):
            await reading.ended
        forget()
