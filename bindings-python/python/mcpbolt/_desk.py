"""Runs the middleware of chains on an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._errors import Misuse, PeerError, ProtocolError, ToolError
from ._wake import watch
from ._watched import waiting

if TYPE_CHECKING:
    from ._content import Wire
    from ._event_loop import Cancellable, Future, Loop
    from ._failures import Failures
    from .chain import Middleware

Direction = Literal["to_server", "to_client"]
_OTHER: dict[Direction, Direction] = {"to_server": "to_client", "to_client": "to_server"}


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


class _Seat:
    """Middleware in its place, and where its failures are reported."""

    def __init__(self, middleware: Middleware, failed: Failures) -> None:
        self.middleware = middleware
        self.sees_responses = _sees(middleware, "response")
        self._failed = failed

    def failed(self, hook: str, error: BaseException) -> str | None:
        """Reports an unexpected exception; returns the text for the sender, if it may be told one."""
        if isinstance(error, (ProtocolError, PeerError, ToolError)):
            return None
        return self._failed(error, f"`{hook}` of {type(self.middleware).__name__} failed", None)


class _Call:
    """A request that middleware handles."""

    def __init__(self, desk: Desk, key: tuple[int, int], message: Wire, about: tuple[Direction, str, str | None]) -> None:
        self._desk = desk
        self._key = key
        self._message = message
        self._about = about
        self._seat = desk.seats[key[0]]
        self._answer: Future[Wire] | None = None
        self._failure: BaseException | None = None
        self.task: Cancellable | None = None
        self.has_begun = False

    async def run(self) -> None:
        self.has_begun = True
        native, key, seat = self._desk.native, self._key, self._seat
        try:
            response = await seat.middleware.request(self._message, Next(self._pass, *self._about))
            native.settle(*key, response)
        except Exception as error:
            native.fail(*key, error, None if error is self._failure else seat.failed("request", error))
        except BaseException as error:  # as of a cancelled task
            native.fail(*key, error, "the middleware was cancelled")
            raise
        finally:
            self._desk.calls.pop(key, None)

    async def _pass(self, message: Wire) -> Wire:
        self._desk.native.pass_on(*self._key, message)
        answer = self._answer = self._desk.loop.create_future()
        with waiting(answer):
            response: Wire = await answer
        return await self._shown(response, message) if self._seat.sees_responses else response

    async def _shown(self, response: Wire, request: Wire) -> Wire:
        """What the middleware's `response` makes of a response."""
        passed: list[Wire] = []

        async def pass_on(message: Wire) -> Wire:
            _once(passed, message)
            return message

        direction, revision, principal = self._about
        next = Next(pass_on, _OTHER[direction], revision, principal, request)
        await self._seat.middleware.response(response, next)
        if not passed:
            raise ProtocolError("internal", "the response was not passed on")
        return passed[0]

    def answered(self, response: Wire | None, failure: BaseException | None) -> None:
        self._failure = failure
        if self._answer is None or self._answer.done():
            return
        if failure is not None:
            self._answer.set_exception(failure)
        elif response is not None:
            self._answer.set_result(response)


class Desk:
    """Takes the messages that middleware is to see, and starts a task for each.

    Messages start in the order in which they came. One whose hook waits may be overtaken by later ones.
    """

    def __init__(self, loop: Loop) -> None:
        self.native = _core.Desk()
        self.loop = loop
        self.seats: dict[int, _Seat] = {}
        self.calls: dict[tuple[int, int], _Call] = {}
        self._notices: dict[tuple[int, int], object] = {}
        self._forget = watch(loop, self.native.wake(), self._drain)

    def sit(self, numbers: list[int], middleware: list[Middleware], failed: Failures) -> None:
        """Notes which middleware has which seat."""
        self.seats |= {number: _Seat(one, failed) for number, one in zip(numbers, middleware, strict=True)}

    def _drain(self) -> None:
        self.native.drain(self)

    def on_request(self, seat: int, number: int, message: Wire, about: tuple[Direction, str, str | None]) -> None:
        call = self.calls[seat, number] = _Call(self, (seat, number), message, about)
        call.task = self.loop.create_task(call.run())

    def on_response(self, seat: int, number: int, response: Wire | None, failure: BaseException | None) -> None:
        if call := self.calls.get((seat, number)):
            call.answered(response, failure)

    def on_given_up(self, seat: int, number: int) -> None:
        if (call := self.calls.get((seat, number))) and call.task is not None:
            call.task.cancel()
            # A task that is cancelled before its first step does not run at all.
            if not call.has_begun:
                del self.calls[seat, number]

    def on_notification(self, seat: int, number: int, message: Wire, direction: Direction) -> None:
        self._notices[seat, number] = None
        task = self.loop.create_task(self._noticed(seat, number, message, direction))
        # A task that starts at once may have ended.
        if (seat, number) in self._notices:
            self._notices[seat, number] = task

    def on_behind(self, seat: int, number: int) -> None:
        # Behind the first steps of the tasks that were started before.
        self.loop.call_soon(self.native.reached, seat, number)

    async def _noticed(self, seat: int, number: int, message: Wire, direction: Direction) -> None:
        passed: list[Wire] = []

        async def pass_on(message: Wire) -> Wire:
            _once(passed, message)
            self.native.let_go(seat, number, message)
            return message

        try:
            await self.seats[seat].middleware.notification(message, Next(pass_on, direction))
        except Exception as error:
            self.seats[seat].failed("notification", error)
        finally:
            del self._notices[seat, number]
            self.native.let_go(seat, number, None)

    def close(self) -> None:
        """Ends it: what waits is refused."""
        self._forget()
        self.native.close()
        for call in list(self.calls.values()):
            if call.task is not None:
                call.task.cancel()
        for task in list(self._notices.values()):
            if task is not None:
                task.cancel()  # type: ignore[attr-defined]


def _once(passed: list[Wire], message: Wire) -> None:
    if passed:
        raise Misuse("the message was passed on before; a message is passed on once at most")
    passed.append(message)


def _sees(middleware: Middleware, hook: str) -> bool:
    from .chain import Middleware as Base

    return getattr(type(middleware), hook) is not getattr(Base, hook)


def interests(middleware: Middleware) -> tuple[bool, bool]:
    """Whether middleware sees requests, with their responses, and notifications: the hooks that its class has."""
    return _sees(middleware, "request") or _sees(middleware, "response"), _sees(middleware, "notification")
