"""What docstrings say: of a function, and of its parameters."""

from __future__ import annotations

import re
from typing import Any

# A section of parameters, in the styles of Google, NumPy and Sphinx.
_SECTION = re.compile(
    r"^\s*(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*$"
    r"|^\s*(Other )?Parameters\s*\n\s*-{3,}\s*$"
    r"|^\s*:(param|parameter|arg|argument|key|keyword)\b[^:\n]*:",
    re.MULTILINE,
)


def description(function: Any) -> str | None:
    """The docstring without its indentation."""
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    first, *rest = text.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.strip(), *(line[margin:].rstrip() for line in rest)]).strip() or None


def of_parameters(function: Any) -> dict[str, str]:
    """The descriptions of the parameters, by name."""
    text = description(function)
    if not text or not _SECTION.search(text):
        return {}
    from docstring_parser import parse

    return {one.arg_name: one.description for one in parse(text).params if one.description}
