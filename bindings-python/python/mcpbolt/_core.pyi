"""The engine. Private: what it offers may change with every release."""

from asyncio import Future
from collections.abc import Callable, Sequence
from contextvars import Context as Variables
from os import PathLike
from typing import Any, Protocol, final

__all__ = ["__version__", "Answer", "Catalog", "Context", "Job", "Link", "Serving", "to_json"]

__version__: str

def to_json(value: object) -> str:
    """A value as the JSON text that goes on the wire."""

class _Definition(Protocol):
    """One tool, resource, template or prompt."""

class _Setup(Protocol):
    """How a client is set up."""

@final
class Answer:
    """The result of a client's request."""

    def parse(self) -> dict[str, Any]:
        """The result as Python objects, made anew each time."""

    def json(self) -> str:
        """The result as it stands on the wire."""

@final
class Catalog:
    def __new__(
        cls,
        name: str,
        version: str,
        instructions: str | None,
        trace: str | PathLike[str] | None,
        tools: Sequence[_Definition],
        resources: Sequence[_Definition],
        templates: Sequence[_Definition],
        prompts: Sequence[_Definition],
    ) -> Catalog: ...
    @property
    def has_tasks(self) -> bool: ...

@final
class Context:
    """A call under way. A handler gets one by a parameter with this hint."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it. It must increase from call to call."""

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Sends a log message, if the client wants messages of that level."""

    @property
    def cancelled(self) -> bool:
        """Whether the client gave up, or went away."""

    @property
    def cancel_reason(self) -> str | None:
        """Why it gave up, if it said so."""

    @property
    def revision(self) -> str:
        """The protocol revision that the call is served in."""

    @property
    def state(self) -> Any:
        """What the server's lifespan gave."""

@final
class Job:
    def settle(self, value: object) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Link:
    @staticmethod
    def child(
        setup: _Setup,
        command: Sequence[str],
        cwd: str | None,
        env: Sequence[tuple[str, str]],
        inherit: Sequence[str],
    ) -> Link: ...
    @staticmethod
    def pair(
        setup: _Setup,
        catalog: Catalog,
        state: object,
        context: Variables,
        spawn: Callable[[Job, Callable[..., Any], dict[str, Any]], Any] | None = None,
        call_soon: Callable[..., Any] | None = None,
    ) -> tuple[Link, Serving]: ...
    def request(
        self,
        method: str,
        params: object,
        future: Future[Answer],
        timeout: float | None = None,
        progress: Callable[[float, float | None, str | None], object] | None = None,
    ) -> int: ...
    def cancel(self, number: int, reason: str | None) -> None: ...
    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def peer(self) -> tuple[dict[str, Any], dict[str, Any], str | None, str | None]: ...
    def offers(self, capability: str) -> bool: ...
    def ping_method(self) -> str: ...
    def stray_count(self) -> int: ...
    def close(self) -> None: ...

@final
class Serving:
    @staticmethod
    def stdio(
        catalog: Catalog,
        grace: float,
        own: bool,
        state: object,
        context: Variables,
        spawn: Callable[[Job, Callable[..., Any], dict[str, Any]], Any] | None = None,
        call_soon: Callable[..., Any] | None = None,
    ) -> Serving: ...
    def fileno(self) -> int: ...
    def drain(self) -> bool: ...
    def wait(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
