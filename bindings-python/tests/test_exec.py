"""`mcpbolt exec` and `mcpbolt.install`: programs of all kinds, whose servers the engine serves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import Raw

EXEC = [sys.executable, "-m", "mcpbolt", "exec"]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
LINES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
]
INPUT = "".join(json.dumps(line) + "\n" for line in LINES)

DECORATED = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("program", log_level="CRITICAL")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b
"""
FAST = DECORATED.replace("mcp.server.mcpserver import MCPServer", "fastmcp import FastMCP as MCPServer").replace(
    ', log_level="CRITICAL"', ""
)
LOWLEVEL = """
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def lists(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])

async def call(context, params):
    if params.arguments["a"] < 0:
        raise ValueError("below nothing")
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(params.arguments["a"] + params.arguments["b"]))])

server = Server("program", on_list_tools=lists, on_call_tool=call)

async def serve(**options):
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(), **options)
"""
# Programs by how they come to their server.
PROGRAMS = {
    "a guard": DECORATED + "if __name__ == '__main__':\n    server.run()\n",
    "no guard": DECORATED + "server.run()\n",
    "a subclass": "class Base:\n    pass\n" + DECORATED.replace(
        "server = MCPServer(", "class Own(MCPServer):\n    def run(self):\n        super().run(transport='stdio')\n\nserver = Own("
    ) + "server.run()\n",
    "a factory": "def make():\n" + "".join(f"    {line}\n" for line in DECORATED.splitlines()) + "    return server\n\nmake().run()\n",
    "a loop of its own": DECORATED + "import asyncio\nasyncio.run(server.run_stdio_async())\n",
    "uvloop": DECORATED + "import uvloop\nuvloop.run(server.run_stdio_async())\n",
    "fastmcp": FAST + "server.run()\n",
    "fastmcp, in a loop": FAST + "import asyncio\nasyncio.run(server.run_async(show_banner=False))\n",
    "fastmcp, a subclass": FAST.replace("server = MCPServer(", "class Own(MCPServer):\n    pass\n\nserver = Own(") + "server.run()\n",
    "a low-level server": LOWLEVEL + "import anyio\nanyio.run(serve)\n",
    "a low-level server that raises": LOWLEVEL + "import anyio, functools\nanyio.run(functools.partial(serve, raise_exceptions=True))\n",
}


def told(stderr: str) -> list[str]:
    """What this package says on stderr."""
    return [line.removeprefix("mcpbolt: ") for line in stderr.splitlines() if line.startswith("mcpbolt: ")]


def ran(
    command: list[str], folder: Path | None = None, input: str = INPUT, last: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program. Its stdin ends when it has answered the request `last`."""
    env = {**os.environ, "MCPBOLT_REPORT": "1", "FASTMCP_CHECK_FOR_UPDATES": "off", **environment}
    pipe, lines = subprocess.PIPE, []
    with subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin and process.stdout
        try:
            if last is not None:
                process.stdin.write(input)
                process.stdin.flush()
                while lines[-1:] != [""] and (not lines or json.loads(lines[-1]).get("id") != last):
                    lines.append(process.stdout.readline())
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, "".join(lines) + out, err)


def answers(done: subprocess.CompletedProcess[str]) -> dict[Any, Any]:
    return {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("how", PROGRAMS)
def test_the_engine_serves_whatever_the_program_looks_like(how: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[how])
    done = ran([*EXEC, "program.py"], tmp_path, last=2)
    assert done.returncode == 0, done.stderr
    assert told(done.stderr)[0].startswith("stdio: the engine serves 'program' (mcp "), done.stderr
    assert answers(done)[2]["result"]["content"][0]["text"] == "3"
    alone = ran([*EXEC, "program.py"], tmp_path, last=2, MCPBOLT="off")
    assert alone.returncode == 0 and not told(alone.stderr)


def test_a_report_tells_what_is_native_direct_and_kept(tmp_path: Path) -> None:
    more = """
from mcp.server.mcpserver import Context

@server.tool()
async def who(context: Context) -> str:
    return str(context.request_id)

@server.resource("memo://a")
def memo() -> str:
    return "memo"

async def another(context, params): ...

from mcp_types import ReadResourceRequestParams
server._lowlevel_server.add_request_handler("resources/read", ReadResourceRequestParams, another)
server.run()
"""
    (tmp_path / "program.py").write_text(DECORATED + more)
    said = told(ran([*EXEC, "program.py"], tmp_path, last=2).stderr)
    assert said[1:] == ["tool add: native", "tool who: direct", "resource memo://a: kept, the handler of resources/read is another"]
    (tmp_path / "program.py").write_text(LOWLEVEL + "import anyio\nanyio.run(serve)\n")
    assert "kept, the server has functions for whole methods" in told(ran([*EXEC, "program.py"], tmp_path, last=2).stderr)[1]


def test_install_in_the_first_line_does_the_same(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import mcpbolt; mcpbolt.install()\n" + PROGRAMS["a guard"])
    done = ran([sys.executable, "program.py"], tmp_path, last=2)
    assert told(done.stderr)[1:] == ["tool add: native"] and answers(done)[2]["result"]["structuredContent"] == {"result": 3}
    # Also after the packages are imported, and a second time.
    (tmp_path / "program.py").write_text(DECORATED + "import mcpbolt\nmcpbolt.install()\nmcpbolt.install()\nserver.run()\n")
    assert told(ran([sys.executable, "program.py"], tmp_path, last=2).stderr)[1:] == ["tool add: native"]


ARGUMENTS = "import sys\nprint(sys.argv[1:], __name__, sys.path[0], __file__)\nsys.exit(7)\n"


def test_a_program_sees_its_own_arguments_and_path(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name in ("__init__", "__main__", "other"):
        (package / f"{name}.py").write_text("" if name == "__init__" else ARGUMENTS)
    (tmp_path / "program.py").write_text(ARGUMENTS)
    words = ["--a", "b", "-h"]
    for target in (["program.py"], ["package/other.py"], ["-m", "package"], ["-m", "package.other"]):
        ours, alone = ran([*EXEC, *target, *words], tmp_path), ran([sys.executable, *target, *words], tmp_path)
        assert (ours.returncode, ours.stdout) == (7, alone.stdout), ours.stderr
        assert alone.stdout.startswith("['--a', 'b', '-h'] __main__ ")


def test_a_console_script_runs_by_its_name(tmp_path: Path) -> None:
    ours, alone = ran([*EXEC, "pytest", "--version"]), ran([str(Path(sys.executable).parent / "pytest"), "--version"])
    assert (ours.returncode, ours.stdout) == (0, alone.stdout) and ours.stdout


def test_what_is_no_program_says_why(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for words, reason in (
        (["no-such-program"], "there is no program no-such-program in this environment"),
        (["-m", "no_such_module"], "there is no module no_such_module in this environment"),
        (["-m", "no.such.module"], "there is no module no.such.module in this environment"),
        (["-m"], "-m needs the name of a module"),
        (["elsewhere"], "belongs to another environment"),
        (["/bin/sh"], "is not a program in Python"),
    ):
        done = ran([*EXEC, *words], PATH=path)
        assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert ran(EXEC).returncode == 2
    assert ran([*EXEC, "--help"]).stdout.startswith("usage: mcpbolt exec ")


def test_its_failures_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import no_such_package\n")
    done = ran([*EXEC, "program.py"], tmp_path)
    assert done.returncode == 1 and done.stderr.rstrip().endswith("No module named 'no_such_package'")


CUSTOM = """
import anyio
from mcp.server.stdio import stdio_server

async def main():
    async with stdio_server() as (read, write), read, write:
        async for item in read:
            await write.send(type(item)(type("Answer", (), {"model_dump_json": lambda self, **_: '{"id": 5}'})()))

anyio.run(main)
"""
TRIO = LOWLEVEL + "import trio\ntrio.run(serve)\n"


@pytest.mark.parametrize(
    ("program", "reason", "last"),
    [(CUSTOM, "the program reads the messages itself", 5), (TRIO, "the event loop is not asyncio's", 2)],
)
def test_what_the_engine_cannot_serve_serves_itself(program: str, reason: str, last: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    done = ran([*EXEC, "program.py"], tmp_path, last=last)
    assert done.returncode == 0, done.stderr
    (said,) = told(done.stderr)
    assert said.startswith("stdio: the program serves by itself (mcp ") and said.endswith(f": {reason}")
    assert last in answers(done)


def test_an_exception_ends_a_server_that_raises_them(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS["a low-level server that raises"])
    wrong = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": -1, "b": 2}}}
    done = ran([*EXEC, "program.py"], tmp_path, INPUT + json.dumps(wrong) + "\n", last=3)
    assert done.returncode == 1 and "ValueError: below nothing" in done.stderr and {*answers(done)} == {1, 2, 3}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_it_does_by_itself(signum: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS["a guard"])
    with Raw([*EXEC, str(tmp_path / "program.py")]) as served:
        served.process.send_signal(signum)
        assert served.process.wait(30) == -signum


def test_what_is_printed_stays_off_the_wire(tmp_path: Path) -> None:
    loud = DECORATED.replace("return a + b", "import os; print('in Python'); os.system('echo from a child'); return a + b")
    (tmp_path / "program.py").write_text(loud + "server.run()\n")
    done = ran([*EXEC, "program.py"], tmp_path, last=2)
    assert {*answers(done)} == {1, 2}
    assert "in Python" in done.stderr and "from a child" in done.stderr


def test_importing_the_package_and_installing_bring_no_sdk() -> None:
    code = "import sys, mcpbolt; mcpbolt.install(); print(*sys.modules)"
    names = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not {"mcp", "fastmcp", "pydantic", "typing", "asyncio"} & names


def test_the_collector_waits_while_a_large_package_is_imported(tmp_path: Path) -> None:
    """To go through the heap of an SDK takes a tenth of the time of its import, and all of it stays."""
    program = tmp_path / "program.py"
    program.write_text(
        "import gc\nbefore = gc.get_stats()[2]['collections']\nimport mcp\n"
        "print(gc.get_stats()[2]['collections'] - before, gc.get_freeze_count() > 10_000, gc.isenabled())\n"
    )
    assert ran([*EXEC, "program.py"], tmp_path).stdout.split() == ["0", "True", "True"]
    program.write_text("import gc\ngc.disable()\nimport mcp\nprint(gc.get_freeze_count(), gc.isenabled())\n")
    assert ran([*EXEC, "program.py"], tmp_path).stdout.split() == ["0", "False"]
