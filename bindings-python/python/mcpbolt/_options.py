"""Options that the engine reads as JSON objects."""

from __future__ import annotations

from typing import Any

from ._content import Wire, _Value


def options(**given: Any) -> Wire:
    """Makes the engine's JSON object of options. Options that are `None` are left out: the engine's defaults apply."""
    for name, value in given.items():
        if isinstance(value, float) and value - value != 0:
            raise ValueError(f"{name}: a time is a positive number of seconds, not {value}")
    return {_camel(name): _plain(value) for name, value in given.items() if value is not None}


class Options(_Value):
    """A group of options, one for each slot."""

    __slots__ = ()

    def wire(self) -> Wire:
        return options(**self._fields())


def _plain(value: Any) -> Any:
    return value.wire() if isinstance(value, Options) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
