"""Answers the questions of servers (sampling, elicitation), each in a task of the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from . import _core
from ._content import Wire
from ._errors import ToolError
from ._questions import Elicited, ElicitationRequest, Sampled, SamplingRequest

if TYPE_CHECKING:
    from ._event_loop import Cancellable, Loop

OnSampling = Callable[[SamplingRequest], "Sampled | str | Awaitable[Sampled | str]"]
OnElicitation = Callable[
    [ElicitationRequest], "Elicited | dict[str, Any] | bool | None | Awaitable[Elicited | dict[str, Any] | bool | None]"
]


class Answers:
    """The program's handlers, and the questions in progress."""

    def __init__(
        self, on_sampling: OnSampling | None, on_elicitation: OnElicitation | None, on_url: OnElicitation | None
    ) -> None:
        self._on_sampling = on_sampling
        self._on_elicitation = {"elicit": on_elicitation, "elicit_url": on_url}
        self._tasks: dict[int, Cancellable] = {}
        self.loop: Loop
        self.link: _core.Link | None = None

    def asked(self, number: int, what: str, params: Wire) -> None:
        """Starts to answer a question of the server."""
        self._tasks[number] = self.loop.create_task(self._answer(number, what, params))

    def given_up(self, number: int) -> None:
        """Cancels a question that the server no longer waits for."""
        if task := self._tasks.pop(number, None):
            task.cancel()

    def close(self) -> None:
        """Cancels all questions at the end of the connection."""
        for number in list(self._tasks):
            self.given_up(number)

    def _call(self, what: str, params: Wire) -> Any:
        if what == "sample" and self._on_sampling:
            return self._on_sampling(SamplingRequest(params))
        if on_elicitation := self._on_elicitation.get(what):
            return on_elicitation(ElicitationRequest.parse(params))
        raise ToolError("this client does not offer that")

    async def _answer(self, number: int, what: str, params: Wire) -> None:
        link = self.link
        assert link is not None
        try:
            answer = self._call(what, params)
            if isawaitable(answer):
                answer = await answer
            link.answer(number, _sampled(answer) if what == "sample" else _elicited(answer))
        except ToolError as error:
            link.refuse(number, str(error))
        except Exception:
            link.refuse(number, "the handler failed unexpectedly")
            raise
        except BaseException:
            link.refuse(number, "the client gave up")
            raise
        finally:
            self._tasks.pop(number, None)


def _sampled(answer: Any) -> Wire:
    if isinstance(answer, str):
        answer = Sampled(answer, "unknown")
    if isinstance(answer, dict):
        return answer
    wire: Wire = answer.wire()
    return wire


def _elicited(answer: Any) -> Wire:
    if isinstance(answer, Elicited):
        return {"action": answer.action, "content": answer.content}
    if answer is None:
        return {"action": "cancel"}
    if isinstance(answer, bool):
        return {"action": "accept" if answer else "decline"}
    return {"action": "accept", "content": answer}
