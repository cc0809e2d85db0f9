"""Plain types: their JSON Schemas, equal to pydantic's, without importing it. `src/plain.rs` takes their values."""

from __future__ import annotations

import typing
from typing import Any

from ._hints import UNIONS, bare

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"items": {}, "type": "array"},
    dict: {"additionalProperties": True, "type": "object"},
}
_NULL = _PLAIN[None]
_SCALARS = [_PLAIN[kind] for kind in (str, int, float, bool)]


def schema_of(hint: Any) -> Schema | None:
    """The schema of a plain type; `None` for any other type."""
    origin = typing.get_origin(hint)
    if origin is None:
        try:
            schema = _PLAIN.get(hint)
        except TypeError:  # not hashable
            return None
        return None if schema is None else dict(schema)
    parts = [schema_of(one) for one in typing.get_args(hint)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if origin in UNIONS:
        members = [part for part in known if part != _NULL]
        # Which member of a union pydantic prefers is simple for these alone.
        is_simple = len(members) < 2 or all(part in _SCALARS for part in members)
        return {"anyOf": members + [_NULL] * (len(known) - len(members))} if is_simple else None
    if origin is list:
        return {"items": known[0] if known else {}, "type": "array"}
    if origin is dict and (not known or known[0] == {"type": "string"}):
        return {"additionalProperties": (known and known[1]) or True, "type": "object"}
    return None


def arguments(parameters: dict[str, Any], hints: dict[str, Any], missing: object) -> Schema | None:
    """The schema of the arguments of a function with these parameters (their defaults, by name); `None` unless all have
    plain types, and defaults of such types."""
    properties: dict[str, Schema] = {}
    for name, default in parameters.items():
        kind, notes = bare(hints.get(name, Any))
        schema = schema_of(kind)
        if schema is None or not all(type(note) in (str, dict) for note in notes):
            return None
        if default is not missing:
            if not _is_plain(default):
                return None
            schema["default"] = default
        properties[name] = schema
    required = [name for name, default in parameters.items() if default is missing]
    schema = {"additionalProperties": False, "properties": properties, "type": "object"}
    return {**schema, "required": required} if required else schema


def _is_plain(default: Any) -> bool:
    return type(default) in (str, int, bool, type(None)) or (type(default) is float and default - default == 0)
