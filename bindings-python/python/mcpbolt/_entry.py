"""`Entry`: one tool, resource, template or prompt, as the engine reads it. JSON values are serialized to text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ._content import Wire
from ._core import Results, to_json
from ._icon import Icon
from ._signature import Function, Signature, description

Icons = Iterable["Icon | str | Wire"]
TaskSupport = Literal["forbidden", "optional", "required"]


class Entry:
    """A tool, resource, resource template, prompt or completion of a server."""

    uri = ""
    mime_type: str | None = None
    size: int | None = None
    input_schema = ""
    output_schema: str | None = None
    annotations: str | None = None
    action: str | None = None
    on_get = False
    task: TaskSupport = "forbidden"
    arguments: list[tuple[str, str | None, str | None, bool]] = []
    prepare: Function | None = None
    integers: list[str] = []
    lower: Function
    is_looked_at = False
    is_atomic = False
    kept: Results | None = None

    def __init__(
        self,
        kind: str,
        signature: Signature,
        *,
        name: str | None = None,
        title: str | None = None,
        text: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
    ) -> None:
        self.kind = kind
        function = signature.function
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.title = title
        self.description = text or description(function)
        self.icons = json([icon if isinstance(icon, dict) else Icon.of(icon).wire() for icon in icons])
        self.meta = json(meta)
        self.parameters = [*signature.parameters]
        self.context = signature.context
        if inline and signature.is_async:
            raise TypeError(f"{self.name}: a coroutine function cannot run inline")
        self.lane = "task" if signature.is_async else "inline" if inline else "worker"


def json(value: object) -> str | None:
    """Serializes a value to JSON; `None` for an empty value."""
    return to_json(value) if value else None
