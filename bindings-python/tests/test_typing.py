"""The types that users' checkers see."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).with_name("typed_sample.py")


def test_a_typed_program_passes_a_strict_checker() -> None:
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(SAMPLE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_program_passes_another() -> None:
    if importlib.util.find_spec("pyright") is None or shutil.which("node") is None:
        pytest.skip("pyright and node are not both there")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(SAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright did not start: {done.stderr[-200:]}")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1 and report["generalDiagnostics"] == [], done.stdout
