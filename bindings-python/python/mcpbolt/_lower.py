"""Converts the return values of handlers to results: the engine calls this for all values but text and dicts."""

from __future__ import annotations

from typing import Any

from ._core import to_json
from ._content import Message, ResourceContents, ToolResult, Wire, block, is_content

Lowered = tuple[list[Wire] | None, object, "Wire | None", bool]


def tool(value: Any) -> Lowered:
    """Converts a tool's value to content blocks, structured content, `_meta`, and whether the tool failed."""
    if value is None:
        return [], None, None, False
    if isinstance(value, ToolResult):
        content = None if value.content is None else _blocks(value.content)
        return content, value.structured, value.meta, value.is_error
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, str) for item in value) or any(is_content(item) for item in value):
            return _blocks(value), None, None, False
    elif (one := block(value)) is not None:
        return [one], None, None, False
    return None, value, None, False


def structured(value: Any) -> Lowered:
    """Like `tool`, for a tool with an output schema: its value is always structured content."""
    return tool(value) if value is None or isinstance(value, ToolResult) else (None, value, None, False)


def _blocks(value: Any) -> list[Wire]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [block(item) or {"type": "text", "text": _text(item)} for item in items]


def _text(item: Any) -> str:
    try:
        return to_json(item)
    except TypeError:
        from ._jsonable import text

        return text(item)


MAX_VALUES = 100  # of one answer to a completion


def completions(value: Any, _uri: str) -> Wire:
    """Converts the values of a completion; `hasMore` says whether some were cut off."""
    values = [str(one) for one in value]
    shown = values[:MAX_VALUES]
    return {"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}}


def contents(mime_type: str | None) -> Any:
    """Makes the function that converts the values of a resource of that MIME type."""

    def lower(value: Any, uri: str) -> Wire:
        items = value if isinstance(value, list) and value and isinstance(value[0], ResourceContents) else [value]
        return {"contents": [_contents(item, uri, mime_type) for item in items]}

    return lower


def _contents(value: Any, uri: str, mime_type: str | None) -> Wire:
    if isinstance(value, ResourceContents):
        return value.wire()
    if isinstance(value, str):
        return ResourceContents(uri, value, mime_type).wire()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ResourceContents(uri, bytes(value), mime_type or "application/octet-stream").wire()
    return ResourceContents(uri, to_json(value), mime_type or "application/json").wire()


def messages(description: str | None) -> Any:
    """Makes the function that converts the values of a prompt with that description."""

    def lower(value: Any, _uri: str) -> Wire:
        items = value if isinstance(value, (list, tuple)) else [value]
        wire: Wire = {"messages": [_message(item).wire() for item in items]}
        if description is not None:
            wire["description"] = description
        return wire

    return lower


def _message(value: Any) -> Message:
    return value if isinstance(value, Message) else Message(value)
