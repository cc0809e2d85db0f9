"""The types that users' checkers see."""

import subprocess
import sys
from pathlib import Path


def test_a_typed_program_passes_a_strict_checker() -> None:
    sample = Path(__file__).with_name("typed_sample.py")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(sample)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
