"""A client's calls in the action dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _core
from ._connection import Connection
from ._core import to_json
from ._errors import ActionError
from ._options import Options, options

if TYPE_CHECKING:
    from ._event_loop import Future


@dataclass(frozen=True)
class ActionAnswer:
    """The answer to an action."""

    data: Any
    """The result."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Metadata from the server: `request_id`, `server_id`, `execution_time_ms` and so on."""
    partials: list[Any] = field(default_factory=list)
    """The parts that came before the result, in order."""

    def joined(self, member: str) -> str:
        """Joins the values of a string member of all parts, for a text that came in pieces."""
        texts = (part.get(member) for part in self.partials if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))

    def results(self) -> list[Any | ActionError]:
        """The outcome of each operation of a batch that was carried out: its data, or its error."""
        return _core.action_results(self.data)


@dataclass(frozen=True, slots=True)
class RetryPolicy(Options):
    """How often, and after what delays, a call is retried after a transient failure."""

    tries: int = 3
    """The number of attempts in all."""
    base: float = 1.0
    """The first delay, in seconds. Each further one is twice as long; up to half as much is added at random."""
    longest: float = 30.0
    """The longest delay, in seconds. If the server asks for a longer one, the call is not retried."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy(Options):
    """When the circuit breaker opens, and for how long."""

    failures: int = 5
    """The number of failures in a row that opens it; 0 disables it."""
    pause: float = 30.0
    """Seconds for which nothing is sent then."""


class Actions(Connection):
    """The calls of the action dialect, for a client that was made with `opening="actions"`."""

    async def action(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        tool: str | None = None,
        context: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_partial: Callable[[Any], object] | None = None,
        streamed: bool = False,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        fallback: tuple[str, Mapping[str, Any]] | None = None,
    ) -> ActionAnswer:
        """Calls an action. Cancelling the task cancels the action.

        Args:
            tool: The tool, or the namespace, to call.
            context: The process or state that the action belongs to.
            metadata: Further members of the request's metadata: `client_id`, `auth`, `timestamp`.
            timeout: Seconds that each attempt may go without hearing from the server.
            on_partial: Called with each part of the answer as it comes.
            streamed: Asks for the answer in parts, collected in `ActionAnswer.partials`; `on_partial` implies it.
            retry: How transient failures are retried; by default three attempts, one and then two seconds apart.
                Passing a policy also allows the action to be carried out twice: without one, an action whose stream
                broke off after some parts and could not be resumed is not retried.
            breaker: When calls to a server that keeps failing are suspended.
            fallback: The name and the params of an action to call instead if this one finally fails, unless the call
                itself is wrong.

        Raises:
            ActionError: The server answered with an error.
            InvalidParams: The params are not valid against the schema, if `action_schemas` was called.
            BreakerOpen: The circuit breaker is open.
            RequestTimeout, CarrierError, ConnectionClosed: There is no answer. For each of these errors,
                `McpError.for_people` is a sentence for people.
        """
        link, json = self._connected, to_json(params or {})
        wire = options(
            tool=tool,
            context=context,
            metadata=metadata,
            timeout=timeout,
            streamed=streamed or on_partial is not None or None,
            retry=retry,
            breaker=breaker,
            fallback=fallback,
        )

        def begin(future: Future[ActionAnswer]) -> int:
            return _core.call_action(link, name, json, to_json(wire) if wire else "{}", on_partial, future)

        return await self._made(begin)

    async def action_batch(
        self, operations: Iterable[tuple[str, Mapping[str, Any]]], *, continue_on_error: bool = False
    ) -> ActionAnswer:
        """Calls several actions, given by name and params, one after the other in one request. Stops at the first
        failure unless `continue_on_error` is set. See `ActionAnswer.results`."""
        calls = [{"action": name, "params": params} for name, params in operations]
        return await self.action("batch.execute", {"operations": calls, "continue_on_error": continue_on_error})

    async def action_schemas(self) -> dict[str, Any]:
        """Gets the server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From
        then on params are validated against these schemas before they are sent."""
        link = self._connected
        return await self._made(lambda future: _core.action_schemas(link, future))

    async def action_version(self) -> dict[str, Any]:
        """Gets the server's name and version, and the versions of the dialect that it speaks."""
        version: dict[str, Any] = (await self.action("mcp.get_version")).data
        return version

    async def action_health(self) -> None:
        """Checks once, without retries, whether the server is healthy.

        Raises:
            ActionError: It is not healthy.
        """
        await self.action("mcp.health_check", retry=RetryPolicy(tries=1))
