"""How the parts of a server are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ._handled import Handler

Key = tuple[str, "str | None"]


class Straight(NamedTuple):
    """A function whose arguments and value need no validator.

    Attributes:
        parameters: Name, kind (`str`, `int`, `float` or `bool`), and whether it is needed.
        wraps: The kind of value that is structured content, too.
        meta: The `_meta` of such a result, JSON.
        finish: Makes a result of any other value: `finish(value, revision)`, JSON.
        fail: Makes one of what it raised, or raises.
    """

    function: Callable[..., Any]
    parameters: list[tuple[str, str, bool]]
    wraps: str | None
    meta: str | None
    finish: Callable[[Any, str], bytes]
    fail: Callable[[Exception], bytes]


class Native(NamedTuple):
    """A function that takes arguments, a JSON object, or a URI, and the revision, and gives a result, an object."""

    function: Callable[..., Any]
    lane: str
    straight: Straight | None = None


class Direct(NamedTuple):
    """What answers requests with what the kernel provides, without the kernel around it."""

    handler: Handler


class Planned(NamedTuple):
    """Something that is registered, and what finds out how the engine answers it, or why it does not: anew each time,
    unless it depends on nothing but the part itself."""

    title: str
    method: str
    # `None` for any name, as templates have it.
    name: str | None
    part: object | None
    how: Callable[[], Native | Direct | str]
