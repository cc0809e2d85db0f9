"""The ways in which calls to the tools, resources and prompts of a server are answered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, NoneType
from typing import Any, NamedTuple

from ._handled import Handler

Key = tuple[str, "str | None"]
STRAIGHT = (str, int, float, bool)
"""The types of parameters whose values need no conversion."""


class Straight(NamedTuple):
    """A function whose arguments and value need no validator.

    Attributes:
        parameters: Name, type (`str`, `int`, `float` or `bool`), and whether it is required.
        wraps: The type of value that also becomes structured content.
        meta: The `_meta` of a result with such structured content, as JSON.
        finish: Makes the result of any other value, as JSON: `finish(value, revision)`.
        fail: Makes the result of an exception that the function raised, or raises.
    """

    function: Callable[..., Any]
    parameters: list[tuple[str, str, bool]]
    wraps: str | None
    meta: str | None
    finish: Callable[[Any, str], bytes]
    fail: Callable[[Exception], bytes]


class Native(NamedTuple):
    """A function that the engine calls with the arguments (a JSON object) or a URI, and the revision; it returns the
    result, a JSON object."""

    function: Callable[..., Any]
    lane: str
    straight: Straight | None = None


class Direct(NamedTuple):
    """A handler that answers requests without the kernel around it, but can use what the kernel provides."""

    handler: Handler


class Planned(NamedTuple):
    """A registered part of a server. `how` determines how the engine answers it, or why it does not. The outcome is
    reused only while `part` is the same object; with `None` it is determined anew after each change."""

    title: str
    method: str
    # `None` for any name, as for templates.
    name: str | None
    part: object | None
    how: Callable[[], Native | Direct | str]


def plain_parameters(function: Any) -> list[tuple[str, str, bool]] | None:
    """The parameters of a function that takes only strings, numbers and booleans by name: name, type, and whether it
    is required. `None` for any other function."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except Exception:
        return None
    made = []
    for one in parameters:
        by_name = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if not by_name or one.annotation not in STRAIGHT:
            return None
        if one.default is not one.empty and not isinstance(one.default, (str, int, float, bool, NoneType)):
            return None
        made.append((one.name, one.annotation.__name__, one.default is one.empty))
    return made


def names_in(function: Any) -> set[str]:
    """The names that the code of a function uses, with those of the functions within it."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    codes = [] if code is None else [code]
    names: set[str] = set()
    for one in codes:
        codes += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
        names.update(one.co_names, one.co_freevars)
    return names


def asks_its_thread(function: Any) -> bool:
    """Whether a plain function asks anyio about the call that its thread runs for: the call must have a task, then."""
    return bool(names_in(function) & {"from_thread", "check_cancelled"})
