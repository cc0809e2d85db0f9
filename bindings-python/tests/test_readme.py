"""The programs of the README and of the feature page run as they are printed there, and print what is said beside them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1]


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (FOLDER / page).read_text(), re.DOTALL | re.MULTILINE)


def promised(program: str) -> list[str]:
    """The output that the comments beside its `print`s promise; ` | ` separates lines."""
    said = re.findall(r"print\(.*\)  # (.*)$", program, re.MULTILINE)
    return [line for one in said for line in one.split(" | ")]


def run(program: str, folder: Path) -> str:
    # As from a shell in which the environment is active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "MCPBOLT_TRACE")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={**kept, "PATH": path}, input="", capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


README = programs("README.md")
FEATURES = programs("FEATURES.md")


def test_there_are_programs() -> None:
    sections = len(re.findall(r"^## ", (FOLDER / "FEATURES.md").read_text(), re.MULTILINE))
    assert (len(README), len(FEATURES)) == (7, sections)


@pytest.mark.parametrize("program", README)
def test_a_program_of_the_readme(program: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(README[0])
    said = run(program, tmp_path)
    assert said.splitlines() == promised(program)


@pytest.mark.parametrize("program", FEATURES, ids=lambda program: (re.findall(r'Server\(\s*"(\w+)"', program) or ["engine"])[0])
def test_a_program_of_the_feature_page(program: str, tmp_path: Path) -> None:
    assert promised(program)
    assert run(program, tmp_path).splitlines() == promised(program)
