"""The types that users' checkers see."""

import json
import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).with_name("typed_sample.py")


def test_a_typed_program_passes_a_strict_checker() -> None:
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(SAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_program_passes_another() -> None:
    """Pyright, in the build that brings its own node; the program itself asks for strictness."""
    pyright = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error"]
    command = [*pyright, "--pythonpath", sys.executable, str(SAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip(), done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1 and report["generalDiagnostics"] == [], done.stdout
