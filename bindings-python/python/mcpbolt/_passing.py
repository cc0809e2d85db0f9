"""`Middleware` of chains, and `Next`, by which it passes messages on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ._content import Wire

Direction = Literal["to_server", "to_client"]


class Next:
    """Passes a message on: `await next(message)`. A message is passed on once at most.

    Attributes:
        direction: Which way the message goes: "to_server" or "to_client".
        revision: The protocol revision in which the sender of a request speaks, also for its response.
        principal: The verified sender of a request; `None` if nobody verified it.
        request: For a response, the request that it answers, as it was passed on.
    """

    __slots__ = ("direction", "revision", "principal", "request", "_pass")

    def __init__(
        self,
        pass_on: Callable[[Wire], Awaitable[Wire]],
        direction: Direction,
        revision: str | None = None,
        principal: str | None = None,
        request: Wire | None = None,
    ) -> None:
        self._pass = pass_on
        self.direction: Direction = direction
        self.revision = revision
        self.principal = principal
        self.request = request

    def __call__(self, message: Wire) -> Awaitable[Wire]:
        return self._pass(message)


class Middleware:
    """A part of a chain that sees its messages, in both directions: `next.direction` says in which. Each hook that a class
    does not have is skipped, without the interpreter.

    Messages are dicts, as JSON-RPC has them: `jsonrpc`, `id`, `method`, `params`, `result`, `error`. The `id` is the one of
    the sender; requests of several senders may have the same. What is passed on unchanged goes on byte for byte. Requests
    meet the middleware of a front in its order, responses and the server's messages in the reverse order. Reports of progress
    and cancellations are not shown, as each side has its own.

    Hooks are coroutine functions, each call of which is a task of the event loop. A task is cancelled when the sender of
    its request cancels it, and when it takes longer than the `hook_timeout` of the front. An exception in a hook is an error for the sender of the request: a `ProtocolError`, `PeerError`
    or `ToolError` with its text, any other one without, and logged.
    """

    async def request(self, message: Wire, next: Next) -> Wire:
        """Handles a request. Returns the response, which is what `await next(message)` gives, or one of its own.

        `next` gives an error of the other side as a response with `error`, and raises an `McpError` if there is no
        response: the server cannot be reached, or does not answer in time. Left to itself, this exception becomes an
        error that says so.
        """
        return await next(message)

    async def response(self, message: Wire, next: Next) -> object:
        """Handles a response to a request that this middleware passed on, before `request` gets it. What is given to `next`
        is passed on."""
        return await next(message)

    async def notification(self, message: Wire, next: Next) -> object:
        """Handles a notification. One that is not given to `next` is dropped. Messages that come while this waits may
        overtake it."""
        return await next(message)
