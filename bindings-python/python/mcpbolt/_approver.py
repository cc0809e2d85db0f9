"""Asks a function of the program whether calls of tools are approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Union

from . import _core
from ._hooks import Clock

if TYPE_CHECKING:
    from ._event_loop import Cancellable, Loop
    from ._failures import Failures

@dataclass(frozen=True)
class ApprovalCall:
    """A call of a tool that waits for approval.

    Attributes:
        tool: The name of the tool.
        arguments: Its arguments.
        principal: The verified client; `None` if nobody verified it.
        revision: The protocol revision in which the client speaks.
    """

    tool: str
    arguments: dict[str, Any]
    principal: str | None
    revision: str


Approve = Callable[[ApprovalCall], Union[bool, str, Awaitable[Union[bool, str]]]]

REFUSED = "the program has refused it"
FAILED = "the approval failed unexpectedly"


class Approver:
    """The function of an `Approval`, with its calls that wait."""

    def __init__(
        self, approve: Approve, timeout: float | None, failed: Failures, native: _core.Handoffs, loop: Loop
    ) -> None:
        self.approve = approve
        self.timeout = timeout
        self.failed = failed
        self.native = native
        self.clock = Clock(loop, timeout)
        self._loop = loop
        self._questions: dict[int, _Question] = {}

    def ask(self, number: int, about: tuple[str, dict[str, Any], str | None, str]) -> None:
        question = self._questions[number] = _Question(self, number, ApprovalCall(*about))
        question.task = self._loop.create_task(question.run())

    def give_up(self, number: int) -> None:
        """Cancels the question about a call that nobody waits for."""
        if (question := self._questions.pop(number, None)) and question.task is not None:
            question.task.cancel()

    def decide(self, number: int, why: str | None) -> None:
        """Passes on the verdict on a call: why it is refused, if it is."""
        self._questions.pop(number, None)
        self.native.decide(number, why)

    def close(self) -> None:
        self.clock.close()
        for number in list(self._questions):
            self.give_up(number)


class _Question:
    """Whether one call is approved."""

    def __init__(self, approver: Approver, number: int, call: ApprovalCall) -> None:
        self._approver = approver
        self._number = number
        self._call = call
        self.task: Cancellable | None = None

    async def run(self) -> None:
        approver = self._approver
        why: str | None = FAILED
        approver.clock.begin(self)
        try:
            verdict: object = approver.approve(self._call)
            why = _refusal(await verdict if isawaitable(verdict) else verdict)
        except Exception as error:
            approver.failed(error, f"the approval of {self._call.tool!r} failed", None)
        finally:
            approver.clock.end(self)
            approver.decide(self._number, why)

    def late(self) -> None:
        # Before the task ends.
        self._approver.decide(self._number, f"no decision within {self._approver.timeout:g} s")
        if self.task is not None:
            self.task.cancel()


def _refusal(verdict: object) -> str | None:
    """Why a call is refused, if it is."""
    if not isinstance(verdict, (bool, str)):
        raise TypeError(f"the approval returned {verdict!r}; return True, False, or a text that says why not")
    return verdict if isinstance(verdict, str) else None if verdict else REFUSED
