"""A server on the network, and the sessions that it has, one after another."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import record
from peers import OURS, Peer

HOST = "127.0.0.1"
# Below those that the system hands out to whoever connects.
PORTS = itertools.count(20_000 + os.getpid() * 16 % 8_000)
START_SECONDS, END_SECONDS = 60, 10


def free_port() -> int:
    """A port that nobody listens on."""
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)):
                return port
    raise RuntimeError("no port is free")


@dataclass
class Place:
    """Where a server listens, and what it has written down if it is ours."""

    origin: str
    paths: dict[str, str]  # by carrier
    traces: Path

    def __post_init__(self) -> None:
        self.seen: dict[Path, int] = {}

    def address(self, carrier: str) -> str:
        return self.origin + self.paths[carrier]

    def traced(self) -> list[record.Recording]:
        """Returns the messages since the last call."""
        out = []
        for path in sorted(self.traces.iterdir()):
            begin = self.seen.get(path, 0)
            self.seen[path] = path.stat().st_size
            if self.seen[path] > begin:
                out.append(record.read_trace(path, begin)[1])
        return out


@contextmanager
def started(name: str, server: Peer, into: Path) -> Iterator[tuple[Place, list[str]]]:
    """The server at work, and what was wrong with its end, if it is one of ours."""
    stem = into / re.sub(r"\W+", "-", f"{name} on the network")
    traces, log = stem.with_suffix(".traces"), stem.with_suffix(".log")
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir()
    port, problems = free_port(), []
    place = Place(f"http://{HOST}:{port}", server.carriers, traces)
    environment = {**os.environ, "MCPBOLT_TRACE": str(traces)}
    with log.open("wb") as output:
        command = server.at(place.address("http"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            wait_for(process, port, log)
            yield place, problems
        finally:
            process.terminate()
            try:
                status = process.wait(END_SECONDS)
                problems += [f"its exit status is {status} (see {log})"] * (status != 0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                problems.append(f"no end {END_SECONDS} s after SIGTERM (see {log})")
            if name not in OURS:
                problems.clear()


def wait_for(process: subprocess.Popen, port: int, log: Path) -> None:
    """Until somebody listens there."""
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if not probe.connect_ex((HOST, port)):
                return
        time.sleep(0.02)
    raise RuntimeError(f"nobody listens (see {log})")
