"""Runs a server of the SDK's in forks of this process, which is all that its packages are imported for."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any


def run(server: Any) -> None:
    """Begins with each message that comes on the socket which stdin is. It says how the server runs, `own`, `served`
    or `accelerated`, perhaps the address, and perhaps a word by which `server`, a function, makes the server; and brings
    the stdin and stdout of that process, and a socket on which it tells its number, and that it has ended well."""
    # Imported before the fork, so that no fork imports it anew.
    import uvicorn  # noqa: F401

    from mcpbolt.mcp import _kernel, _natives, _serve  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=0) as control:
        while True:
            command, files, *_ = socket.recv_fds(control, 1 << 10, 3)
            if not command:
                return
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stdin, stdout, report = files
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.close(stdin)
    os.close(stdout)
    with socket.socket(fileno=report) as told:
        told.send(b"%d" % os.getpid())
        run_one(server, *command.decode().split())
        told.send(b"ended")


def run_one(server: Any, how: str, address: str = "stdio:", *word: str) -> None:
    import anyio

    from mcpbolt.mcp import accelerate, run
    from mcpbolt.mcp._unchanged import serve

    if word:
        server = server(*word)
    if how == "own":
        anyio.run(serve, server, address, 5.0, None)
    else:
        run(accelerate(server) if how == "accelerated" else server, address)
