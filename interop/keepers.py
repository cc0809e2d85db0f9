"""The processes that forked.py forks, as long as the sessions last."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import install

FORKED = str(install.HERE / "forked.py")


def command(script: Path) -> list[object]:
    """Starts the script as a fork, while it is kept."""
    # A short path: those of sockets have about a hundred bytes.
    path = Path(tempfile.gettempdir()) / f"mcpbolt-interop-{os.getpid()}-{script.stem}"
    return [install.PYTHON, "-S", FORKED, path, script]


@contextmanager
def kept(commands: Iterable[list[str]]) -> Iterator[None]:
    """Keeps a process for each script that one of the commands starts as a fork."""
    scripts = {tuple(words[-2:]) for words in commands if FORKED in words}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    keepers = [subprocess.Popen([install.PYTHON, FORKED, "keep", *words], **pipes) for words in scripts]
    try:
        if not all([keeper.stdout.readline() for keeper in keepers]):
            raise SystemExit("a client or a server could not be imported")
        yield
    finally:
        for keeper in keepers:
            keeper.communicate()  # ends its input, and so itself
        for path, _ in scripts:
            Path(path).unlink(missing_ok=True)
