"""`Entry`: one tool, resource, template or prompt, as the engine reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from ._content import Wire
from ._core import Results, to_json
from ._docstring import description, without_parameters
from ._icon import Icon
from ._options import options
from ._signature import Function, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._lanes import Rest

Icons = Iterable["Icon | str | Wire"]
TaskSupport = Literal["forbidden", "optional", "required"]


MAX_NAME = 128
_IN_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")


def objection(name: str) -> str | None:
    """Why some clients do not take a tool of that name (R-NAM-01); `None` if all do."""
    if not name:
        return "the name is empty"
    if len(name) > MAX_NAME:
        return f"the name exceeds maximum length: it has {len(name)} characters, and some clients take only {MAX_NAME}"
    found = ["contains spaces"] if " " in name else []
    if odd := [one for one in dict.fromkeys(name) if one not in _IN_NAMES and one != " "]:
        found.append(f"contains invalid characters: {', '.join(map(repr, odd))}")
    if found:
        return f"the name {' and '.join(found)}; some clients take only names of A-Z a-z 0-9 _ - ."
    if "-" in (name[0], name[-1]):
        return "the name starts or ends with a dash, which some clients do not take"
    return None


class Entry:
    """A tool, resource, resource template, prompt or completion of a server."""

    uri = ""
    prepare: Function | None = None
    is_plain = False
    wraps: bool | None = None
    lower: Function
    kept: Results | None = None
    steps: str | None = None
    """The parameter for the steps of an atomic tool."""
    is_layered = False
    """Whether the function has layers around it, and takes the pending call."""
    wrapped: Rest | None = None
    """The call that the layers wrap, if they do not wrap the function itself."""
    owner: int | None = None
    """Identifies the mounted server that the entry is of."""
    origin: str | None = None
    """Names the mounted server that the entry is of, for errors."""
    failed: Callable[..., object] | None = None
    """Called with the unexpected failures of the function."""

    def __init__(
        self, kind: str, signature: Signature, *, name: str | None = None, text: str | None = None, inline: bool = False
    ) -> None:
        self.kind = kind
        function = signature.function
        self.function = function
        named = function
        while not hasattr(named, "__name__") and hasattr(named, "func"):
            named = named.func  # of a `functools.partial`
        self.name = name or str(getattr(named, "__name__", type(named).__name__))
        if self.name == "<lambda>" and kind in ("tool", "prompt"):
            raise TypeError("You must provide a name for lambda functions: pass name=")
        self.description = text if text is not None else description(named)
        self.definition: Wire = {}
        self.parameters = [*signature.parameters]
        self.context = signature.context
        self.dependencies = signature.dependencies
        if inline and signature.is_async:
            raise TypeError(f"{self.name}: a coroutine function cannot run inline")
        self.lane = "task" if signature.is_async else "inline" if inline else "worker"

    def define(self, *, title: str | None, icons: Icons, meta: Mapping[str, Any] | None) -> Wire:
        """Sets the members that all definitions have; returns the definition."""
        shown = [icon if isinstance(icon, dict) else Icon.of(icon).wire() for icon in icons]
        self.definition = options(name=self.name, title=title, description=self.description, icons=shown or None)
        if meta is not None:
            self.definition["_meta"] = meta
        return self.definition

    def shorten(self) -> None:
        """Leaves out of the description what the schema says of the parameters."""
        text = self.description = without_parameters(self.description or "")
        if text is not None:
            self.definition["description"] = text
        else:
            self.definition.pop("description", None)

    @property
    def is_wrapped(self) -> bool:
        """Whether the function needs more than its arguments, without any layers."""
        return bool(self.dependencies) or self.kept is not None or self.steps is not None or self.wrapped is not None

    @property
    def is_async(self) -> bool:
        """Whether the function or one that makes a dependency is a coroutine function."""
        return self.lane == "task" or any(one.is_async for one in self.dependencies.values())

    @property
    def key(self) -> str:
        """The name or URI by which clients refer to the entry."""
        return self.uri or self.name

    @property
    def json(self) -> str:
        """The definition, as the engine reads it."""
        return to_json(self.definition)
