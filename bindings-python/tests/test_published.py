"""Servers that others have published, by themselves and under `mcpbolt exec`: every answer is compared.

A run takes those in `FEW`; `MCPBOLT_PUBLISHED=all` takes all, `MCPBOLT_PUBLISHED=NAME,NAME` these. Each is installed into an
environment of its own, once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mcpbolt
from published.servers import FEW, SERVERS, Published
from published.talk import STATELESS, TERMINATIONS, Talk, conversation, ended_by, masked, shape
from support import ROOT

CACHE = ROOT / ".cache" / "python" / "published"
WISH = os.environ.get("MCPBOLT_PUBLISHED", "")
CHOSEN = [one for one in SERVERS if WISH == "all" or one.name in (WISH.split(",") if WISH else FEW)]
REVISIONS = ["2025-06-18", STATELESS]


def installed(server: Published) -> Path:
    """The `bin` folder of its environment, in which this package is too."""
    folder = CACHE / server.name
    packages = [server.package, *server.with_]
    stamp, want = folder / "stamp", hashlib.sha256(repr((sys.version, packages)).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != want:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *packages], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        stamp.write_text(want)
    # This package alone: beside it there may be others, which the server's environment must not have.
    alone = CACHE / "alone"
    alone.mkdir(exist_ok=True)
    (alone / "mcpbolt").unlink(missing_ok=True)
    (alone / "mcpbolt").symlink_to(Path(mcpbolt.__file__).parent)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "mcpbolt.pth").write_text(f"{alone}\n")
    return folder / "bin"


@pytest.fixture(params=CHOSEN, ids=lambda server: server.name)
def server(request: pytest.FixtureRequest) -> Published:
    found: Published = request.param
    return found


def commands(server: Published) -> dict[str, list[str]]:
    there = installed(server)
    script, *words = server.command
    # As the console script `mcpbolt` of that environment, which only an installer writes.
    through = [str(there / "python"), "-m", "mcpbolt", "exec", script, *words]
    return {"own": [str(there / script), *words], "exec": through}


def begun(server: Published, how: str, folder: Path, revision: str) -> Talk:
    """Starts it in a folder that is as it was before each other run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server.prepare(folder)
    environment = {"MCPBOLT_REPORT": "1", "PYTHONHASHSEED": "0", "HOME": str(folder), "FASTMCP_CHECK_FOR_UPDATES": "off", **server.environment}
    return Talk(commands(server)[how], folder, environment, revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_published_server_says_the_same(server: Published, revision: str, tmp_path: Path) -> None:
    said: dict[str, dict[str, Any]] = {}
    told = {}
    for how in ("own", "exec"):
        with begun(server, how, tmp_path / "here", revision) as talk:
            said[how] = {name: masked(answer) for name, answer in conversation(talk, server)}
            told[how] = talk.stderr()
    lines = [line for line in told["exec"].splitlines() if line.startswith("mcpbolt: ")]
    assert lines, told["exec"][-4000:]
    by_itself = "the program serves by itself" in lines[0]
    assert by_itself == bool(server.serves_itself) and (not by_itself or lines[0].endswith(server.serves_itself)), lines
    differences = {
        name: [answer, said["exec"].get(name)]
        for name, answer in said["own"].items()
        if not same(server, name, answer, said["exec"].get(name))
    }
    assert not differences, json.dumps(differences, indent=1)[:20000]
    assert said["own"].keys() == said["exec"].keys()


def same(server: Published, name: str, own: Any, ours: Any) -> bool:
    """Whether two answers are the same; of some tools, their shapes."""
    return bool(own == ours or name.split()[0] in server.varies and shape(own) == shape(ours))


@pytest.mark.parametrize("signum", TERMINATIONS)
def test_a_signal_ends_it_as_it_does_by_itself(server: Published, signum: int, tmp_path: Path) -> None:
    ends = {}
    for how in ("own", "exec"):
        with begun(server, how, tmp_path / "here", REVISIONS[0]) as talk:
            ends[how] = ended_by(signum, talk)
    assert ends["own"] == ends["exec"]
