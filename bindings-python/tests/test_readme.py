"""The programs of the README, of the feature page and of the guides run as they are printed there, and print what is said beside
them. The servers of the guides answer as is said below them, those of this package and those of the other one."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import fastmcp
import mcp
import mcp_types
import pytest

import mcpbolt

FOLDER = Path(__file__).resolve().parents[1]
GUIDES = ("COMING_FROM_FASTMCP.md", "COMING_FROM_SDK.md")
PAGES = ("README.md", "FEATURES.md", *GUIDES)


def programs_of(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def programs(page: str) -> list[str]:
    return programs_of((FOLDER / page).read_text())


def promised(program: str) -> list[str]:
    """The output that the comments beside its `print`s promise; ` | ` separates lines."""
    said = re.findall(r"print\(.*\)  # (.*)$", program, re.MULTILINE)
    return [line for one in said for line in one.split(" | ")]


def run(program: str, folder: Path) -> str:
    # As from a shell in which the environment is active.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "MCPBOLT_TRACE")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={**kept, "PATH": path}, input="", capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


README = programs("README.md")
FEATURES = programs("FEATURES.md")


def test_there_are_programs() -> None:
    sections = len(re.findall(r"^## ", (FOLDER / "FEATURES.md").read_text(), re.MULTILINE))
    assert (len(README), len(FEATURES)) == (7, sections)


@pytest.mark.parametrize("program", README)
def test_a_program_of_the_readme(program: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(README[0])
    said = run(program, tmp_path)
    assert said.splitlines() == promised(program)


@pytest.mark.parametrize("program", FEATURES, ids=lambda program: (re.findall(r'Server\(\s*"(\w+)"', program) or ["engine"])[0])
def test_a_program_of_the_feature_page(program: str, tmp_path: Path) -> None:
    assert promised(program)
    assert run(program, tmp_path).splitlines() == promised(program)


def sections(page: str) -> list[str]:
    """The sections of a guide that have programs, each a program of the other package and one of this."""
    return [one for one in re.split(r"^## ", (FOLDER / page).read_text(), flags=re.MULTILINE) if "```python" in one]


# The user's answer to each form.
ANSWER = {"guests": 2}


async def answer_fastmcp(*_: object) -> dict[str, int]:
    return ANSWER


async def answer_sdk(*_: object) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={**ANSWER})


def client_of(module: ModuleType) -> Any:
    """A client of the server's own package."""
    if hasattr(module, "server"):
        return mcpbolt.Client(module.server, on_elicitation=lambda _: ANSWER)
    if isinstance(module.mcp, fastmcp.FastMCP):
        return fastmcp.Client(module.mcp, elicitation_handler=answer_fastmcp, mode="legacy")
    return mcp.Client(module.mcp, elicitation_callback=answer_sdk, mode="legacy")


async def answers(module: ModuleType, calls: list[str]) -> list[str]:
    """What a server answers: a call such as `add(a=1)` is of a tool or, failing that, of a prompt; anything else is a URI."""
    said = []
    async with client_of(module) as client:
        names: list[str] = []
        with suppress(mcpbolt.Unsupported):
            tools = await client.list_tools()
            names = [tool.name for tool in getattr(tools, "tools", tools)]
        for call in calls:
            if "(" not in call:
                read = await client.read_resource(call)
                said.append(getattr(read, "contents", read)[0].text)
                continue
            called: Any = ast.parse(call, mode="eval").body
            name, arguments = called.func.id, {one.arg: ast.literal_eval(one.value) for one in called.keywords}
            if name not in names:
                said.append((await client.get_prompt(name, arguments)).messages[0].content.text)
                continue
            options = {"raise_on_error": False} if isinstance(client, fastmcp.Client) else {}
            try:
                said.append((await client.call_tool(name, arguments, **options)).content[0].text)
            except (mcp.MCPError, mcpbolt.PeerError) as error:
                said.append(error.message)
    return said


SECTIONS = [(page, text) for page in GUIDES for text in sections(page)]


@pytest.mark.parametrize(("page", "section"), SECTIONS, ids=[f"{page}-{text.splitlines()[0]}" for page, text in SECTIONS])
def test_a_section_of_a_guide(page: str, section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = programs_of(section)
    assert "mcpbolt" in ours and "mcpbolt" not in theirs
    expected = re.findall(r"^- `(.+?)` gives `(.+?)`(?: there, `(.+?)` here)?", section, re.MULTILINE)
    for place, program in ((1, theirs), (2, ours)):
        assert expected or promised(program)
        if not expected:
            assert run(program, tmp_path).splitlines() == promised(program)
            continue
        module = ModuleType("guide")
        monkeypatch.setitem(sys.modules, "guide", module)
        exec(program, module.__dict__)
        said = [one[place] or one[1] for one in expected]
        assert asyncio.run(answers(module, [one[0] for one in expected])) == said, program
