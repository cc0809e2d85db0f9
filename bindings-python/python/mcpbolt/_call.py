"""`Call`: a request on its way to its function, as middleware sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from . import _core
from ._entry import Entry

LISTS = {
    "tools/list": ("tools", "Tool"),
    "resources/list": ("resources", "Resource"),
    "resources/templates/list": ("resourceTemplates", "ResourceTemplate"),
    "prompts/list": ("prompts", "Prompt"),
}
"""The methods of lists, each with the member of its result and the class of the items."""

Reply = Any
"""A `ToolResult`; a list of `ResourceContents`, of `Message`, of completions (text); or a list of `Tool`, `Resource`,
`ResourceTemplate` or `Prompt`."""


class Call:
    """A request on its way to its function, as middleware sees it.

    Its arguments have been checked. They are replaced by assigning others, which are checked too.
    """

    __slots__ = ("_pending", "_entry", "_arguments")

    _pending: _core.Pending
    _entry: Entry | None
    _arguments: Mapping[str, Any] | None

    @staticmethod
    def _of(pending: _core.Pending, entry: Entry | None = None) -> Call:
        call = Call()
        call._pending, call._entry, call._arguments = pending, entry, None
        return call

    @property
    def method(self) -> str:
        """The method of MCP: `tools/call`, `resources/read`, `prompts/get`, `completion/complete`, `tools/list` and the
        other lists. An action is a `tools/call`."""
        entry = self._entry
        return "tools/call" if entry is not None and entry.kind == "tool" else self._pending.method

    @property
    def name(self) -> str | None:
        """The name of the tool or prompt, or the URI that is read; for completions, those of the prompt or template.
        `None` for a list. A mounted server sees its own names, without the prefix."""
        return _name(self._pending, self._entry)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the tool or prompt, the variables of the template, or the argument to complete. Assign a new
        dict to replace them.

        Raises:
            InvalidArguments: Assigned arguments do not fit the tool.
            ValueError: Assigned arguments do not fit what is called.
        """
        if self._arguments is None:
            arguments = self._pending.arguments()
            if self.method == "completion/complete":
                argument = arguments["argument"]
                arguments = {argument["name"]: argument["value"]}
            self._arguments = MappingProxyType(arguments)
        return self._arguments

    @arguments.setter
    def arguments(self, arguments: Mapping[str, Any]) -> None:
        new = dict(arguments)
        if self.method != "tools/call":
            self._check(new)
        self._pending = self._pending.cleaned(new)
        self._arguments = None

    def _check(self, new: dict[str, Any]) -> None:
        if self.method not in ("prompts/get", "resources/read"):
            raise ValueError(f"{self.method}: its arguments cannot be replaced")
        known = self._entry.parameters if self._entry else self.arguments
        for name, value in new.items():
            if name not in known or not isinstance(value, str):
                raise ValueError(f"{self.method} of {self.name!r}: {name!r} is not one of {list(known)}, or not text")

    @property
    def context(self) -> _core.Context:
        """The context that the function gets."""
        return self._pending.context

    @property
    def principal(self) -> str | None:
        """The caller, as verified by the policy; `None` for an unauthenticated caller."""
        return self.context.principal

    def __repr__(self) -> str:
        return f"<Call {self.method} {self.name!r}>"


Next = Callable[[Call], Awaitable[Reply]]
Middleware = Callable[[Call, Next], Awaitable[Reply]]


def _name(pending: _core.Pending, entry: Entry | None) -> str | None:
    if entry is not None and entry.kind == "tool":
        return entry.name
    method = pending.method
    if method == "completion/complete":
        ref = pending.arguments()["ref"]
        named: str = ref.get("name") or ref["uri"]
        return named
    if method == "resources/read":
        return pending.local_uri
    if method in LISTS:
        return None
    return entry.name if entry is not None else pending.name
