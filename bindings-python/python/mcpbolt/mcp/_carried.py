"""Carries the messages of the SDK's own sessions: the engine reads, checks and writes them.

A session reads a stream of messages and writes another one. Here the engine is behind both, instead of the SDK's
transport. Requests stay known by their ids until they are answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio
from mcp import types
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from starlette.requests import Request

from .. import _core
from .._errors import McpError, PeerError
from .._failures import Failures
from .._settings import Settings
from ._streams import Closing, Incoming

Params = dict[str, Any] | None
# Up to 1.x a message is in a model with one member, `root`.
_Whole: Any = types.JSONRPCMessage if isinstance(types.JSONRPCMessage, type) else None
MOST_ASKED = 1000
"""Open questions to the client, in one connection. A session does not tell that it waits no longer; the oldest question is
given up when there are more."""
_CONNECTION_CLOSED = -32000
_INTERNAL = -32603
_log = logging.getLogger(__name__)


class Link:
    """One connection: the streams of its session, and its open requests. The engine calls `request`, `notice` and
    `closed`."""

    def __init__(self, owner: Carried, wire: _core.KernelConnection | None = None) -> None:
        self._owner = owner
        self._has_begun = False
        self._is_over = False
        self.wire = wire
        self.reading: Incoming[SessionMessage] = Incoming()
        self.writing = Writing(self)
        self.open: dict[Any, _core.KernelRequest] = {}
        # The open questions of the session to the client by their ids, oldest first: the engine's number, and the answer.
        self._asked: dict[Any, tuple[int, asyncio.Future[dict[str, Any]]]] = {}

    def request(self, request: _core.KernelRequest) -> Turn:
        id = request.id
        if self._is_over:
            request.refuse(_CONNECTION_CLOSED, "Connection closed")
            return Turn(self, id)
        if id in self.open:
            # Ids are unique within one HTTP request only.
            id = f"{id}/{len(self.open)}"
            while id in self.open:
                id += "'"
        self.wire = self.wire or request.wire
        self.open[id] = request
        if not self._has_begun:
            self._has_begun = True
            self._owner.begin(self, request)
        scope = self._owner.scope_of(request)
        metadata = None if scope is None else ServerMessageMetadata(request_context=Request(scope))
        message = {"jsonrpc": "2.0", "id": id, "method": request.method}
        self.put(types.JSONRPCRequest, with_params(message, request.params()), metadata)
        return Turn(self, id)

    def notice(self, method: str, params: Params) -> None:
        """Passes a notification of the client to the session."""
        self.put(types.JSONRPCNotification, with_params({"jsonrpc": "2.0", "method": method}, params))

    def put(self, kind: Any, members: dict[str, Any], metadata: ServerMessageMetadata | None = None) -> None:
        message = kind.model_construct(**members)
        self.reading.put(SessionMessage(_Whole.model_construct(message) if _Whole else message, metadata))

    def closed(self) -> None:
        """Called when the connection has ended."""
        self.reading.end()

    def give_up(self) -> None:
        """Ends the requests that the session has left open, and those that come after it has ended."""
        self._is_over = True
        # A session that has failed at its beginning has not closed it.
        self.reading.close()
        for request in self.open.values():
            request.refuse(_CONNECTION_CLOSED, "Connection closed")
        self.open.clear()

    def send(self, message: Any, metadata: Any) -> None:
        """Takes a message of the session."""
        message = getattr(message, "root", message)
        related = self._related(getattr(metadata, "related_request_id", None))
        if isinstance(message, types.JSONRPCResponse):
            if (request := self.open.pop(message.id, None)) is not None:
                self._end(request, request.answer, message.result)
        elif isinstance(message, types.JSONRPCError):
            if (request := self.open.pop(message.id, None)) is not None:
                told = message.error
                self._end(request, request.refuse, told.code, told.message, told.data)
        elif isinstance(message, types.JSONRPCRequest):
            self._ask(message, related)
        elif message.method == "notifications/cancelled" and (message.params or {}).get("requestId") in self._asked:
            self._forget((message.params or {})["requestId"])
        elif self.wire is not None:
            (related or self.wire).notify(message.method, message.params)

    def _end(self, request: _core.KernelRequest, end: Callable[..., None], *told: Any) -> None:
        """Ends a request. Anything that JSON cannot represent is this request's error; the session goes on."""
        try:
            end(*told)
        except Exception as error:
            _log.error("the answer to %s cannot be sent as JSON", request.method, exc_info=error)
            request.refuse(_INTERNAL, "the result cannot be sent as JSON")

    def _related(self, id: Any) -> _core.KernelRequest | None:
        """The open request that a message belongs to. Some sessions name it by its id as text."""
        if id is None:
            return None
        found = self.open.get(id)
        return found or next((request for one, request in self.open.items() if str(one) == str(id)), None)

    def _ask(self, message: Any, related: _core.KernelRequest | None) -> None:
        """Sends a request of the session to the client; its answer is a message for the session."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        token = ((message.params or {}).get("_meta") or {}).get("progressToken")

        def progressed(progress: float, total: float | None, text: str | None) -> None:
            known = {"progress": progress, "total": total, "message": text}
            params = {"progressToken": token, **{name: value for name, value in known.items() if value is not None}}
            self.notice("notifications/progress", params)

        def answered(future: asyncio.Future[dict[str, Any]]) -> None:
            self._asked.pop(message.id, None)
            if future.cancelled():
                return
            head: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
            error = future.exception()
            if error is None:
                return self.put(types.JSONRPCResponse, {**head, "result": future.result()})
            code, text, data = _CONNECTION_CLOSED, str(error), None
            if isinstance(error, PeerError):
                code, text, data = error.code or 0, error.message, error.data
            told = types.ErrorData(code=code, message=text, data=data)
            self.put(types.JSONRPCError, {**head, "error": told})

        future.add_done_callback(answered)
        asking = related or self.wire
        try:
            if asking is None:
                raise McpError("the client has not said anything yet")
            number = asking.ask(message.method, message.params, future, None if token is None else progressed)
        except McpError as error:
            return future.set_exception(error)
        self._asked[message.id] = number, future
        if len(self._asked) > MOST_ASKED:
            self._forget(next(iter(self._asked)), f"more than {MOST_ASKED} questions are open: the oldest is given up")

    def _forget(self, id: Any, why: str | None = None) -> None:
        """Gives a question up; the client is told, and the session if it does not know why."""
        number, future = self._asked.pop(id)
        if why is None:
            future.cancel()
        else:
            future.set_exception(McpError(why))
        if self.wire is not None:
            self.wire.forget(number)


def with_params(message: dict[str, Any], params: Params) -> dict[str, Any]:
    return message if params is None else {**message, "params": params}


class Turn:
    """A request that the session answers. The engine calls `cancel` when the client cancels it."""

    __slots__ = ("_link", "_id")

    def __init__(self, link: Link, id: Any) -> None:
        self._link = link
        self._id = id

    def cancel(self) -> None:
        # The session answers even then, and this answer goes nowhere.
        if (request := self._link.open.pop(self._id, None)) is not None:
            request.give_up()
            self._link.notice("notifications/cancelled", {"requestId": self._id})

    def draining(self) -> None:
        """Called when the connection starts to drain; the session answers its requests in the time that is left."""


class Writing(Closing):
    """The stream of the session's messages."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._is_closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message."""
        self.send_nowait(item)

    def send_nowait(self, item: SessionMessage, /) -> None:
        """Sends a message.

        Raises:
            anyio.ClosedResourceError: The stream was closed.
        """
        if self._is_closed:
            raise anyio.ClosedResourceError
        self._link.send(item.message, item.metadata)

    def close(self) -> None:
        self._is_closed = True


class Carried:
    """A server whose sessions are the SDK's, with the interface of `mcpbolt.Server` that `mcpbolt._loop` needs.

    Args:
        opened: Called with the link of each new connection and its first request. Without it there is one connection,
            `self.link`.
        scope_of: The request of an HTTP application that brought a request.
    """

    _lifespan = None
    _mounts = ()
    takes_pings = False

    def __init__(
        self,
        name: str,
        opened: Callable[[Link, _core.KernelRequest], object] | None = None,
        scope_of: Callable[[_core.KernelRequest], Any] | None = None,
    ) -> None:
        self.name = name
        self.link = Link(self)
        self._opened = opened
        self.scope_of = scope_of or (lambda request: None)
        self._settings = Settings(name=name, version="0", kernel=self, failed=Failures(name))
        self._made = _core.Catalog(self._settings, [])

    def _catalog(self) -> _core.Catalog:
        return self._made

    def begin(self, link: Link, request: _core.KernelRequest) -> None:
        """Called with the first request of a connection."""
        if self._opened is not None:
            self._opened(link, request)

    def open(self, wire: _core.KernelConnection) -> Link:
        """Starts a connection of the handshake era."""
        if self._opened is not None:
            return Link(self, wire)
        self.link.wire = wire
        return self.link

    def request(self, request: _core.KernelRequest) -> Turn:
        """Takes an independent request of 2026-07-28, which a session answers as it does any other."""
        link = self.link if self._opened is None else Link(self, request.wire)
        return link.request(request)
