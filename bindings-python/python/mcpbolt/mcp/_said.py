"""Lines on stderr about a program that runs unchanged."""

from __future__ import annotations

import os
import sys
from typing import Any

from . import _gate

_told: set[str] = set()


def is_wanted() -> bool:
    """Whether the environment asks for a report."""
    return os.environ.get("MCPBOLT_REPORT", "").strip().lower() not in ("", "0", "off", "no", "false")


def line(text: str) -> None:
    # stdout may carry messages.
    print(f"mcpbolt: {text}", file=sys.stderr, flush=True)


def untouched(package: str) -> None:
    """Tells, once, that a release is unknown and the program therefore runs as it would by itself."""
    if package not in _told:
        _told.add(package)
        line(f"{_gate.unknown(package)}: the program runs as it would without mcpbolt")


def releases() -> str:
    """The installed packages that servers are made with."""
    found = []
    for package in _gate.RELEASES:
        # Packages that are installed but not used say nothing about this program.
        if package in sys.modules and (version := _gate.installed(package)) is not None:
            found.append(f"{package} {version}")
    return ", ".join(found)


def served(where: str, server: Any) -> None:
    """Tells that the engine serves, and how it answers each part of the server."""
    if not is_wanted():
        return
    line(f"{where}: the engine serves {server.name!r} ({releases()})")
    from ._accelerate import reported

    for text in reported(server):
        line(text)


def carried(where: str) -> None:
    """Tells that the engine carries the messages and the package's own sessions answer them."""
    if is_wanted():
        line(f"{where}: the engine carries the messages, the sessions of {releases()} answer them")


def kept(where: str, reason: str) -> None:
    """Tells that the program serves by itself."""
    if is_wanted():
        line(f"{where}: the program serves by itself ({releases()}): {reason}")
