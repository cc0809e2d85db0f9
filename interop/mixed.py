#!/usr/bin/env python3
"""One process, one port: clients of an era each, and of the action dialect, at the same time.

    python3 interop/mixed.py                        10,000 calls each, of our Rust server
    python3 interop/mixed.py --calls 200 --server node

An official TypeScript client in a session of 2025-11-25, an official Python client of 2026-07-28,
and a client of the action dialect call the diagnostic server, each its own texts, with many calls
in flight. Every answer is checked. None begins, and none passes the middle, before all are there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import install
import network
import peers

CLIENTS = install.HERE / "clients"
SECONDS = 600


@dataclass
class Mixed:
    """That many calls of each client, of a diagnostic server."""

    server: str
    command: list[str]
    calls: int = 200

    @property
    def name(self) -> str:
        return f"clients of two eras and of actions -> {self.server}"

    def run(self, into: Path) -> list[str]:
        server = peers.Peer(*self.command)
        with network.started(f"{self.server} mixed", server, into) as (place, _):
            address = place.address("http")
            clients = {
                "typescript, 2025-11-25": ["node", "--no-warnings", CLIENTS / "mixed.mjs"],
                "python, 2026-07-28": [install.PYTHON, CLIENTS / "mixed.py"],
                "actions": [sys.executable, CLIENTS / "mixed_actions.py"],
            }
            said = self._played({name: [*command, address, str(self.calls)] for name, command in clients.items()})
        return self._wrong(said)

    def _played(self, clients: dict[str, list[object]]) -> dict[str, tuple[int, str]]:
        """Returns the report of each at its end."""
        pipe = subprocess.PIPE
        started = {
            name: subprocess.Popen([str(word) for word in command], stdin=pipe, stdout=pipe, text=True)
            for name, command in clients.items()
        }
        late = threading.Timer(SECONDS, lambda: [process.kill() for process in started.values()])
        late.start()
        try:
            for _ in ("the beginning", "the middle"):
                there = [process.stdout.readline() for process in started.values()]
                for process in started.values() if all(there) else ():
                    process.stdin.write("go\n")
                    process.stdin.flush()
            return {name: (process.wait(), out) for name, process in started.items() for out in [process.communicate()[0]]}
        finally:
            late.cancel()
            for process in started.values():
                process.kill()
                process.communicate()

    def _wrong(self, said: dict[str, tuple[int, str]]) -> list[str]:
        problems = []
        for name, (status, out) in said.items():
            report = json.loads(out) if status == 0 and out else None
            if report is None:
                problems.append(f"{name}: its exit status is {status}")
            elif report["right"] != self.calls:
                problems.append(f"{name}: {report['right']} of {self.calls} answers are right; the first that is not: {report['wrong']}")
        return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="rust", choices=peers.OURS)
    parser.add_argument("--calls", type=int, default=10_000, metavar="N", help="of each client (default %(default)s)")
    options = parser.parse_args()
    install.install()
    into = install.CACHE / "run"
    into.mkdir(exist_ok=True)
    mixed = Mixed(options.server, peers.diagnostic(options.server), options.calls)
    problems = mixed.run(into)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{mixed.name}, {options.calls} calls each: {'FAILED' if problems else 'every answer is right'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
