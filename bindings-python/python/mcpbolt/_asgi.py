"""`AsgiApp`: a server as an ASGI application, to run alone or within another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

from . import _core
from ._errors import Misuse
from ._event_loop import asyncio_loop
from ._interpreter import Interpreter
from ._loop import running
from ._serve_options import ServeOptions, serve_options

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


@asynccontextmanager
async def of_server(server: Any, options: str) -> AsyncIterator[_core.Endpoint]:
    """The HTTP endpoint of a server, which runs while the block runs."""
    endpoints: list[_core.Endpoint] = []

    def start(interpreter: Interpreter) -> _core.Serving:
        serving, endpoint = _core.mount(server._catalog(), interpreter, options)
        endpoints.append(endpoint)
        return serving

    async with running(server, start):
        yield endpoints[0]


class AsgiApp:
    """The HTTP endpoint of a server as an ASGI application, for every revision.

    It answers at its path, and exactly at its mount point; any other path is 404. Within another
    application, pass this one's lifespan to it:

        app = Starlette(routes=[Mount("/", mounted)], lifespan=mounted.lifespan)
    """

    def __init__(
        self,
        served: Any,
        path: str,
        grace: float,
        options: ServeOptions | None,
        endpoint: Callable[[Any, str], AbstractAsyncContextManager[_core.Endpoint]] = of_server,
    ) -> None:
        self._served = served
        self._endpoint_of = endpoint
        self._path = path
        self._grace = grace
        self._options = serve_options(options, grace)
        self._endpoint: _core.Endpoint | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: AbstractAsyncContextManager[None] | None = None
        self._under_way: dict[asyncio.Future[None], _core.Exchange] = {}

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Serves while the block runs. The server's own lifespan is entered, too."""
        loop = asyncio_loop("an ASGI application")
        async with self._endpoint_of(self._served, self._options) as endpoint:
            self._endpoint = endpoint
            self._loop = loop
            try:
                yield
            finally:
                self._endpoint = None
                endpoint.stop()
                await self._end()

    async def _end(self) -> None:
        """Waits for requests in flight, for at most the grace period, then closes the rest."""
        for patience in (self._grace, 1):
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=patience)
            for exchange in self._under_way.values():
                exchange.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            await self._respond(scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            raise NotImplementedError(f"ASGI scope {kind!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            try:
                await stack.enter_async_context(self.lifespan())
            except Exception as error:
                await send({"type": "lifespan.startup.failed", "message": repr(error)})
                raise
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _begun(self) -> _core.Endpoint:
        if self._endpoint is None or self._loop is not asyncio_loop("an ASGI application"):
            if self._served._lifespan is not None:
                raise Misuse("the server has a lifespan: give the application this one's, `lifespan=mounted.lifespan`")
            # The application gets no lifespan events here, so the server runs until the process ends.
            self._kept = self.lifespan()
            await self._kept.__aenter__()
        assert self._endpoint is not None
        return self._endpoint

    def _is_here(self, scope: Scope) -> bool:
        path, root = scope["path"], scope.get("root_path", "")
        own = path[len(root) :] if root and path.startswith(root) else path
        return own == self._path or bool(root) and own in ("", "/")

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_here(scope):
            return await _refuse(send, 404)
        await self.respond(scope, receive, send)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request at any path."""
        endpoint = await self._begun()
        request = await receive()
        if request["type"] != "http.request":
            return
        target = scope.get("raw_path") or quote(scope["path"]).encode()
        if query := scope.get("query_string"):
            target += b"?" + query
        more = request.get("more_body", False)
        headers = [(name, value) for name, value in scope["headers"]]
        peer = (scope.get("client") or (None,))[0]
        exchange = endpoint.begin(scope["method"], target, headers, peer, request.get("body", b""), more)
        reading: asyncio.Task[None] | None = None

        def is_gone() -> bool:
            return reading is not None and reading.done()

        async def news() -> bool:
            """Waits for more of the answer. `False` if there is none to come, or the client has disconnected."""
            nonlocal reading
            if reading is None:
                reading = asyncio.ensure_future(_read(receive, exchange, more))
                reading.add_done_callback(lambda _: exchange.close())
            future = asyncio.get_running_loop().create_future()
            if not exchange.wait(future):
                return False
            await future
            return not is_gone()

        over = asyncio.get_running_loop().create_future()
        self._under_way[over] = exchange
        try:
            while (answer := exchange.answer()) is None:
                if not await news():
                    return None if is_gone() else await _refuse(send, 503)
            status, headers = answer
            await send({"type": "http.response.start", "status": status, "headers": headers})
            goes_on = True
            while goes_on:
                piece = exchange.read()
                if piece is not None:
                    body, goes_on = piece
                    await send({"type": "http.response.body", "body": body, "more_body": goes_on})
                elif not await news():
                    if not is_gone():
                        await send({"type": "http.response.body", "body": b""})
                    return
        finally:
            del self._under_way[over]
            over.set_result(None)
            if reading is not None:
                reading.cancel()
            exchange.close()


async def _read(receive: Receive, exchange: _core.Exchange, more: bool) -> None:
    """Reads the rest of the request, then waits until the client disconnects."""
    while (request := await receive())["type"] != "http.disconnect":
        if more:
            more = request.get("more_body", False)
            exchange.feed(request.get("body", b""), more)


async def _refuse(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
