"""Converts objects to JSON-serializable values: the engine calls this for types that it does not handle itself."""

from __future__ import annotations

import sys
from typing import Any


def plain(value: Any) -> Any:
    """Converts `value` by one level to a dict, list, string or number; its members may need the same.

    Raises:
        TypeError: The type is not JSON serializable.
    """
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__}
    if is_model(kind):
        return value.model_dump(mode="json", by_alias=True)
    if "enum" in sys.modules and isinstance(value, sys.modules["enum"].Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
        return {key: value[key] for key in value.keys()}
    if hasattr(value, "__fspath__") or kind.__name__ in ("UUID", "Decimal"):
        return str(value)
    raise TypeError(f"{kind.__qualname__} is not JSON serializable")


def is_model(kind: Any) -> bool:
    """Whether a class is a pydantic model, without importing pydantic."""
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_dump")


def base64(data: bytes | bytearray | memoryview) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")
