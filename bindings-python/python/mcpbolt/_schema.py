"""Makes JSON Schemas from type hints, and converters from JSON values to the types of the hints."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from ._plain import is_model

Schema = dict[str, Any]
Convert = Callable[[Any], Any]
# A hint's schema, and a converter if the parsed JSON value does not have the hint's type.
Described = tuple[Schema, "Convert | None"]

_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
}
_ARRAYS = ("list", "Sequence", "Iterable", "Collection", "MutableSequence")
_SETS = {"set": set, "frozenset": frozenset, "Set": set, "MutableSet": set}
_OBJECTS = ("dict", "Mapping", "MutableMapping")
_FORMATS = {
    ("datetime", "datetime"): "date-time",
    ("datetime", "date"): "date",
    ("datetime", "time"): "time",
    ("uuid", "UUID"): "uuid",
}


def describe(hint: Any) -> Described:
    """Makes the schema and the converter of a type hint.

    Raises:
        TypeError: JSON cannot represent the type.
    """
    try:
        if hint in _PLAIN:
            return dict(_PLAIN[hint]), None
    except TypeError:  # not hashable
        pass
    if isinstance(hint, typing.TypeVar):
        return {}, None
    if isinstance(hint, typing.NewType):
        return describe(hint.__supertype__)
    origin = typing.get_origin(hint)
    if origin is not None:
        return _generic(hint, origin, typing.get_args(hint))
    if isinstance(hint, type):
        return _class(hint)
    raise TypeError(f"no JSON Schema for {hint!r}")


def _generic(hint: Any, origin: Any, args: tuple[Any, ...]) -> Described:
    if origin is typing.Annotated:
        return _annotated(hint, *args)
    if origin in (typing.Required, typing.NotRequired) if sys.version_info >= (3, 11) else False:
        return describe(args[0])
    if origin is typing.Literal:
        return {"enum": list(args)}, None
    if origin in (typing.Union, types.UnionType):
        return _union([describe(arg) for arg in args])
    name = origin.__name__
    if origin is tuple and not (len(args) == 2 and args[1] is ...):
        return _fixed_tuple([describe(arg) for arg in args])
    if name in _ARRAYS or name in _SETS or origin is tuple:
        item, convert = describe(args[0])
        make = _SETS.get(name, tuple if origin is tuple else list)
        schema: Schema = {"type": "array", "items": item}
        if name in _SETS:
            schema["uniqueItems"] = True
        if make is list and convert is None:
            return schema, None
        one: Convert = convert or _same
        return schema, lambda values: make(one(value) for value in values)
    if name in _OBJECTS:
        item, convert = describe(args[1])
        schema = {"type": "object"} | ({"additionalProperties": item} if item else {})
        if convert is None:
            return schema, None
        each = convert
        return schema, lambda values: {key: each(value) for key, value in values.items()}
    if is_model(origin):
        return _pydantic(hint)
    raise TypeError(f"no JSON Schema for {hint!r}")


def _same(value: Any) -> Any:
    return value


def _annotated(hint: Any, inner: Any, *notes: Any) -> Described:
    if any(type(note).__module__.partition(".")[0] in ("pydantic", "annotated_types") for note in notes):
        return _pydantic(hint)
    schema, convert = describe(inner)
    for note in notes:
        if isinstance(note, str):
            schema["description"] = note
        elif isinstance(note, dict):
            schema.update(note)
    return schema, convert


def _union(options: list[Described]) -> Described:
    schemas = [schema for schema, _ in options]
    types_ = [schema["type"] for schema in schemas if set(schema) == {"type"}]
    schema: Schema = {"type": types_} if len(types_) == len(schemas) else {"anyOf": schemas}
    converts = [convert for _, convert in options]
    if not any(converts):
        return schema, None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        for one in converts:
            try:
                return value if one is None and isinstance(value, (str, int, float)) else (one or _same)(value)
            except (TypeError, ValueError, KeyError, AttributeError):
                continue
        return value

    return schema, convert


def _fixed_tuple(items: list[Described]) -> Described:
    schema: Schema = {"type": "array", "minItems": len(items), "maxItems": len(items)}
    if items:
        schema["prefixItems"] = [item for item, _ in items]
    return schema, lambda values: tuple((one or _same)(value) for (_, one), value in zip(items, values))


def _class(hint: Any) -> Described:
    if is_model(hint):
        return _pydantic(hint)
    if typing.is_typeddict(hint):
        optional = hint.__optional_keys__
        return _members(hint, {name: name in optional for name in hints_of(hint)}, None)
    if hasattr(hint, "__dataclass_fields__"):
        if hasattr(hint, "__pydantic_validator__"):
            return _pydantic(hint)
        from dataclasses import MISSING, fields

        made = {
            field.name: field.default is not MISSING or field.default_factory is not MISSING
            for field in fields(hint)
            if field.init
        }
        return _members(hint, made, lambda values: hint(**values))
    if issubclass(hint, (str, int)) and not hasattr(hint, "__members__"):
        return dict(_PLAIN[str if issubclass(hint, str) else int]), hint
    if hasattr(hint, "__members__"):
        return {"enum": [member.value for member in hint]}, hint
    if hint is bytes:
        return {"type": "string", "contentEncoding": "base64"}, _decode_base64
    if name := _FORMATS.get((hint.__module__, hint.__name__)):
        return {"type": "string", "format": name}, getattr(hint, "fromisoformat", hint)
    if hasattr(hint, "__fspath__") or hint.__name__ == "Decimal":
        return {"type": "string"}, hint
    if hint in (set, frozenset):
        return {"type": "array", "uniqueItems": True}, hint
    raise TypeError(f"no JSON Schema for {hint!r}")


def _decode_base64(text: str) -> bytes:
    from binascii import a2b_base64

    return a2b_base64(text)


def hints_of(owner: Any) -> dict[str, Any]:
    """The type hints of a function or a class, resolved in its module or, failing that, in the decorating function.

    Raises:
        TypeError: A hint uses a name that is defined in neither.
    """
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError:
        pass
    try:
        return typing.get_type_hints(owner, localns=_names_of_the_caller(), include_extras=True)
    except NameError as error:
        name = getattr(owner, "__qualname__", repr(owner))
        raise TypeError(f"a hint of {name} cannot be resolved where it is decorated: {error}") from error


def _names_of_the_caller() -> dict[str, Any]:
    """The local names of the innermost caller outside this package."""
    frame = sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "mcpbolt":
        frame = frame.f_back
    return dict(frame.f_locals)


def _members(owner: Any, optional: dict[str, bool], make: Convert | None) -> Described:
    hints = hints_of(owner)
    described = {name: describe(hints[name]) for name in optional}
    schema: Schema = {"type": "object", "properties": {name: one for name, (one, _) in described.items()}}
    if required := [name for name, may_miss in optional.items() if not may_miss]:
        schema["required"] = required
    converts = {name: convert for name, (_, convert) in described.items() if convert}
    if not converts:
        return schema, make and (lambda values: make({name: values[name] for name in values if name in optional}))

    def convert(values: Any) -> Any:
        known = {
            name: converts[name](value) if name in converts else value
            for name, value in values.items()
            if name in optional or make is None
        }
        return make(known) if make else known

    return schema, convert


def _pydantic(hint: Any) -> Described:
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(hint)
    return adapter.json_schema(by_alias=True), adapter.validate_python


def output(hint: Any) -> str | None:
    """The schema of a function's return type, if it is a class with known members."""
    from json import dumps

    known = isinstance(hint, type) and (
        is_model(hint) or typing.is_typeddict(hint) or hasattr(hint, "__dataclass_fields__")
    )
    if not known:
        return None
    if is_model(hint):
        return dumps(hint.model_json_schema(by_alias=True, mode="serialization"))
    try:
        return dumps(describe(hint)[0])
    except TypeError:
        return None
