"""Calls in the action dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _core
from ._connection import Connection
from ._core import to_json
from ._errors import ActionError

if TYPE_CHECKING:
    from ._event_loop import Future


@dataclass(frozen=True)
class ActionAnswer:
    """What an action answered."""

    data: Any
    """Its result."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the server says of the answer: `request_id`, `server_id`, `execution_time_ms` and so on."""
    partials: list[Any] = field(default_factory=list)
    """The parts that came before it, in their order."""

    def joined(self, member: str) -> str:
        """The values of a string member of the parts, joined: what a text was made up of."""
        texts = (part.get(member) for part in self.partials if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))

    def results(self) -> list[Any | ActionError]:
        """What became of each operation of a batch, as far as they were carried out: its data, or its error."""
        return _core.action_results(self.data)


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and after what waits, a call is tried again whose failure may pass."""

    tries: int = 3
    """How often it is tried in all."""
    base: float = 1.0
    """Seconds of the first wait; each further one is twice as long, and up to half as much is added by chance."""
    longest: float = 30.0
    """The longest wait. A server that asks for a longer one is not asked again."""


@dataclass(frozen=True)
class BreakerPolicy:
    """When a server counts as one that keeps failing."""

    failures: int = 5
    """So many failures in a row; never when 0."""
    pause: float = 30.0
    """For how many seconds nothing is sent then."""


class ActionOptions:
    """How one action is called."""

    def __init__(
        self,
        tool: str | None,
        context: str | None,
        metadata: Mapping[str, Any] | None,
        timeout: float | None,
        on_partial: Callable[[Any], object] | None,
        streamed: bool,
        retry: RetryPolicy | None,
        breaker: BreakerPolicy | None,
        fallback: tuple[str, Mapping[str, Any]] | None,
    ) -> None:
        self.tool = tool
        self.context = context
        self.metadata = to_json(metadata) if metadata else None
        self.timeout = timeout
        self.on_partial = on_partial
        self.streamed = streamed
        self.retry = retry
        self.breaker = breaker
        self.fallback = None if fallback is None else (fallback[0], to_json(fallback[1]))


class Actions(Connection):
    """What a client that was made with `opening="actions"` asks a server of the action dialect for."""

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
        """Calls an action. Cancelling the task gives it up.

        Args:
            tool: The tool, or the namespace, that is asked.
            context: The process or state that it belongs to.
            metadata: More members of its metadata: `client_id`, `auth`, `timestamp`.
            timeout: Seconds that each attempt may go without news.
            on_partial: Called with each part of the answer as it comes.
            streamed: Asks for the answer in parts, which `ActionAnswer.partials` gathers; `on_partial` does so, too.
            retry: How often it is tried again where that may help; three tries, a second and then two apart, by default.
                Given, it also says that the action may be carried out twice: without it, one whose stream broke off
                under its parts and could not be resumed is not tried again.
            breaker: When a server that keeps failing is left alone.
            fallback: The name and the params of an action that is called instead when this fails for good, but for what
                is wrong with the call itself.

        Raises:
            ActionError: The server answered with an error.
            InvalidParams: The params do not fit the schema, if `action_schemas` was asked for.
            BreakerOpen: The server is left alone for a while.
            RequestTimeout, CarrierError, ConnectionClosed: There is no answer. `McpError.for_people` says each of these in
                a sentence for people.
        """
        link, json = self._connected, to_json(params or {})
        streamed = streamed or on_partial is not None
        options = ActionOptions(tool, context, metadata, timeout, on_partial, streamed, retry, breaker, fallback)

        def begin(future: Future[ActionAnswer]) -> int:
            return _core.call_action(link, name, json, options, future)

        return await self._made(begin)

    async def action_batch(
        self, operations: Iterable[tuple[str, Mapping[str, Any]]], *, continue_on_error: bool = False
    ) -> ActionAnswer:
        """Calls actions, names and params, one after the other in one request, and stops at the first that fails unless it
        continues: see `ActionAnswer.results`."""
        calls = [{"action": name, "params": params} for name, params in operations]
        return await self.action("batch.execute", {"operations": calls, "continue_on_error": continue_on_error})

    async def action_schemas(self) -> dict[str, Any]:
        """The server's actions by name: `description`, `params_schema`, `data_schema`, `examples` and more. From now on
        params are held against them before they are sent."""
        link = self._connected
        return await self._made(lambda future: _core.action_schemas(link, future))

    async def action_version(self) -> dict[str, Any]:
        """The server's name and version, and the versions of the dialect that it speaks."""
        version: dict[str, Any] = (await self.action("mcp.get_version")).data
        return version

    async def action_health(self) -> None:
        """Asks once whether the server is in working order.

        Raises:
            ActionError: It is not.
        """
        await self.action("mcp.health_check", retry=RetryPolicy(tries=1))
