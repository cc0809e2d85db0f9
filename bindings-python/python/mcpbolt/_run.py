"""The command `mcpbolt`. Its `run` serves a server from a file or module, unchanged, on the engine, at any address;
`dev` does so and restarts it when its files change; `exec` runs a whole program; everything else is the engine's own command."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from . import _core

# The names of the server classes, and their packages.
_KINDS = {("Server", "mcpbolt"), ("Server", "mcp"), ("MCPServer", "mcp"), ("FastMCP", "fastmcp")}
_NAMES = ("mcp", "server", "app")
_ABOUT = """
  mcpbolt run server.py                     the server of that file, on stdin and stdout
  mcpbolt run server.py:mcp --http :8000    its variable mcp, at http://127.0.0.1:8000/mcp
  mcpbolt run package.module:make           the server that this function returns

The file is not edited, and its code under `if __name__ == "__main__"` does not run. Servers of the official SDK
and of FastMCP keep their semantics. The engine calls their tools itself where the results are the same; --plain
turns that off.
"""


class NoServer(Exception):
    """The target is not a server."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command-line program. Exits with status 2 if the server or the address does not exist."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["exec"]:
        from . import _exec

        return _exec.main(arguments[1:])
    if arguments[:1] == ["dev"]:
        from . import _dev

        return _dev.main(arguments[1:])
    if arguments[:1] != ["run"]:
        # Python would see the signal only when the command is done.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.exit(_core.command(arguments))
    run = parser("mcpbolt run", "Serve the server of a Python file or module.", _ABOUT)
    options = run.parse_args(arguments[1:])
    try:
        server = found(options.target)
        serve(server, options)
    except (NoServer, ImportError) as error:
        run.error(str(error))
    except (ValueError, OSError) as error:
        # Errors of a running server are shown with their traceback.
        if server_has_begun(error):
            raise
        run.error(str(error))


def parser(name: str, description: str, epilog: str, parents: Sequence[ArgumentParser] = ()) -> ArgumentParser:
    """The arguments of a command that runs a server."""
    run = ArgumentParser(
        name, description=description, epilog=epilog, formatter_class=RawDescriptionHelpFormatter, parents=list(parents)
    )
    run.add_argument("target", help="FILE.py or MODULE, optionally with :NAME, the variable that holds the server")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--http", metavar="[HOST]:PORT[/PATH]", help="serve over HTTP there; at 127.0.0.1 and /mcp")
    where.add_argument("--at", metavar="ADDRESS", help="serve at any address: unix:/run/mcp.sock, tcp:localhost:7000, …")
    run.add_argument(
        "--anonymous", action="store_true", help="allow an address that other machines can reach, although clients are not authenticated"
    )
    run.add_argument("--workers", type=int, metavar="COUNT", help="serve with several processes, which share the address")
    run.add_argument("--grace", type=float, default=5.0, help="seconds that calls in flight may take at shutdown (5)")
    run.add_argument("--plain", action="store_true", help="call every tool as its own package does")
    return run


def server_has_begun(error: BaseException) -> bool:
    """Whether an error was raised outside this package, that is, by the server's own code."""
    here = os.path.dirname(__file__)
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and not frame.tb_frame.f_code.co_filename.startswith(here)


def address(options: Namespace) -> str:
    """The address to serve at."""
    if options.at:
        return str(options.at)
    if not options.http:
        return "stdio:"
    authority, slash, path = options.http.partition("/")
    host, _, port = authority.rpartition(":")
    return f"http://{host or '127.0.0.1'}:{port}/{path if slash else 'mcp'}"


def serve(server: Any, options: Namespace) -> None:
    at = address(options)
    from ._serve_options import ServeOptions
    from ._server import Server

    reach = ServeOptions(anonymous=options.anonymous)
    if isinstance(server, Server):
        return server.run(at, grace=options.grace, options=reach, workers=options.workers)
    sdk: Any = import_module("mcpbolt.mcp")
    if not hasattr(sdk, "run"):
        raise NoServer(f"this version runs only servers of mcpbolt, and this one is of {type(server).__module__}")
    if not options.plain:
        sdk.accelerate(server)
    sdk.run(server, at, grace=options.grace, options=reach, workers=options.workers)


def found(target: str) -> Any:
    """The server that a target names."""
    place, _, name = target.rpartition(":")
    if not place or os.path.exists(target):
        place, name = target, ""
    module = loaded(place)
    if not name:
        return only(module, place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise NoServer(f"{place} has no {name}")
        value = getattr(value, part)
    if not is_server(value) and callable(value):
        value = value()
    if not is_server(value):
        raise NoServer(f"{target} is not a server; name a Server, an MCPServer, a FastMCP, or a function that returns one")
    return value


def loaded(place: str) -> ModuleType:
    """Imports the module of a file, or of that name."""
    if not place.endswith(".py") and not os.path.isfile(place):
        sys.path.insert(0, os.getcwd())
        return import_module(place)
    if not os.path.isfile(place):
        raise NoServer(f"there is no {place}")
    path = os.path.abspath(place)
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def only(module: ModuleType, place: str) -> Any:
    """The one server of a module."""
    servers = {name: value for name, value in vars(module).items() if is_server(value)}
    for name in _NAMES:
        if name in servers:
            return servers[name]
    distinct = {id(value): value for value in servers.values()}
    if len(distinct) != 1:
        said = f"several servers, {', '.join(servers)}" if distinct else "no server"
        raise NoServer(f"{place} has {said}; name one, as in {place}:NAME")
    return distinct.popitem()[1]


def is_server(value: Any) -> bool:
    """Whether it is an instance of one of the server classes. Imports none of them."""
    return any((base.__name__, base.__module__.split(".")[0]) in _KINDS for base in type(value).__mro__)
