"""Middleware: functions around calls, reads, prompts, completions and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._call import LISTS, Call, Middleware, Reply
from ._content import Message, ResourceContents, Text, ToolResult, parse, parse_contents
from ._entry import Entry
from ._lanes import Layer, Rest, Run
from ._layers import layered
from ._signature import Signature


def layer(entry: Entry, middleware: Middleware) -> Layer:
    """The layer of one middleware around an entry."""

    async def around(run: Run, pending: _core.Pending, rest: Rest) -> Any:
        value = given = None

        async def next(call: Call) -> Reply:
            nonlocal value, given
            value = await rest(run, call._pending)
            given = reply(entry, call._pending, value)
            return given

        returned = await middleware(Call._of(pending, entry), next)
        # The engine writes a text faster than the `ToolResult` that stands for it.
        return value if returned is given and type(value) is str and _stands_for(returned, entry, value) else returned

    return Layer(around, True)


def _stands_for(result: Any, entry: Entry, text: str) -> bool:
    """Whether a result is still as it was made of a text."""
    structured = None if entry.definition.get("outputSchema") is None else {"result": text}
    if type(result) is not ToolResult or type(result.content) is not list or len(result.content) != 1:
        return False
    block = result.content[0]
    return (
        type(block) is Text
        and block.text is text
        and block.annotations is None
        and block.meta is None
        and result.structured == structured
        and result.meta is None
        and not result.is_error
    )


def reply(entry: Entry, pending: _core.Pending, value: Any) -> Reply:
    """The reply that a function's return value stands for."""
    if entry.kind == "tool":
        return _tool_result(entry, pending, value)
    if entry.kind == "lists":
        return value
    if entry.kind == "completion":
        return [str(one) for one in value]
    wire = entry.lower(value, pending.uri or "")
    if entry.kind == "prompt":
        return [Message(parse(one["content"]), one["role"]) for one in wire["messages"]]
    return [parse_contents(one) for one in wire["contents"]]


def _tool_result(entry: Entry, pending: _core.Pending, value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if type(value) is str:
        # The most frequent value needs no conversion.
        schema = entry.definition.get("outputSchema")
        if schema is None:
            return ToolResult([Text(value)])
        if entry.wraps and schema["properties"]["result"] == {"type": "string"}:
            return ToolResult([Text(value)], {"result": value})
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
    page[LISTS[pending.method][0]] = [item if isinstance(item, dict) else item.wire for item in items]
    return page


async def _items(_run: Run, pending: _core.Pending) -> Any:
    from . import _results

    key, kind = LISTS[pending.method]
    return [getattr(_results, kind)(wire) for wire in pending.page()[key]]
