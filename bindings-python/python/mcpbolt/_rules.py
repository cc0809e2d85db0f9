"""Rules: middleware of the engine for chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._approver import Approve, Approver
from ._core import to_json
from ._options import options

if TYPE_CHECKING:
    from ._failures import Failures
    from ._hooks import HookRunner
    from ._results import Tool


class Rule(ABC):
    """Middleware of the engine: for one server, `External(…, rules=[…])`, by the server's own names; or for a front,
    `Front(…, middleware=[…])`, by the names that clients see. It passes messages without the interpreter."""

    _needs_loop = False

    @abstractmethod
    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        """The engine's rule, at one place in a chain."""


@dataclass(frozen=True)
class PinDrift:
    """A tool that is not as it was pinned.

    Attributes:
        server: The name of the server.
        tool: The tool, by the server's own name.
        pinned: Its pin; `None` if it has none: it is new, or had another name.
        found: The pin that it would have as it is.
    """

    server: str
    tool: str
    pinned: str | None
    found: str


def tool_pin(tool: Tool | Mapping[str, Any]) -> str:
    """The pin of a tool, as lists have it: `sha256:` and the hash of its name, title, description, schemas and
    annotations."""
    return _core.tool_pin(dict(tool if isinstance(tool, Mapping) else tool.wire))


class Pins(Rule):
    """Passes on only tools of a server that are as somebody has looked at them. Others are left out of lists, and calls of
    them are refused. A tool that may have changed since it was listed is looked up before it is called. For one server,
    behind a `Retry`.

        External(server, rules=[Pins({tool.name: tool_pin(tool) for tool in tools})])

    Args:
        pins: The pin of each tool, by the server's own names: see `tool_pin`.
        on_drift: Called once for each tool that is not as it was pinned, with a `PinDrift`. It runs on a thread of its own.
    """

    def __init__(self, pins: Mapping[str, str], *, on_drift: Callable[[PinDrift], object] | None = None) -> None:
        self._pins = dict(pins)
        self._on_drift = on_drift

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        told = self._on_drift
        report = None if told is None else lambda *about: told(PinDrift(*about))
        return _core.Rule.pins(server, self._pins, report, failed)


class Approval(Rule):
    """Passes on calls of some tools only when they are approved: by the program, or by the user of the client.

    Args:
        tools: The names of the tools, in which `*` stands for any text: `["pay", "delete*"]`.
        approve: Gets an `ApprovalCall`; returns `True`, or `False`, or a text that says why not. It may be a coroutine
            function, whose task is cancelled when the call is; a plain one must not block the event loop. An exception refuses the
            call without its text, and is logged. Without `approve` the user is asked by elicitation, and calls of
            clients without elicitation are refused.
        timeout: Seconds that `approve` may take; 300 by default. Then the call is refused. `None`: no limit.
    """

    def __init__(
        self, tools: Sequence[str], approve: Approve | None = None, *, timeout: float | None = 300.0
    ) -> None:
        if isinstance(tools, str):
            raise TypeError("Approval: tools is a list of names, not one text")
        options(timeout=timeout)
        self._tools = list(tools)
        self._approve = approve
        self._timeout = timeout
        self._needs_loop = approve is not None
        _core.Rule.approval(self._tools, None)  # so that wrong arguments are told of here

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        if self._approve is None:
            return _core.Rule.approval(self._tools, None)
        assert runner is not None
        runner.approvers.append(Approver(self._approve, self._timeout, failed, runner.native, runner.loop))
        return _core.Rule.approval(self._tools, (runner.native, len(runner.approvers) - 1))


class Masking(Rule):
    """Masks texts: in results of tools, prompts and resources, in tasks, completions, errors and log messages, or in arguments.
    `***` takes the place of each. Names, types, URIs and base64 data stay; so does each byte of a message in which nothing
    is masked.

    Args:
        patterns: Regular expressions in the syntax of Rust's `regex`, which need time linear in the text; at most 64.
        texts: "results", "arguments" or "both".
        credentials: Whether what looks like a credential is masked, as in the errors of a server with a policy.
        secrets: Texts that are masked wherever they stand.
        max_bytes: The length of a result, or of params, above which nothing is passed on but an error; 16 MiB by default.

    Raises:
        ValueError: Nothing is to be masked, or a pattern is not a regular expression or matches an empty text.
    """

    def __init__(
        self,
        patterns: Sequence[str] = (),
        *,
        texts: Literal["results", "arguments", "both"] = "results",
        credentials: bool = False,
        secrets: Sequence[str] = (),
        max_bytes: int | None = None,
    ) -> None:
        self._settings = to_json(
            options(
                patterns=list(patterns),
                texts=texts,
                credentials=credentials,
                secrets=list(secrets),
                max_bytes=max_bytes,
            )
        )
        _core.Rule.masking(self._settings)  # so that wrong arguments are told of here

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        return _core.Rule.masking(self._settings)


class Breaker(Rule):
    """Leaves a server alone for a time after it has failed often: it was lost, did not answer in time, or answered what is not
    valid. Meanwhile its requests are refused; then one at a time is let through, until one has an answer. One for each
    server.

    Args:
        failures: How many failures it takes, from 1 to 1000.
        window: Seconds within which they are counted.
        rest: Seconds that the server is left alone.
    """

    def __init__(self, *, failures: int = 5, window: float = 10.0, rest: float = 10.0) -> None:
        self._native = _core.Rule.breaker(to_json(options(failures=failures, window=window, rest=rest)))

    @property
    def is_open(self) -> bool:
        """Whether requests are refused at present."""
        return self._native.is_open

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        return self._native


class Retry(Rule):
    """Sends a request again, over a new connection, when the server was lost before it began to answer. It does so with lists,
    reads, `prompts/get`, completions and `ping`. Behind a `Breaker`, which then counts what all attempts have ended with.

    Args:
        times: How often, from 0 to 10.
        trust_annotations: Whether calls of tools are repeated, too, that the server lists with `readOnlyHint` or
            `idempotentHint`.
    """

    def __init__(self, times: int, *, trust_annotations: bool = False) -> None:
        self._settings = to_json(options(times=times, trust_annotations=trust_annotations))
        _core.Rule.retry(self._settings)  # so that wrong arguments are told of here

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        return _core.Rule.retry(self._settings)


@dataclass(frozen=True)
class UpstreamCall:
    """A request to a server, and its outcome. It has neither arguments nor results.

    Attributes:
        server: The name of the server.
        method: The method.
        name: The tool, the prompt or the URI.
        principal: The verified client.
        outcome: "done", "tool_failed", "failed", "timed_out", "cancelled", …, as for `Policy(audit=…)`.
        error: The text of the error, if there is one.
        seconds: Time until the answer.
        dropped: How many reports before this one were dropped, since 8,192 waited.
    """

    server: str
    method: str
    name: str | None
    principal: str | None
    outcome: str
    error: str | None
    seconds: float
    dropped: int


class CallReports(Rule):
    """Reports each request to a server when it is answered or cancelled. First of the rules, so that the refusals of others are
    reported, too. Reports that wait when the process ends are lost.

    Args:
        report: Called with an `UpstreamCall`, on a thread of its own, for one at a time.
    """

    def __init__(self, report: Callable[[UpstreamCall], object]) -> None:
        self._report = report

    def _made(self, server: str, failed: Failures, runner: HookRunner | None) -> _core.Rule:
        report = self._report
        return _core.Rule.reports(server, lambda *about: report(UpstreamCall(*about)), failed)
