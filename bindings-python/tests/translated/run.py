"""Runs FastMCP's own tests of function tools, schemas, conversion and results on this package: `python run.py [FOLDER]`.

FOLDER has FastMCP's sources. Without it, the source archive of the installed release is downloaded, which carries the tests.
`known.txt` lists the tests that fail, and why; another test that fails is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".cache" / "python" / "translated"
FILES = [
    "tools/tool/test_argument_validation.py",
    "tools/tool/test_callable.py",
    "tools/tool/test_output_schema.py",
    "tools/tool/test_results.py",
    "tools/tool/test_tool.py",
    "tools/test_tool_future_annotations.py",
    "utilities/test_docstring_parsing.py",
    "server/test_input_validation.py",
    "server/providers/local_provider_tools/test_output_schema.py",
    "server/providers/local_provider_tools/test_parameters.py",
]
# What these tests import, and the package does not need.
TOOLS = ["dirty-equals", "inline-snapshot", "pytest-asyncio"]
CONFTEST = """
def user_meta(meta):
    return {name: one for name, one in (meta or {}).items() if "modelcontextprotocol" not in name} or None
"""
LEAST = 0.95  # of the tests must pass


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def sources() -> Path:
    """The sources of the installed release of FastMCP."""
    name = f"fastmcp-{version('fastmcp')}"
    folder = CACHE / name
    if not all((folder / "tests" / one).exists() for one in FILES):
        with tempfile.TemporaryDirectory() as there:
            pip("download", "--no-deps", "--no-binary", ":all:", "--dest", there, name.replace("-", "==", 1))
            with tarfile.open(Path(there) / f"{name}.tar.gz") as archive:
                wanted = [f"{name}/tests/{one}" for one in FILES]
                archive.extractall(CACHE, [archive.getmember(one) for one in wanted], filter="data")
    return folder


def tools() -> Path:
    folder = CACHE / "tools"
    if not folder.exists():
        pip("install", "--target", str(folder), *TOOLS)
    return folder


def known() -> dict[str, str]:
    """The tests that fail, as patterns, and why."""
    lines = (HERE / "known.txt").read_text().splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


def main() -> None:
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else sources()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for one in FILES:
            target = folder / "tests" / one
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(given / "tests" / one, target)
        for one in (folder / "tests").rglob("*/"):
            (one / "__init__.py").touch()
        (folder / "tests" / "__init__.py").touch()
        (folder / "tests" / "conftest.py").write_text(CONFTEST)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "face", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-rA", "tests"]
        path = {"PYTHONPATH": f"{HERE}:{tools()}:{':'.join(sys.path[1:])}", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True)
    found: dict[str, str] = {}
    for outcome, test in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE):
        found[test.removeprefix("tests/")] = outcome
    reasons = known()

    def reason(test: str) -> str | None:
        return next((why for pattern, why in reasons.items() if re.search(pattern, test)), None)

    failed = {test for test, outcome in found.items() if outcome != "PASSED"}
    unknown = sorted(test for test in failed if reason(test) is None)
    better = sorted(pattern for pattern in reasons if not any(re.search(pattern, test) for test in failed))
    counted = {test for test in found if not (reason(test) or "").startswith(("another feature", "the official SDK"))}
    passed = len(counted - failed)
    if better:
        print("no test fails for:", *better)
    print(f"{passed} of {len(counted)} tests of FastMCP pass; {len(found) - len(counted)} do not count")
    if unknown or not counted or passed < LEAST * len(counted):
        print(done.stdout[-20000:], done.stderr[-2000:], "fail:", *unknown, sep="\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
