"""The cost of importing the package, and its names."""

import subprocess
import sys

import pytest

import mcpbolt

COUNT = "import sys; before = set(sys.modules); import mcpbolt; print(*(set(sys.modules) - before))"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_brings_three_modules_at_most() -> None:
    brought = run(COUNT).split()
    assert len(brought) <= 3, brought
    assert "mcpbolt._core" in brought


def test_a_server_needs_neither_asyncio_nor_pydantic_nor_inspect() -> None:
    code = "import sys, mcpbolt; s = mcpbolt.Server('a'); s.tool(name='t')(lambda: 1); s._catalog(); print(*sys.modules)"
    assert not {"asyncio", "pydantic", "inspect"} & set(run(code).split())


PLAIN = """
import sys
from typing import Annotated, Any, Optional
from mcpbolt import Context, Server, _core

server = Server("plain")

@server.tool
def plain(a: int, b: list[str], c: Annotated[dict[str, float], "Numbers"], context: Context, d: Optional[bool] = None) -> list[int]:
    "Does it."
    return [a]

@server.prompt
def prompt(text: str) -> str:
    return text

@server.resource("memo://{name}")
def memo(name: str) -> str:
    return name

server._catalog()
print(*sys.modules)
"""


def test_plain_signatures_need_no_pydantic() -> None:
    assert not {"asyncio", "pydantic", "inspect", "docstring_parser"} & set(run(PLAIN).split())


def test_every_name_that_is_promised_is_there() -> None:
    for name in mcpbolt.__all__:
        assert getattr(mcpbolt, name) is not None


def test_the_engine_by_itself_brings_little_more() -> None:
    brought = set(run(COUNT.replace("import mcpbolt;", "import mcpbolt.engine;")).split())
    assert brought <= {"mcpbolt", "mcpbolt._core", "mcpbolt.engine", "mcpbolt._errors", "__future__"}, brought


PROMISED_MILLISECONDS = 15
PROMISED_KIB = 10 << 10
TIMED = """
import time
begun = time.process_time()
{}
print((time.process_time() - begun) * 1e3)
with open('/proc/self/statm') as statm:
    print(int(statm.read().split()[1]) * 4)
"""


def cost(code: str) -> tuple[float, int]:
    """Milliseconds of CPU and KiB resident, the least of several."""
    runs = [run(TIMED.format(code)).split() for _ in range(5)]
    return min(float(time) for time, _ in runs), min(int(memory) for _, memory in runs)


@pytest.mark.parametrize("code", ["import mcpbolt", "from mcpbolt import Server", "import mcpbolt.engine"])
def test_importing_costs_little_time_and_memory(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    bare, brought = cost("pass"), cost(code)
    milliseconds, kib = brought[0] - bare[0], brought[1] - bare[1]
    with capsys.disabled():
        print(f"\n{code}: {milliseconds:.1f} ms, {kib / 1024:.1f} MiB over the bare interpreter")
    # Nothing here decides by time but what is ten times too slow; builds with debug information are larger.
    assert milliseconds < 10 * PROMISED_MILLISECONDS
    assert kib < 2 * PROMISED_KIB
