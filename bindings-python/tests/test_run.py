"""`mcpbolt run`: servers as they stand in files and modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mcpbolt.mcp
from mcpbolt import Client
from support import Raw, client, coroutine

OWN = """
from mcpbolt import Server

server = Server("own")
other = Server("other")

@server.tool
def add(a: int, b: int) -> str:
    return str(a + b)

def make():
    return other

if __name__ == "__main__":
    raise SystemExit("it is not run itself")
"""
THEIRS = """
from mcp.server.mcpserver import MCPServer

calculator = MCPServer("calculator")

@calculator.tool()
def add(a: int, b: int) -> int:
    return a + b
"""
COMMAND = [sys.executable, "-m", "mcpbolt", "run"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "theirs.py").write_text(THEIRS)
    (tmp_path / "none.py").write_text("server = 1\n")
    return tmp_path


@pytest.mark.parametrize("target", ["own.py", "own.py:server", "own", "own:server"])
@coroutine
async def test_a_server_of_ours_runs_as_it_stands(target: str, folder: Path) -> None:
    async with client([*COMMAND, target], cwd=folder) as connected:
        assert (await connected.call_tool("add", {"a": 1, "b": 2})).text == "3"


@coroutine
async def test_a_function_may_make_it(folder: Path) -> None:
    async with client([*COMMAND, str(folder / "own.py:make")]) as connected:
        assert connected.server_info.name == "other"


@coroutine
async def test_it_is_served_over_http(folder: Path) -> None:
    command = [*COMMAND, "own.py", "--http", ":0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        address = process.stderr.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:") and address.endswith("/mcp")
        async with Client(address) as connected:
            assert (await connected.call_tool("add", {"a": 1, "b": 2})).text == "3"
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


@pytest.mark.skipif(not hasattr(mcpbolt.mcp, "run"), reason="mcpbolt.mcp has no run yet")
@pytest.mark.parametrize("more", [[], ["--plain"]])
def test_a_server_of_the_official_sdk_runs_as_it_stands(more: list[str], folder: Path) -> None:
    with Raw([*COMMAND, str(folder / "theirs.py"), *more]) as served:
        served.call(1, "add", a=1, b=2)
        result = served.receive()["result"]
        assert result["structuredContent"] == {"result": 3} and result["content"][0]["text"] == "3"
        assert served.end(20)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "there is no nowhere.py"),
        (["no_such_module"], "No module named"),
        (["none.py"], "has no server"),
        (["none.py:server"], "is not a server"),
        (["own.py:gone"], "has no gone"),
        (["own.py", "--at", "ftp://x"], "not an address"),
        (["own.py", "--http", ":99999"], "port"),
    ],
)
def test_what_cannot_be_run_says_why(arguments: list[str], said: str, folder: Path) -> None:
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_the_engines_own_commands_are_there(folder: Path) -> None:
    command = [sys.executable, "-m", "mcpbolt"]
    server = ["--", *COMMAND, str(folder / "own.py")]
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 60}
    shown = subprocess.run([*command, "--help"], **options)  # type: ignore[call-overload]
    assert all(f"\n  {name}" in shown.stdout for name in ("run", "dev", "exec", "inspect", "serve", "call")), shown
    called = subprocess.run([*command, "call", "add", '{"a": 2, "b": 40}', *server], **options)  # type: ignore[call-overload]
    assert (called.returncode, called.stdout) == (0, "42\n"), called
    wrong = subprocess.run([*command, "begin"], **options)  # type: ignore[call-overload]
    assert wrong.returncode == 2 and "begin" in wrong.stderr, wrong
