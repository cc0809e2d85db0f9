"""Runs tests of FastMCP and of the official SDK on this package: their own tests of function tools, schemas, conversion and
results. `python run.py [fastmcp|mcp]`.

The tests come from the source archive of the installed release, which is downloaded. A file beside this one lists the tests
that fail, and why; another test that fails is an error. Every test that pytest collects counts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".cache" / "python" / "translated"
LEAST = 0.95  # of all tests must pass
# What these tests import, and the package does not need.
TOOLS = ["dirty-equals", "inline-snapshot", "pytest-asyncio"]


@dataclass(frozen=True)
class Suite:
    """Tests of another package.

    Attributes:
        files: The files that have the tests.
        beside: Folders that the tests import.
        plugin: The module that puts this package in the place of the other.
        conftest: What the tests expect of their `conftest.py`.
    """

    package: str
    files: list[str]
    beside: list[str]
    plugin: str
    conftest: str

    def sources(self) -> Path:
        """The sources of the installed release."""
        name = f"{self.package}-{version(self.package)}"
        folder = CACHE / name
        if not all((folder / one).exists() for one in [*self.files, *self.beside]):
            with tempfile.TemporaryDirectory() as there:
                pip("download", "--no-deps", "--no-binary", ":all:", "--dest", there, name.replace("-", "==", 1))
                with tarfile.open(Path(there) / f"{name}.tar.gz") as archive:
                    wanted = tuple(f"{name}/{one}" for one in [*self.files, *self.beside])
                    archive.extractall(CACHE, [one for one in archive if one.name.startswith(wanted)], filter="data")
        return folder

    def known(self) -> dict[str, str]:
        """The tests that fail, as patterns, and why."""
        lines = (HERE / f"{self.package}.txt").read_text().splitlines()
        return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))

    def outcomes(self) -> tuple[dict[str, str], str]:
        """The outcome of each test, and all that pytest says."""
        sources = self.sources()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for one in self.files:
                (folder / one).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(sources / one, folder / one)
            for one in self.beside:
                shutil.copytree(sources / one, folder / one)
            for init in [folder / "tests", *(folder / "tests").rglob("*/")]:
                (init / "__init__.py").touch()
            (folder / "tests" / "conftest.py").write_text(self.conftest)
            command = [sys.executable, "-m", "pytest", "-q", "-p", self.plugin, "-p", "no:cacheprovider", "-rA", "--tb=short", "--continue-on-collection-errors", "tests"]
            path = {"PYTHONPATH": f"{HERE}:{tools()}:{':'.join(sys.path[1:])}", "PATH": "/usr/bin:/bin"}
            done = subprocess.run([*command, "-o", "asyncio_mode=auto"], cwd=folder, env=path, capture_output=True, text=True)
        found = re.findall(r"^(PASSED|FAILED|ERROR) (tests/.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return {test.removeprefix("tests/"): outcome for outcome, test in found}, done.stdout + done.stderr[-2000:]


SUITES = [
    Suite(
        "fastmcp",
        [
            "tests/tools/tool/test_argument_validation.py",
            "tests/tools/tool/test_callable.py",
            "tests/tools/tool/test_output_schema.py",
            "tests/tools/tool/test_results.py",
            "tests/tools/tool/test_tool.py",
            "tests/tools/test_tool_future_annotations.py",
            "tests/utilities/test_docstring_parsing.py",
            "tests/server/test_input_validation.py",
            "tests/server/providers/local_provider_tools/test_output_schema.py",
            "tests/server/providers/local_provider_tools/test_parameters.py",
        ],
        [],
        "fastmcp_face",
        """
def user_meta(meta):
    return {name: one for name, one in (meta or {}).items() if "modelcontextprotocol" not in name} or None
""",
    ),
    Suite(
        "mcp",
        [
            "tests/server/mcpserver/test_func_metadata.py",
            "tests/server/mcpserver/test_parameter_descriptions.py",
            "tests/server/mcpserver/test_tool_manager.py",
            "tests/docs_src/test_structured_output.py",
            "tests/docs_src/test_tools.py",
        ],
        ["docs_src/structured_output", "docs_src/tools"],
        "sdk_face",
        """
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    ),
]


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def tools() -> Path:
    folder = CACHE / "tools"
    if not folder.exists():
        pip("install", "--target", str(folder), *TOOLS)
    return folder


def passes(suite: Suite) -> bool:
    found, said = suite.outcomes()
    known = suite.known()
    failed = [test for test, outcome in found.items() if outcome != "PASSED"]
    unknown = [test for test in failed if not any(re.search(pattern, test) for pattern in known)]
    better = [pattern for pattern in known if not any(re.search(pattern, test) for test in failed)]
    passed = len(found) - len(failed)
    print(f"{suite.package} {version(suite.package)}: {passed} of {len(found)} tests pass")
    if not unknown and not better and passed >= LEAST * len(found) > 0:
        return True
    print(said, "fail, and are not listed:", *unknown, "are listed, and do not fail:", *better, sep="\n")
    return False


def main() -> None:
    wanted = sys.argv[1:] or [suite.package for suite in SUITES]
    results = [passes(suite) for suite in SUITES if suite.package in wanted]
    sys.exit(not (results and all(results)))


if __name__ == "__main__":
    main()
