"""The package beside an unknown release of the SDK: run in an environment that has one."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

from mcpbolt.mcp import accelerate, report
from mcpbolt.mcp._gate import listed, unknown
from support import client, coroutine

FILE = Path(__file__).parent / "existing" / "highlevel.py"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(FILE.parent)!r})
import highlevel
from mcpbolt.mcp import accelerate, run

run(accelerate(highlevel.server), *sys.argv[1:])
"""


def test_this_release_is_not_known() -> None:
    reason = unknown("mcp")
    assert reason is not None and listed("mcp") in reason


def test_accelerating_refuses_with_one_clear_warning() -> None:
    from mcp.server.mcpserver import MCPServer

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        servers = [accelerate(MCPServer(name)) for name in ("one", "another")]
    (warning,) = told
    assert "is not known to this mcpbolt" in str(warning.message)
    assert "the server runs as it would without mcpbolt" in str(warning.message)
    assert Path(warning.filename) == Path(__file__)
    assert [str(report(server)) for server in servers] == ["server: kept, it is not accelerated"] * 2


@coroutine
async def test_a_server_is_served_as_it_would_be_without() -> None:
    lines: list[str] = []
    server = [sys.executable, "-c", PROGRAM]
    async with client(server, revision="2025-11-25", on_stderr=lines.append) as connected:
        assert (await connected.call_tool("add", {"a": 1})).structured == {"result": 3}
        assert (await connected.call_tool("progress", {"n": 2}, on_progress=lambda *_: None)).text
        assert (await connected.call_tool("echo", {"text": "a"})).text == "a"
    assert sum("is not known to this mcpbolt" in line for line in lines) == 1, lines


def test_the_command_says_so_too() -> None:
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}\n'
    )
    command = [sys.executable, "-m", "mcpbolt", "run", f"{FILE}:server"]
    done = subprocess.run(command, input=hello, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and '"serverInfo"' in done.stdout
    assert done.stderr.count("is not known to this mcpbolt") == 1, done.stderr


def test_a_program_that_is_run_unchanged_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"import sys; sys.path.insert(0, {str(FILE.parent)!r})\nimport highlevel\nhighlevel.server.run()\n")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    command = [sys.executable, "-m", "mcpbolt", "exec", str(tmp_path / "program.py")]
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and '"serverInfo"' in done.stdout
    (said,) = [one for one in done.stderr.splitlines() if one.startswith("mcpbolt: ")]
    assert said.endswith("the program runs as it would without mcpbolt")
