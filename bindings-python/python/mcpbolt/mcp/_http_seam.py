"""Puts the engine behind the HTTP applications of the SDK and FastMCP.

What stands before the session manager stays: uvicorn, routes, middleware of the application, authorization. Handlers
run in the context of the application's request, and see this request itself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import copy_context
from typing import Any

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.requests import Request
from starlette.responses import Response

from .. import _core
from .._asgi import AsgiApp
from .._serve_options import ServeOptions
from . import _gate, _private as private, _said
from ._http_requests import MARK, Requests, Scope

GRACE = 1.0
"""Seconds that calls in flight have when the application ends."""
MANY_SESSIONS, LONG_SECONDS = 1_000_000, 365 * 86_400.0
_SESSION, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_HANDSHAKE = frozenset(name.encode() for name in _core.revisions("handshake"))


class Joined:
    """One session manager whose requests the engine answers."""

    def __init__(self, manager: Any, app: AsgiApp, requests: Requests, how: str) -> None:
        self._guard = TransportSecurityMiddleware(manager.security_settings)
        self._app = app
        self._requests = requests
        # The handshake of a stateless application is answered by every replica of it; the engine has sessions.
        self._takes_handshakes = not manager.stateless
        self._takes_alone = how == _gate.ACCELERATED
        self._owners = Owners(getattr(manager, "max_sessions", None) or MANY_SESSIONS)

    def takes(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the engine answers a request of these headers."""
        version = next((value for name, value in headers if name == _VERSION), None)
        return self._takes_handshakes if version is None or version in _HANDSHAKE else self._takes_alone

    async def answer(self, scope: Scope, receive: Any, send: Any) -> None:
        request = Request(scope)
        refusal: Response | None = await self._guard.validate_request(request, is_post=scope["method"] == "POST")
        if refusal is None and not self._owners.let(scope):
            refusal = Response("Session not found", 404)
        if refusal is not None:
            return await refusal(scope, receive, send)
        mark = self._requests.enter(scope)
        headers = [(name, value) for name, value in scope["headers"] if name != MARK]
        try:
            sent = self._owners.noting(scope, send)
            await self._app.respond({**scope, "headers": [*headers, (MARK, mark)]}, receive, sent)
        finally:
            self._requests.leave(mark)


class Owners:
    """Who opened which session: only the same credential uses it again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._owners: OrderedDict[bytes, Any] = OrderedDict()

    def let(self, scope: Scope) -> bool:
        session = session_of(scope["headers"])
        if session is None:
            return True
        is_own = bool(self._owners.get(session) == requestor(scope))
        if is_own and session in self._owners:
            self._owners.move_to_end(session)
        return is_own

    def noting(self, scope: Scope, send: Any) -> Any:
        """A `send` that notes the session that a request opens or ends."""
        who = requestor(scope)
        if who is None:
            return send

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == 404 or scope["method"] == "DELETE" and status < 300:
                    self._owners.pop(session_of(scope["headers"]) or b"", None)
                elif (opened := session_of(message["headers"])) is not None:
                    self._owners[opened] = who
                    self._owners.move_to_end(opened)
                while len(self._owners) > self._most:
                    self._owners.popitem(last=False)
            await send(message)

        return noted


def session_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for name, value in headers if name == _SESSION), None)


def requestor(scope: Scope) -> Any:
    """The principal of a request that the application has authenticated, as the SDK compares it."""
    from mcp.server.auth.middleware import bearer_auth

    identify = getattr(bearer_auth, "authorization_context", None)
    user = scope.get("user")
    if identify is None or not isinstance(user, bearer_auth.AuthenticatedUser):
        return None
    return identify(user)


def obstacle(manager: Any, how: str) -> str | None:
    """Why the engine answers no request of a manager; `None` if it can."""
    from ._seams import is_asyncio, unfit

    if not is_asyncio():
        return "the event loop is not asyncio's"
    if manager.event_store is not None:
        return "the program stores events for clients that resume"
    if getattr(manager, "retry_interval", None) is not None:
        return "the program closes streams and has clients come back (retry_interval)"
    if manager.json_response:
        return "every answer is JSON without events (json_response)"
    return unfit(manager.app, how)


def options(manager: Any) -> ServeOptions:
    """The limits of a manager. Hosts and origins are checked before the engine; a manager without a limit of sessions, or of
    their time, has practically none here. All clients may come from the address of one proxy."""
    most = getattr(manager, "max_sessions", None) or MANY_SESSIONS
    return ServeOptions(
        hosts=["*"],
        origins=["*"],
        max_message_bytes=getattr(manager, "max_request_body_size", None),
        max_sessions=most,
        max_sessions_per_peer=most,
        session_ttl=getattr(manager, "session_idle_timeout", None) or LONG_SECONDS,
        sse=False,
        websocket=False,
    )


@asynccontextmanager
async def begun(manager: Any, how: str) -> AsyncIterator[Joined]:
    """Has the engine answer for a manager while the block runs; yields what answers."""
    requests = Requests()
    async with AsyncExitStack() as stack:
        if how == _gate.ACCELERATED:
            served = accelerated(manager, requests)
        else:
            served = await stack.enter_async_context(carried(manager, requests))
        app = AsgiApp(served, "*", GRACE, options(manager))
        await stack.enter_async_context(app.lifespan())
        yield Joined(manager, app, requests, how)


def accelerated(manager: Any, requests: Requests) -> Any:
    from ._served import ServedInApplication
    from ._server import Known

    known = Known(private.owner_of(manager.app))
    served = ServedInApplication(known, "streamable-http", is_accelerated=True)
    served.state = private.state_of(manager)
    served.kernel.requests = requests
    _said.served("http", known.server)
    return served


@asynccontextmanager
async def carried(manager: Any, requests: Requests) -> AsyncIterator[Any]:
    """A server whose sessions are the SDK's, one for each of the engine's."""
    from ._carried import Carried, Link

    tasks: set[asyncio.Task[None]] = set()

    async def session(link: Link) -> None:
        try:
            await manager.app.run(link.reading, link.writing, manager.app.create_initialization_options())
        except Exception:
            import logging

            logging.getLogger(__name__).exception("a session has failed")
        finally:
            link.give_up()

    def opened(link: Link, request: _core.KernelRequest) -> None:
        found = requests.of(request)
        context = found[1] if found else copy_context()
        task = context.run(asyncio.get_running_loop().create_task, session(link))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def scope_of(request: _core.KernelRequest) -> Scope | None:
        found = requests.of(request)
        return found[0] if found else None

    _said.carried("http")
    try:
        yield Carried(manager.app.name, opened, scope_of)
    finally:
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)
