"""The types that users' checkers see."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from test_readme import FOLDER, PAGES, programs

SAMPLE = Path(__file__).with_name("typed_sample.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, the examples, and the programs of every page, each of which asks for strictness."""
    folder = tmp_path_factory.mktemp("programs")
    texts = {f"{Path(page).stem.lower()}_{n}": program for page in PAGES for n, program in enumerate(programs(page))}
    texts |= {path.stem: path.read_text() for path in [SAMPLE, *(FOLDER / "examples").glob("*.py")]}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(f"# pyright: strict\n{text}")
    return folder


def test_every_program_passes_a_strict_checker(folder: Path) -> None:
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(FOLDER / ".mypy_cache"), "."]
    done = subprocess.run(mypy, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_program_passes_another(folder: Path) -> None:
    """Pyright, in the build that brings its own node."""
    pyright = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error"]
    done = subprocess.run([*pyright, "--pythonpath", sys.executable, "."], cwd=folder, capture_output=True, text=True)
    assert done.stdout.strip(), done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), done.stdout
    assert report["generalDiagnostics"] == [], done.stdout
