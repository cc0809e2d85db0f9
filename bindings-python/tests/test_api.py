"""`API.txt`, the report of the package's public types: `python tests/test_api.py` renews it."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mcpbolt
from mcpbolt import Context, _ask

REPORT = Path(__file__).resolve().parents[1] / "API.txt"
FOLDER = Path(__file__).resolve().parents[1] / "python" / "mcpbolt"
MODULES = ("mcpbolt", "mcpbolt.chain", "mcpbolt.engine", "mcpbolt.mcp", "mcpbolt.testing")


def source(home: str) -> ast.Module:
    """The source of a module of the package, or its stub."""
    path = FOLDER.joinpath(*home.split(".")[1:])
    paths = [path.with_suffix(".py"), path.with_suffix(".pyi"), path / "__init__.py"]
    return ast.parse(next(one for one in paths if one.is_file()).read_text())


def home_of(module: ModuleType, name: str) -> str:
    """The module in which a public name is defined."""
    homes: dict[str, str] = getattr(module, "_HOMES", {})
    if name in homes:
        return f"{module.__name__}.{homes[name]}"
    for node in source(module.__name__).body:
        if isinstance(node, ast.ImportFrom) and any(one.name == name for one in node.names):
            return f"mcpbolt.{node.module}"
    return module.__name__


def members(node: ast.ClassDef) -> Iterator[str]:
    """The public members of a class, with their types."""
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not one.name.startswith("_") or one.name in ("__init__", "__new__"):
                yield from signature(one)
        elif isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_"):
            yield ast.unparse(one)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    yield from (f"@{ast.unparse(one)}" for one in node.decorator_list)
    node.body, node.decorator_list = [ast.Expr(ast.Constant(...))], []
    yield ast.unparse(node).replace("\n    ...", " ...")


def bases(module: ModuleType, public: str) -> Iterator[ast.ClassDef]:
    """The private base classes of a public class, whose members it has too."""
    mro = getattr(module, public).__mro__[1:]
    # What a public base has, its own entry says.
    known = {one for base in mro if is_public(base.__name__, module) for one in base.__mro__}
    for base in mro:
        if base not in known and base.__module__.startswith("mcpbolt.") and base.__name__ not in module.__all__:
            yield from (one for one in classes(base.__module__) if one.name == base.__name__)


def is_public(name: str, module: ModuleType) -> bool:
    return name in module.__all__ or name in mcpbolt.__all__


def classes(home: str) -> Iterator[ast.ClassDef]:
    yield from (node for node in source(home).body if isinstance(node, ast.ClassDef))


def report() -> str:
    lines = []
    for name in MODULES:
        module = importlib.import_module(name)
        lines += [f"# {name}", ""]
        for public in sorted(module.__all__):
            home = home_of(module, public)
            for node in source(home).body:
                if isinstance(node, ast.ClassDef) and node.name == public:
                    shown = [base for base in map(ast.unparse, node.bases) if is_public(base, module) or hasattr(builtins, base)]
                    lines.append(f"class {public}({', '.join(shown)}):" if shown else f"class {public}:")
                    all_members = [one for part in (node, *bases(module, public)) for one in members(part)]
                    lines += [f"    {member}" for member in all_members] or ["    ..."]
                elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == public:
                    lines += signature(node)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def test_the_report_of_the_public_types_is_current() -> None:
    assert REPORT.read_text() == report(), "the public types changed: python bindings-python/tests/test_api.py renews API.txt"


@pytest.mark.parametrize("name", ["sample", "elicit", "elicit_url", "roots"])
def test_a_question_shows_the_parameters_of_the_function_behind_it(name: str) -> None:
    """The engine passes all arguments on, so its own signature says nothing."""

    def parameters(function: Any) -> list[tuple[str, object, object]]:
        of_all = inspect.signature(function).parameters.values()
        return [(one.name, one.kind, one.default) for one in of_all][1:]

    assert parameters(getattr(Context, name)) == parameters(getattr(_ask, name))


if __name__ == "__main__":
    REPORT.write_text(report())
