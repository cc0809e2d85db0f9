"""Converts objects to JSON-serializable values as pydantic does. The engine calls this for types it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._content import BLOCKS, ResourceContents


def jsonable(value: Any) -> Any:
    """Converts a value, with all its members.

    Raises:
        TypeError: The type of the value, or of a member, is not JSON serializable.
    """
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, by_alias=True, fallback=_other)
    except PydanticSerializationError as error:
        raise TypeError(str(error)) from error


def text(value: Any) -> str:
    """A value as JSON text in which `str` stands for what is not JSON serializable."""
    from pydantic_core import to_json

    return to_json(value, by_alias=True, fallback=_or_text, inf_nan_mode="null").decode()


def _or_text(value: Any) -> Any:
    try:
        return _other(value)
    except TypeError:
        return str(value)


def _other(value: Any) -> Any:
    if isinstance(value, (*BLOCKS, ResourceContents)):
        return value.wire()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, memoryview):
        return bytes(value)
    raise TypeError(f"{type(value).__qualname__} is not JSON serializable")
