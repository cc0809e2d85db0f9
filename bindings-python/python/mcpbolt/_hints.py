"""Type hints of functions, resolved, and what they say beside the type."""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Any

from . import _core
from ._steps import Steps

UNIONS = (typing.Union, types.UnionType)


def hints_of(owner: Any) -> dict[str, Any]:
    """The type hints of a function or a class, resolved in its module or, failing that, in the decorating function. `Context` and
    `Steps` need not be imported at run time.

    Raises:
        TypeError: A hint uses a name that is defined in neither.
    """
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError:
        pass
    own = {"Context": _core.Context, "Steps": Steps, "mcpbolt": sys.modules["mcpbolt"]}
    names = {**own, **getattr(owner, "__globals__", {}), **names_of_caller()}
    try:
        return typing.get_type_hints(owner, localns=names, include_extras=True)
    except NameError as error:
        name = getattr(owner, "__qualname__", repr(owner))
        raise TypeError(f"a hint of {name} cannot be resolved where it is decorated: {error}") from error


def names_of_caller() -> dict[str, Any]:
    """The local names of the innermost caller outside this package."""
    frame = sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "mcpbolt":
        frame = frame.f_back
    return dict(frame.f_locals)


def bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Splits `Annotated` into the type and its notes."""
    return (hint.__origin__, hint.__metadata__) if typing.get_origin(hint) is Annotated else (hint, ())


def names(hint: Any, kind: type) -> bool:
    """Whether a hint is that class, `Annotated` or not, or a union with it."""
    if hint is kind:
        return True
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return names(hint.__origin__, kind)
    return origin in UNIONS and any(names(one, kind) for one in typing.get_args(hint))
