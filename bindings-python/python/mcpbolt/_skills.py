"""Reads skills, folders of instructions for models, that a server offers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from os import PathLike, fspath

MANIFEST = "SKILL.md"


class SkillFolder:
    """One skill, as the engine reads it: its manifest, the path that it is within, and its other files."""

    def __init__(self, folder: str, within: str) -> None:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8", newline="") as manifest:
            self.manifest = manifest.read()
        self.within = within
        self.files = [file for file in _files(folder) if file[0] != MANIFEST]


def skills(root: str | PathLike[str]) -> list[SkillFolder]:
    """Finds the skills in a folder: the folder itself, or all skills below it.

    Raises:
        ValueError: There is no skill in the folder or below it.
    """
    root = fspath(root)
    found = []
    for folder, below, names in os.walk(root):
        _leave_hidden(below)
        if MANIFEST in names and _is_plain(folder, MANIFEST):
            below.clear()
            within = os.path.relpath(os.path.dirname(folder), root) if folder != root else "."
            found.append(SkillFolder(folder, "" if within == "." else within.replace(os.sep, "/")))
    if not found:
        raise ValueError(f"there is no {MANIFEST} in {root!r} or below it")
    return found


def _leave_hidden(names: list[str]) -> None:
    names[:] = sorted(name for name in names if not name.startswith("."))


def _is_plain(folder: str, name: str) -> bool:
    """Whether it is a regular file: not a link, which may lead elsewhere, and not a pipe, which may never end."""
    path = os.path.join(folder, name)
    return os.path.isfile(path) and not os.path.islink(path)


def _files(root: str) -> Iterator[tuple[str, str, bytes]]:
    """The path, MIME type and bytes of each regular file that is not hidden. Linked folders are not
    entered."""
    from mimetypes import guess_type

    for folder, below, names in os.walk(root):
        _leave_hidden(below)
        _leave_hidden(names)
        for name in filter(partial(_is_plain, folder), names):
            path = os.path.join(folder, name)
            kind = "text/markdown" if name.endswith(".md") else guess_type(name)[0]
            with open(path, "rb") as file:
                yield os.path.relpath(path, root).replace(os.sep, "/"), kind or "application/octet-stream", file.read()
