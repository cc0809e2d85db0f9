"""The setup of a client and the options of its requests, as the engine reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._content import Wire
from ._core import to_json
from ._questions import Root

if TYPE_CHECKING:
    from ._core import Telemetry
    from ._event_loop import Future

OnProgress = Callable[[float, "float | None", "str | None"], object]
OnLog = Callable[[dict[str, Any]], object]
OnNotification = Callable[[str, dict[str, Any]], object]


class ClientSetup:
    """A client's settings, as the engine reads them, and the functions that it calls.

    Args:
        json: The settings that are fixed before the client connects.
    """

    def __init__(self, json: str, on_stderr: Callable[[str], object] | None, telemetry: bool = False) -> None:
        self.json = json
        self.on_stderr = on_stderr
        self.telemetry: Telemetry | None = None
        if telemetry:
            from ._telemetry import telemetry as of_process

            self.telemetry = of_process().native
        self.on_notice: Callable[[str, Wire], object]
        self.on_asked: Callable[[int, str, Wire], object]
        self.on_given_up: Callable[[int], object]
        self.opened: Future[None]
        self.ended: Future[None]


class RequestOptions:
    """Options of one request."""

    __slots__ = ("timeout", "max_timeout", "on_progress", "meta")

    def __init__(
        self,
        timeout: float | None = None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.timeout = timeout
        self.max_timeout = max_timeout
        self.on_progress = on_progress
        self.meta = to_json(meta) if meta else None


def roots_wire(roots: Iterable[Root | str]) -> list[Wire]:
    """The roots, as they are on the wire."""
    return [(Root(root) if isinstance(root, str) else root).wire() for root in roots]


def notices(
    on_log: OnLog | None,
    on_list_changed: Callable[[str], object] | None,
    on_resource_updated: Callable[[str], object] | None,
    on_elicitation_complete: Callable[[str], object] | None,
    on_notification: OnNotification | None,
) -> Callable[[str, Wire], object]:
    """Makes a function that passes each notification of the server to the callback for it."""

    def told(method: str, params: Wire) -> None:
        match method.split("/")[1:]:
            case ["message"] if on_log:
                on_log({name: params[name] for name in params if name != "_meta"})
            case [kind, "list_changed"] if on_list_changed:
                on_list_changed(kind)
            case ["resources", "updated"] if on_resource_updated:
                on_resource_updated(params["uri"])
            case ["elicitation", "complete"] if on_elicitation_complete:
                on_elicitation_complete(params["elicitationId"])
            case _ if on_notification:
                on_notification(method, params)

    return told
