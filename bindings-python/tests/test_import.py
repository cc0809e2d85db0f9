"""What importing the package costs and offers."""

import subprocess
import sys

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


def test_every_name_that_is_promised_is_there() -> None:
    for name in mcpbolt.__all__:
        assert getattr(mcpbolt, name) is not None
