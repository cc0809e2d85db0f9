"""`mcpbolt exec`: runs a program of this environment unchanged, with the servers that it starts on the engine."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from types import ModuleType

USAGE = """\
usage: mcpbolt exec PROGRAM [ARGUMENT...]
       mcpbolt exec -m MODULE [ARGUMENT...]
       mcpbolt exec FILE.py [ARGUMENT...]

Run a program unchanged. Where it serves stdin and stdout or HTTP with the official SDK (mcp) or FastMCP, the engine
does so in their place.

  mcpbolt exec mcp-server-git --repository .   a console script of this environment
  mcpbolt exec -m package.server               a module, as with python -m
  mcpbolt exec server.py                       a file

Environment: MCPBOLT=off leaves the program as it is; MCPBOLT_REPORT=1 prints what runs where, and why, to stderr.
"""


class NoProgram(Exception):
    """There is no such program in this environment."""


def main(arguments: Sequence[str]) -> None:
    """Runs the program that the arguments name. Exits with status 2 if there is none."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    from ._install import hook

    try:
        if arguments[0] == "-m":
            check_module(arguments[1:])
            hook(exempts=True)
            return run_module(arguments[1], list(arguments[2:]))
        path = program(arguments[0])
    except NoProgram as error:
        print(f"mcpbolt exec: error: {error}", file=sys.stderr)
        sys.exit(2)
    hook(exempts=True)
    if path is None:
        run_entry(arguments[0], list(arguments[1:]))
    else:
        run_file(path, list(arguments[1:]))


def program(name: str) -> str | None:
    """The file of a program: a path, or a script of this environment. `None` if only the metadata of an installed
    package have the script.

    Raises:
        NoProgram: There is none, or it runs under another interpreter.
    """
    if os.path.isfile(name) and (os.sep in name or name.endswith(".py")):
        return checked(name)
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return checked(path)
    if entry(name) is not None:
        return None
    if os.path.isfile(name):
        return checked(name)
    elsewhere = shutil.which(name)
    if elsewhere is not None:
        raise NoProgram(
            f"{elsewhere} belongs to another environment than {sys.executable}; install mcpbolt there, "
            f"or both together: uvx --with mcpbolt --from PACKAGE mcpbolt exec {name}"
        )
    raise NoProgram(f"there is no program {name} in this environment ({sys.prefix}); install its package here")


def check_module(arguments: Sequence[str]) -> None:
    from importlib.util import find_spec

    if not arguments:
        raise NoProgram("-m needs the name of a module")
    sys.path.insert(0, os.getcwd())
    try:
        found = find_spec(arguments[0])
    except ModuleNotFoundError:
        found = None
    finally:
        del sys.path[0]
    if found is None:
        raise NoProgram(f"there is no module {arguments[0]} in this environment ({sys.prefix})")


def checked(path: str) -> str:
    """A file, if it is a program in Python."""
    with open(path, "rb") as file:
        first = file.readline(256)
    is_python = path.endswith((".py", ".pyw")) or (first.startswith(b"#!") and b"python" in first)
    # Long paths of interpreters stand in the third line of a script for sh.
    if not is_python and first.startswith(b"#!/bin/sh"):
        with open(path, "rb") as file:
            is_python = b"python" in file.read(1024)
    if not is_python:
        raise NoProgram(f"{path} is not a program in Python")
    return path


def entry(name: str) -> object | None:
    """The console script of an installed package."""
    from importlib.metadata import entry_points

    return next(iter(entry_points(group="console_scripts", name=name)), None)


def run_file(path: str, arguments: list[str]) -> None:
    """Runs a file as `python FILE` would."""
    from io import open_code

    whole = os.path.abspath(path)
    with open_code(whole) as file:
        code = compile(file.read(), whole, "exec")
    sys.argv = [path, *arguments]
    begin_path(os.path.dirname(os.path.realpath(path)))
    main = ModuleType("__main__")
    main.__dict__.update(__file__=whole, __builtins__=__builtins__, __cached__=None)
    # It stays there: threads and functions that run at the exit look it up, too.
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module as `python -m MODULE` would."""
    import runpy

    sys.argv = ["-m", *arguments]
    begin_path(os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_entry(name: str, arguments: list[str]) -> None:
    """Runs a console script from the metadata of its package, as its file would."""
    found: object = entry(name)
    sys.argv = [name, *arguments]
    sys.exit(found.load()())  # type: ignore[attr-defined]


def begin_path(folder: str) -> None:
    """Sets where imports are looked for first; before, this is the folder of the command `mcpbolt` itself."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
