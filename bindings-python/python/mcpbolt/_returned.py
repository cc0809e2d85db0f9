"""`Returned`: the output schema that a return hint gives, and the conversion of return values."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Annotated, Any

from . import _core, _lower, _plain
from ._content import BLOCKS, Message, ResourceContents, ToolResult, Wire
from ._errors import ProtocolError
from ._hints import UNIONS, bare, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import Adapter

# Values of these types are content for the model to read, not data.
_CONTENT = (*BLOCKS, ResourceContents, Message, ToolResult)
_BYTES = (bytes, bytearray, memoryview)


class Returned:
    """The return value of a function, as its hint describes it.

    Attributes:
        schema: The output schema, of an object.
        wraps: Whether the value is the member `result` of that object, since it is no object itself.
        is_plain: Whether it has a plain type, which needs pydantic only for values of other types.
    """

    def __init__(self, hint: Any, title: str, schema: Wire, adapter: Adapter | None, by_alias: bool | None) -> None:
        self._hint = hint
        self._title = title
        self._made = adapter
        self._by_alias = by_alias
        self.is_plain = adapter is None
        self.wraps = schema.get("type") != "object" or _has_other_keys(bare(hint)[0])
        self.schema = _wrapped(schema) if self.wraps else schema

    @classmethod
    def of(cls, hint: Any, title: str, by_alias: bool | None = True, is_required: bool = False) -> Returned | None:
        """`None` if the hint is for any value, for content, or for values that have no JSON Schema. The hint
        `Annotated[ToolResult, T]` is for a result whose structured content is a `T`.

        Raises:
            TypeError: It is for a whole result or for data, which then would have no schema; or it gives none, and one is
                required.
        """
        made = cls._of(hint, title, by_alias, is_required)
        if made is None and is_required:
            why = "return annotation required" if hint is None else f"return type {hint} is not serializable"
            raise TypeError(f"{title}: {why} for structured output")
        return made

    @classmethod
    def _of(cls, hint: Any, title: str, by_alias: bool | None, is_required: bool) -> Returned | None:
        kind, notes = bare(hint)
        if _hides_data(kind):
            why = "ToolResult cannot be used in Union or Optional types beside data, which would have no schema"
            raise TypeError(f"{title}: {why}; use Annotated[ToolResult, …], or pass output_schema=False")
        if kind is ToolResult and notes and _is_type(notes[0]):
            hint = Annotated[notes] if len(notes) > 1 else notes[0]
            kind, notes = bare(hint)
        if kind in (None, type(None)) or _is_open(kind):
            return None
        if not is_required and (_is_content(hint) or _is_bytes(kind)):
            return None
        plain = None if notes else _plain.schema_of(kind)
        if plain is not None:
            return cls(hint, title, plain, None, by_alias)
        from ._types import UNSUPPORTED, adapter_of, model_of, refuse_qualifiers, schema_of_results

        refuse_qualifiers(hint, title)
        for made in (lambda: hint, lambda: model_of(kind)):
            try:
                adapter = adapter_of(made())
                return cls(hint, title, schema_of_results(adapter, by_alias), adapter, by_alias)
            except UNSUPPORTED:
                pass
        return None

    def lower(self, value: Any) -> _lower.Lowered:
        """Converts a return value to content blocks, structured content, `_meta`, and whether the tool failed.

        Raises:
            ProtocolError: The value is not valid for the hint.
        """
        if isinstance(value, ToolResult):
            return _lower.tool(value)
        from pydantic import ValidationError

        from ._types import adapter_of, dumped, faults

        if self._made is None:
            self._made = adapter_of(self._hint)
        try:
            data = dumped(self._made, value, self._by_alias)
        except ValidationError as error:
            why = f"the result of {self._title} does not fit its output schema: {faults(error)}"
            raise ProtocolError("internal", why) from error
        if not self.wraps:
            return _lower.tool(value)[0], data, None, False
        blocks = _lower.tool(value)[0] if isinstance(value, (str, list, type(None))) else None
        content = [{"type": "text", "text": _core.to_json(data)}] if blocks is None else blocks
        return content, {"result": data}, None, False


def _wrapped(schema: Wire) -> Wire:
    definitions = schema.pop("$defs", None)
    wrapped: Wire = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return {**wrapped, "$defs": definitions} if definitions else wrapped


def _is_type(note: Any) -> bool:
    return isinstance(note, type) or typing.get_origin(note) is not None


def _is_content(hint: Any) -> bool:
    if isinstance(hint, type) and not typing.get_args(hint):
        return issubclass(hint, _CONTENT)
    return any(_is_content(one) for one in typing.get_args(hint))


def _has_other_keys(kind: Any) -> bool:
    """Whether it is a dict whose keys are no strings, so that they are data and no names of members."""
    keys = typing.get_args(kind)[:1] if typing.get_origin(kind) is dict else ()
    return any(isinstance(key, type) and not issubclass(key, str) for key in keys)


def _hides_data(kind: Any) -> bool:
    """Whether it is a union of a whole result and of data."""
    arms = typing.get_args(kind) if typing.get_origin(kind) in UNIONS else ()
    kinds = [bare(one)[0] for one in arms]
    is_data = [one is not type(None) and not (_is_content(one) or _is_bytes(one) or _is_open(one)) for one in kinds]
    return any(is_data) and any(isinstance(one, type) and issubclass(one, ToolResult) for one in kinds)


def _is_bytes(hint: Any) -> bool:
    return any(names(hint, kind) for kind in _BYTES)


def _is_open(kind: Any) -> bool:
    """Whether it is for any value, or for a list of any values; also as a member of a union, which then says as little."""
    if typing.get_origin(kind) in UNIONS:
        return any(_is_open(bare(one)[0]) for one in typing.get_args(kind))
    return kind in (Any, object) or _is_any_list(kind)


def _is_any_list(kind: Any) -> bool:
    """Whether it is a sequence that says nothing of its items, which may be content."""
    origin, args = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is tuple:
        return args in ((), (Any, ...))
    return origin in (list, Sequence) and all(one is Any for one in args)
