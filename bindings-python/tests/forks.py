"""Servers of the SDK's and FastMCP's as processes: each is imported once, which takes seconds, and forked for each run."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType

FOLDER = Path(__file__).parent / "existing"


class Forks:
    """The process that has imported a server: see `existing/how.py`."""

    def __init__(self, server: str) -> None:
        # The output of a kernel is compared with its own, not with the schemas: it asks by elicitation in
        # revisions that have none.
        env = {name: value for name, value in os.environ.items() if name != "MCPBOLT_TRACE"}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen([sys.executable, str(FOLDER / f"{server}.py")], stdin=theirs, env=env)

    def __enter__(self) -> Forks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._control.close()
        self._process.wait(30)

    async def run(self, *command: str, stdin: int, stdout: int) -> Fork:
        """Runs the server as a command line says, with these as its stdin and stdout: they are closed here."""
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        report.setblocking(False)
        files = [stdin, stdout, theirs.detach()]
        try:
            socket.send_fds(self._control, [" ".join(command).encode()], files)
        finally:
            for file in files:
                os.close(file)
        fork = Fork(report)
        fork.pid = int(await fork.said(60))
        return fork


class Fork:
    """A server that runs."""

    pid: int

    def __init__(self, report: socket.socket) -> None:
        self._report = report

    async def said(self, seconds: float) -> bytes:
        """Returns its next report."""
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._report, 64), seconds)

    async def ends_well(self) -> bool:
        """Whether it comes to its end by itself, as soon as it has ended."""
        with self._report:
            return await self.said(30) == b"ended"
