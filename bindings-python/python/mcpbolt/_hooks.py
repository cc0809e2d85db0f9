"""Runs the middleware of chains on an event loop."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from . import _core
from ._errors import Misuse, PeerError, ProtocolError, RequestCancelled, ToolError
from ._passing import Direction, Middleware, Next
from ._wake import watch
from ._watched import waiting

if TYPE_CHECKING:
    from ._content import Wire
    from ._event_loop import Cancellable, Future, Loop
    from ._failures import Failures

_OTHER: dict[Direction, Direction] = {"to_server": "to_client", "to_client": "to_server"}


class Approving(Protocol):
    """The function of an `Approval`."""

    def ask(self, number: int, about: tuple[str, dict[str, Any], str | None, str]) -> None:
        """Has it decide on a call."""

    def give_up(self, number: int) -> None:
        """Called when nobody waits for its verdict on a call."""

    def close(self) -> None:
        """Ends it."""


class Timed(Protocol):
    """What a `Clock` watches."""

    def late(self) -> None:
        """Called when the limit is over."""


class Clock:
    """Tells each of what has begun when it takes longer than a limit, in seconds; `None` for no limit."""

    def __init__(self, loop: Loop, limit: float | None) -> None:
        self._loop = loop
        self._limit = limit
        self._due: dict[Timed, float] = {}  # the first first, as all have the same limit
        self._timer: Cancellable | None = None

    def begin(self, what: Timed) -> None:
        if self._limit is None:
            return
        self._due[what] = monotonic() + self._limit
        if self._timer is None:
            self._timer = self._loop.call_later(self._limit, self._look)

    def end(self, what: Timed) -> None:
        self._due.pop(what, None)

    def _look(self) -> None:
        self._timer = None
        while self._due:
            what, due = next(iter(self._due.items()))
            if (left := due - monotonic()) > 0:
                self._timer = self._loop.call_later(left, self._look)
                return
            del self._due[what]
            what.late()

    def close(self) -> None:
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()


class _Hooks:
    """Middleware of a front: how long its hooks may take, and where their failures are reported."""

    def __init__(self, middleware: Middleware, failed: Failures, loop: Loop, limit: float | None) -> None:
        self.middleware = middleware
        self.sees_responses = _sees(middleware, "response")
        self.clock = Clock(loop, limit)
        self._name = type(middleware).__name__
        self._failed = failed
        self._limit = limit

    def failed(self, hook: str, error: BaseException) -> str | None:
        """Reports an unexpected exception; returns the text for the sender, if it may be told one."""
        if isinstance(error, (ProtocolError, PeerError, ToolError)):
            return None
        return self._failed(error, f"`{hook}` of {self._name} failed", None)

    def late(self, hook: str) -> str:
        """Reports that a hook takes too long; returns the text for the sender."""
        why = f"the middleware {self._name} did not finish within {self._limit:g} s"
        self._failed(TimeoutError(why), f"`{hook}` of {self._name} failed", None)
        return why


class _Call:
    """A request that middleware handles."""

    def __init__(
        self, runner: HookRunner, key: tuple[int, int], message: Wire, about: tuple[Direction, str, str | None]
    ) -> None:
        self._runner = runner
        self._key = key
        self._message = message
        self._about = about
        self._hooks = runner.hooks[key[0]]
        self._answer: Future[Wire] | None = None
        self._failure: BaseException | None = None
        self.task: Cancellable | None = None
        self.has_begun = False
        self._is_over = False

    async def run(self) -> None:
        self.has_begun = True
        native, key, hooks = self._runner.native, self._key, self._hooks
        hooks.clock.begin(self)
        try:
            response = await hooks.middleware.request(self._message, Next(self._pass, *self._about))
            native.settle(*key, response)
        except Exception as error:
            native.fail(*key, error, None if error is self._failure else hooks.failed("request", error))
        except BaseException as error:  # as of a cancelled task
            native.fail(*key, error, "the middleware was cancelled")
            raise
        finally:
            hooks.clock.end(self)
            self._runner.calls.pop(key, None)
            self.end()

    def end(self) -> None:
        """No response comes any more. A task of the program that waits for one gets an error."""
        self._is_over = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(RequestCancelled("the request was answered or cancelled before this response came"))

    def late(self) -> None:
        self._runner.native.refuse(*self._key, self._hooks.late("request"))
        if self.task is not None:
            self.task.cancel()

    async def _pass(self, message: Wire) -> Wire:
        self._runner.native.pass_on(*self._key, message)
        answer = self._answer = self._runner.loop.create_future()
        # The time of the server is not that of the middleware.
        self._hooks.clock.end(self)
        try:
            with waiting(answer):
                response: Wire = await answer
        finally:
            if not self._is_over:
                self._hooks.clock.begin(self)
        return await self._shown(response, message) if self._hooks.sees_responses else response

    async def _shown(self, response: Wire, request: Wire) -> Wire:
        """What the middleware's `response` makes of a response."""
        passed: list[Wire] = []

        async def pass_on(message: Wire) -> Wire:
            _once(passed, message)
            return message

        direction, revision, principal = self._about
        next = Next(pass_on, _OTHER[direction], revision, principal, request)
        await self._hooks.middleware.response(response, next)
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


class _Notice:
    """A notification that middleware handles."""

    def __init__(self, runner: HookRunner, key: tuple[int, int], message: Wire, direction: Direction) -> None:
        self._runner = runner
        self._key = key
        self._message = message
        self._direction: Direction = direction
        self._hooks = runner.hooks[key[0]]
        self._passed: list[Wire] = []
        self.task: Cancellable | None = None

    async def run(self) -> None:
        self._hooks.clock.begin(self)
        try:
            await self._hooks.middleware.notification(self._message, Next(self._pass, self._direction))
        except Exception as error:
            self._hooks.failed("notification", error)
        finally:
            self._hooks.clock.end(self)
            self._runner.notices.pop(self._key, None)
            self._runner.native.let_go(*self._key, None)

    def late(self) -> None:
        self._hooks.late("notification")
        self._runner.native.let_go(*self._key, None)
        if self.task is not None:
            self.task.cancel()

    async def _pass(self, message: Wire) -> Wire:
        _once(self._passed, message)
        self._runner.native.let_go(*self._key, message)
        return message


class HookRunner:
    """Takes the messages that middleware is to see, and starts a task for each.

    Messages start in the order in which they came. One whose hook waits may be overtaken by later ones.
    """

    def __init__(self, loop: Loop) -> None:
        self.native = _core.Handoffs()
        self.loop = loop
        self.hooks: dict[int, _Hooks] = {}
        self.calls: dict[tuple[int, int], _Call] = {}
        self.notices: dict[tuple[int, int], _Notice] = {}
        self.approvers: list[Approving] = []
        self._forget = watch(loop, self.native.wake(), self._drain)

    def add(self, numbers: list[int], middleware: list[Middleware], failed: Failures, limit: float | None) -> None:
        """Notes which middleware has which number, and how long its hooks may take."""
        for number, one in zip(numbers, middleware, strict=True):
            self.hooks[number] = _Hooks(one, failed, self.loop, limit)

    def _drain(self) -> None:
        self.native.drain(self)

    def on_request(
        self, middleware: int, number: int, message: Wire, about: tuple[Direction, str, str | None]
    ) -> None:
        call = self.calls[middleware, number] = _Call(self, (middleware, number), message, about)
        call.task = self.loop.create_task(call.run())

    def on_response(self, middleware: int, number: int, response: Wire | None, failure: BaseException | None) -> None:
        if call := self.calls.get((middleware, number)):
            call.answered(response, failure)

    def on_given_up(self, middleware: int, number: int) -> None:
        if (call := self.calls.get((middleware, number))) and call.task is not None:
            call.task.cancel()
            # A task that is cancelled before its first step does not run at all.
            if not call.has_begun:
                del self.calls[middleware, number]

    def on_notification(self, middleware: int, number: int, message: Wire, direction: Direction) -> None:
        notice = self.notices[middleware, number] = _Notice(self, (middleware, number), message, direction)
        notice.task = self.loop.create_task(notice.run())

    def on_behind(self, middleware: int, number: int) -> None:
        # Behind the first steps of the tasks that were started before.
        self.loop.call_soon(self.native.reached, middleware, number)

    def on_approval(self, approver: int, number: int, about: tuple[str, dict[str, Any], str | None, str]) -> None:
        self.approvers[approver].ask(number, about)

    def on_no_approval(self, number: int) -> None:
        for approver in self.approvers:
            approver.give_up(number)

    def close(self) -> None:
        """Ends it: what waits is refused."""
        self._forget()
        self.native.close()
        for hooks in self.hooks.values():
            hooks.clock.close()
        for approver in self.approvers:
            approver.close()
        for task in [*(call.task for call in self.calls.values()), *(one.task for one in self.notices.values())]:
            if task is not None:
                task.cancel()
        for call in self.calls.values():
            call.end()


def _once(passed: list[Wire], message: Wire) -> None:
    if passed:
        raise Misuse("the message was passed on before; a message is passed on once at most")
    passed.append(message)


def _sees(middleware: Middleware, hook: str) -> bool:
    return getattr(type(middleware), hook) is not getattr(Middleware, hook)


def interests(middleware: Middleware) -> tuple[bool, bool]:
    """Whether middleware sees requests, with their responses, and notifications: the hooks that its class has."""
    return _sees(middleware, "request") or _sees(middleware, "response"), _sees(middleware, "notification")
