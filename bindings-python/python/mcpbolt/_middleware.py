"""Middleware: functions around calls, reads, prompts, completions and lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import _core
from ._content import Message, ResourceContents, ToolResult, parse, parse_contents
from ._entry import Entry
from ._layers import Layer, Rest, Run, layered
from ._signature import Signature

if TYPE_CHECKING:
    from ._results import Prompt, Resource, ResourceTemplate, Tool

    Item = Tool | Resource | ResourceTemplate | Prompt

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
        return self._pending.method

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
    if pending.method == "completion/complete":
        ref = pending.arguments()["ref"]
        named: str = ref.get("name") or ref["uri"]
        return named
    if pending.method == "resources/read":
        return pending.local_uri
    if pending.method in _KINDS:
        return None
    return entry.name if entry is not None else pending.name


def layer(entry: Entry, middleware: Middleware) -> Layer:
    """The layer of one middleware around an entry."""

    async def around(run: Run, pending: _core.Pending, rest: Rest) -> Any:
        async def next(call: Call) -> Reply:
            return reply(entry, call._pending, await rest(run, call._pending))

        return await middleware(Call._of(pending, entry), next)

    return Layer(around, True)


def reply(entry: Entry, pending: _core.Pending, value: Any) -> Reply:
    """The reply that a function's return value stands for."""
    if entry.kind == "tool":
        return _tool_result(pending, value)
    if entry.kind == "lists":
        return value
    if entry.kind == "completion":
        return [str(one) for one in value]
    wire = entry.lower(value, pending.uri or "")
    if entry.kind == "prompt":
        return [Message(parse(one["content"]), one["role"]) for one in wire["messages"]]
    return [parse_contents(one) for one in wire["contents"]]


def _tool_result(pending: _core.Pending, value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    content, structured, meta, is_error = pending.parts(value)
    blocks = None if content is None else [parse(one) for one in content]
    return ToolResult(blocks, structured, is_error, meta=meta)


def lists(middleware: Sequence[Middleware]) -> Entry:
    """The entry for all lists of a server, with its middleware around them."""
    entry = Entry("lists", Signature(_lists), name="lists")
    entry.wrapped = _items
    entry.lower = _page
    return layered(entry, [Layer(_paged, False), *(layer(entry, one) for one in middleware)])


def _lists() -> None:
    """Stands for a function; the engine has the lists."""


def _page(page: Any, _uri: str) -> Any:
    return page


async def _paged(run: Run, pending: _core.Pending, rest: Rest) -> Any:
    """Puts the items that the middleware returned into the page of the list."""
    items = await rest(run, pending)
    page = pending.page()
    page[_KINDS[pending.method][0]] = [item if isinstance(item, dict) else item.wire for item in items]
    return page


async def _items(_run: Run, pending: _core.Pending) -> Any:
    from . import _results

    key, kind = _KINDS[pending.method]
    return [getattr(_results, kind)(wire) for wire in pending.page()[key]]


_KINDS = {
    "tools/list": ("tools", "Tool"),
    "resources/list": ("resources", "Resource"),
    "resources/templates/list": ("resourceTemplates", "ResourceTemplate"),
    "prompts/list": ("prompts", "Prompt"),
}
