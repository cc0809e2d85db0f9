"""Servers that others have published on PyPI and that run without an account: how each is installed, started and called."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Published:
    """A published server.

    Attributes:
        package: Its name on PyPI, with the release that is tested.
        command: The console script and its arguments, in a folder that `prepare` fills.
        known: Values for parameters of these names, and for those of one tool (`tool.parameter`).
        without: Tools that are not called, each with the reason.
        with_: Further packages that it needs.
    """

    package: str
    command: list[str]
    prepare: Callable[[Path], object] = lambda folder: None
    known: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    with_: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.package.partition("==")[0]


AT = "2026-01-01T00:00:00+00:00"
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", AT))},
}


def repository(folder: Path) -> None:
    """Two commits, something staged, and something that is not."""
    (folder / "a.txt").write_text("one\n")
    run = lambda *words: subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **GIT})  # noqa: E731
    run("init", "-q", "-b", "main")
    for text in ("one\n", "one\ntwo\n"):
        (folder / "a.txt").write_text(text)
        run("add", "a.txt")
        run("commit", "-q", "-m", f"Writes {len(text)} bytes")
    (folder / "b.txt").write_text("staged\n")
    run("add", "b.txt")
    (folder / "a.txt").write_text("changed\n")


def texts(folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "a.csv").write_text("name,size\na,1\nb,2\n")
    (folder / "a.md").write_text("# A\n\nText.\n")


SERVERS = [
    Published(
        "mcp-server-git==2026.10.19",
        ["mcp-server-git", "--repository", "."],
        repository,
        {"repo_path": ".", "files": ["a.txt"], "message": "A message", "branch_name": "main", "target": "HEAD~1", "revision": "HEAD",
         "git_create_branch.branch_name": "new", "branch_type": "local"},
        GIT,
    ),
    Published(
        "mcp-server-time==2026.10.19",
        ["mcp-server-time", "--local-timezone", "Europe/Berlin"],
        known={"timezone": "Asia/Tokyo", "source_timezone": "Europe/Paris", "target_timezone": "America/New_York", "time": "12:30"},
    ),
    Published("mcp-server-fetch==2026.10.24", ["mcp-server-fetch", "--ignore-robots-txt"], known={"url": "http://127.0.0.1:9/a"}),
]

# Those that every run of the tests takes.
FEW = ["mcp-server-git", "mcp-server-time", "mcp-server-fetch", "excel-mcp-server", "markitdown-mcp"]
