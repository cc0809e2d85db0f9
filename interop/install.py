"""Installs the software of others that the interop tests run, into `.cache/interop` at the
repository's root: done once, again when a pinned version changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "interop"
PYTHON = CACHE / "python" / "bin" / "python"
NODE_MODULES = CACHE / "node" / "node_modules"
RMCP = CACHE / "rmcp-target" / "debug"


def _run(command: list[object], **options) -> None:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout.decode(errors='replace')}")


def _once(name: str, inputs: list[Path], make: Callable[[Path], None]) -> None:
    """Makes `.cache/interop/NAME` unless it was made from the same inputs."""
    stamp = CACHE / f"{name}.stamp"
    want = hashlib.sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()
    if stamp.exists() and stamp.read_text() == want:
        return
    print(f"  installing {name} …", file=sys.stderr, flush=True)
    shutil.rmtree(CACHE / name, ignore_errors=True)
    (CACHE / name).mkdir(parents=True)
    make(CACHE / name)
    stamp.write_text(want)


def _python(into: Path) -> None:
    if sys.version_info < (3, 11):
        sys.exit("the official SDKs, and so these tests, need Python 3.11 or newer: name one with PYTHON=…")
    _run([sys.executable, "-m", "venv", into])
    pip = [into / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "-r", HERE / "requirements.txt"])


def _node(into: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, into)
    _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=into)


def _rmcp() -> None:
    if not RMCP.exists():
        print("  building the rmcp client and server …", file=sys.stderr, flush=True)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(RMCP.parent)}
    _run(["cargo", "build", "--quiet", "--locked", "--manifest-path", HERE / "rmcp" / "Cargo.toml"], env=environment)


def install() -> None:
    with ThreadPoolExecutor() as pool:
        made = [
            pool.submit(_rmcp),
            pool.submit(_once, "python", [HERE / "requirements.txt"], _python),
            pool.submit(_once, "node", [HERE / "package.json", HERE / "package-lock.json"], _node),
        ]
    for one in made:
        one.result()
    link = HERE / "node_modules"  # where node looks for what the scripts here import
    if link.is_symlink() or not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(NODE_MODULES, HERE))


if __name__ == "__main__":
    install()
