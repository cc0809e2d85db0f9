"""Descriptions of functions and their parameters, read from docstrings."""

from __future__ import annotations

from typing import Any

# How a section of parameters begins, in the styles of Google, NumPy and Sphinx.
_TITLES = ("args:", "arguments:", "keyword args:", "keyword arguments:", "params:", "parameters:", "parameters", "other parameters")
_FIELDS = (":param", ":arg", ":key")


def description(function: Any) -> str | None:
    """The docstring without its indentation."""
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    first, *rest = text.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip() or None


def without_parameters(text: str) -> str | None:
    """A docstring without its sections of parameters."""
    lines, kept, style, before = text.splitlines(), [], "", ""
    for line, following in zip(lines, [*lines[1:], ""]):
        is_underlined = following.startswith("---")
        if line.startswith((*_FIELDS, ":type")):
            style = "sphinx"
        elif line.lower() in _TITLES:
            style = "numpy" if is_underlined else "google"
        elif _ends(style, before, line, following):
            style = ""
        before = line
        if not style:
            kept.append(line)
    return "\n".join(kept).strip() or None


def _ends(style: str, before: str, line: str, following: str) -> bool:
    """Whether a section of parameters ends before a line."""
    if not line.strip() or line[0].isspace():
        return False
    if style != "numpy":
        return True
    is_entry = " : " in line or following[:1].isspace()
    return following.startswith("---") or not (before.strip() or is_entry)


def of_parameters(function: Any) -> dict[str, str]:
    """The descriptions of the parameters, by name."""
    text = description(function)
    lines = [line.strip().lower() for line in (text or "").splitlines()]
    if not text or not any(line in _TITLES or line.startswith(_FIELDS) for line in lines):
        return {}
    from docstring_parser import ParseError, parse

    try:
        return {one.arg_name: one.description for one in parse(text).params if one.description}
    except ParseError:
        return {}
