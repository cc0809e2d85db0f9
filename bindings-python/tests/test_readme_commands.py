"""The commands of the README's section about existing servers, with a wheel of this package in place of a published one."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import mcpbolt

README = (Path(__file__).parents[1] / "README.md").read_text()
SECTION = README[README.index("## An existing server") : README.index("### In code")]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
LINES = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package that is tested, as an installer takes it."""
    version = mcpbolt.__version__
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    path = tmp_path_factory.mktemp("wheel") / f"mcpbolt-{version}-{tag}.whl"
    folder, about = Path(mcpbolt.__file__).parent, f"mcpbolt-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, f"mcpbolt/{file.relative_to(folder)}")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: mcpbolt\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{about}/entry_points.txt", "[console_scripts]\nmcpbolt = mcpbolt._run:main\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def commands() -> list[list[str]]:
    """The commands that start a server, of the shell and of a client's configuration."""
    (lines,) = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
    (settings,) = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)
    shell = [shlex.split(line, comments=True) for line in lines.splitlines()]
    configured = json.loads(settings)["mcpServers"]["git"]
    return [*(words for words in shell if words[0] == "uvx"), [configured["command"], *configured["args"]]]


def starts_a_server(command: list[str], folder: Path) -> None:
    env = {**os.environ, "MCPBOLT_REPORT": "1"}
    input = "".join(json.dumps(line) + "\n" for line in LINES)
    done = subprocess.run(command, cwd=folder, env=env, input=input, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0 and '"serverInfo"' in done.stdout, done.stderr
    assert "mcpbolt: stdio: the engine serves 'mcp-git'" in done.stderr, done.stderr


def test_the_commands_of_the_readme_start_a_server(wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    found = commands()
    assert len(found) == 2
    for words in found:
        assert words[:3] == ["uvx", "--with", "mcpbolt"]
        uvx = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable, "--with", str(wheel), *words[3:]]
        starts_a_server(uvx, tmp_path)


def test_the_commands_of_the_readme_for_pipx_start_a_server(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIPX_BIN_DIR", str(tmp_path / "bin"))
    (inject,) = [line.partition("#")[0].split() for line in SECTION.splitlines() if line.startswith("pipx inject ")]
    (start,) = [line for line in SECTION.splitlines() if line.startswith('"$(pipx environment')]
    pipx = [sys.executable, "-m", "pipx"]
    assert inject[-1] == "mcpbolt"
    for words in (["install", inject[2]], [*inject[1:-1], str(wheel)]):
        subprocess.run([*pipx, *words], check=True, capture_output=True, timeout=170)
    starts_a_server(["sh", "-c", start.replace("$(pipx ", f"$({shlex.join(pipx)} ")], tmp_path)
