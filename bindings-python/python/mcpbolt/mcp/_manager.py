"""Has the engine answer the requests that an HTTP application hands to a session manager of the SDK.

Only what every program with the SDK needs is here; `_http_seam` is imported when an application runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from . import _said

if TYPE_CHECKING:
    from ._http_requests import Scope
    from ._http_seam import Joined

_joined: WeakKeyDictionary[Any, Joined] = WeakKeyDictionary()


def join(kind: type[Any], how: str) -> None:
    """Has the engine answer the requests of all session managers."""
    begin, run, handle = kind.__init__, kind.run, kind.handle_request

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        begin(self, *args, **named)
        # Some releases have a second way in.
        if (app := getattr(self, "asgi_app", None)) is not None:
            self.asgi_app = through(self, app)

    async def handle_request(self: Any, scope: Scope, receive: Any, send: Any) -> None:
        await through(self, lambda *request: handle(self, *request))(scope, receive, send)

    kind.__init__ = wraps(begin)(__init__)
    kind.handle_request = wraps(handle)(handle_request)
    kind.run = wraps(run)(running(run, how))


def through(manager: Any, own: Callable[..., Any]) -> Callable[..., Any]:
    """The ASGI application that hands to the engine what it takes, and the rest to the manager's own."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        joined = _joined.get(manager)
        takes = joined is not None and scope["type"] == "http" and joined.takes(scope["headers"])
        await (joined.answer if joined and takes else own)(scope, receive, send)

    return app


def running(run: Callable[..., Any], how: str) -> Callable[..., Any]:
    """`run` of a session manager, with the engine within."""

    @asynccontextmanager
    async def joined(self: Any) -> AsyncIterator[None]:
        from ._http_seam import begun, obstacle

        async with run(self), AsyncExitStack() as stack:
            reason = obstacle(self, how)
            if reason is None:
                _joined[self] = await stack.enter_async_context(begun(self, how))
            else:
                _said.kept("http", reason)
            try:
                yield
            finally:
                _joined.pop(self, None)

    return joined
