"""The official SDK's client over Streamable HTTP: the engine's HTTP and codec under its sessions."""

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
from .._auth import ApiKey, Basic, Bearer, ConnectOptions, Credentials
from .._event_loop import asyncio_loop
from ._client import Closing, Reading, encoded

# What a request is answered with when nothing answers it: by what failed, as the SDK has it.
_CODES = {
    "session_lost": types.INVALID_REQUEST,
    "refused": types.INTERNAL_ERROR,
    "redirected": types.INVALID_REQUEST,
    "no_answer": types.PARSE_ERROR,
    "timed_out": types.REQUEST_TIMEOUT,
}


class HttpReading(Reading):
    """What the server says, in order; also whom the engine tells."""

    def __init__(self) -> None:
        super().__init__(None)
        # The requests under way, by the engine's numbers: their ids, and who wants to know how far their streams are.
        self.requests: dict[int, tuple[types.RequestId, ResumptionTokenUpdateCallback | None]] = {}
        self._telling: set[asyncio.Task[None]] = set()

    def on_message(self, kind: str, id: Any, method: Any, body: Any, of: int | None = None) -> None:
        if of is not None and kind in ("response", "error") and of in self.requests:
            # A stream that was resumed answers an earlier request; a refusal may name none.
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
        self._put(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=self.requests[of][0], error=error)))


class HttpWriting(Closing):
    """What the client says."""

    def __init__(self, relay: _core.Relay, reading: HttpReading) -> None:
        self._relay = relay
        self._reading = reading
        self._is_closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Hands a message over; a request waits while too much is on its way.

        Raises:
            anyio.ClosedResourceError: It was closed on this side.
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
    """Carries the SDK's messages to a server on HTTP and back: in place of
    `mcp.client.streamable_http.streamable_http_client`.

    Requests, streams and their resumption, sessions and headers are the engine's, and so is the parsing. A request
    that fails, fails alone: a server that cannot be reached is an `MCPError` of the call, not the end of the block.

    Args:
        url: The server's endpoint.
        http_client: An `httpx2.AsyncClient` with ways of its own, OAuth for example: given one, all is left to the
            SDK, and what follows below does not apply.
        terminate_on_close: Whether the session is ended with the block.
        max_sse_event_size: The longest event of a stream, in bytes; by default what a message may have, 128 MiB.
        headers: Further headers of each request. Like the credentials they go to no other origin.
        auth: Credentials: `mcpbolt.Bearer`, `Basic` or `ApiKey`.
        connect_timeout: Seconds until there is a connection; 30 by default.
        root_certificates: A file of certificates, in PEM, that are trusted beside those that the system trusts.
        certificate: What is shown to a server that asks for a certificate: its file and that of its key, in PEM.
        options: What else may be said of the carrier: proxy, times, limits.

    Raises:
        ValueError: The URL or an option is not valid.
        Misuse: There is no event loop of asyncio.
    """
    if http_client is not None:
        # Not every release has the limit.
        more: dict[str, Any] = {} if max_sse_event_size is None else {"max_sse_event_size": max_sse_event_size}
        theirs = sdk.streamable_http_client(
            url, http_client=http_client, terminate_on_close=terminate_on_close, **more
        )
        async with theirs as streams:
            yield streams
        return
    loop = asyncio_loop("mcpbolt.mcp.streamable_http_client")
    reading = HttpReading()
    credentials = Credentials(
        headers or {}, auth, connect_timeout, root_certificates, certificate, options
    )
    relay = _core.Relay(url, credentials, max_sse_event_size, terminate_on_close, reading)
    descriptor = relay.fileno()
    loop.add_reader(descriptor, relay.drain)
    try:
        yield reading, HttpWriting(relay, reading)
    finally:
        relay.close()
        with anyio.CancelScope(shield=True):
            await reading.ended
        loop.remove_reader(descriptor)
