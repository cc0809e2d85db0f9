"""Measures published servers by themselves and under `mcpbolt exec`, and prints a table: `python -m published.measure [NAME...]`, in
the folder of the tests. Each server takes turns; the figures are medians of processor time."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from published.servers import SERVERS, Published
from published.talk import Talk
from test_published import begun

ROUNDS, CALLS = 3, 200
REVISION = "2025-06-18"
HEAD = "| server | first list, by itself | under `mcpbolt exec` | a `tools/list`, by itself | under `mcpbolt exec` | answered by |"


def cpu(talk: Talk) -> float:
    """The processor time of a server until now, in ms."""
    total = 0
    for path in Path(f"/proc/{talk.process.pid}/task").glob("*/schedstat"):
        total += int(path.read_text().split()[0])
    return total / 1e6


def measured(server: Published, how: str, folder: Path) -> tuple[float, float, str]:
    """Milliseconds to the first list, microseconds of a later one, and how the server runs."""
    with begun(server, how, folder, REVISION) as talk:
        talk.open()
        talk.request("tools/list")
        first = cpu(talk)
        for _ in range(CALLS):
            talk.request("tools/list")
        each = (cpu(talk) - first) / CALLS * 1e3
        said = [line for line in talk.stderr().splitlines() if line.startswith("mcpbolt: ")]
        talk.end()
    return first, each, said[0] if said else ""


def row(server: Published) -> str:
    taken: dict[str, list[tuple[float, float]]] = {"own": [], "exec": []}
    by = ""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for how, figures in taken.items():
                first, each, said = measured(server, how, Path(folder) / "here")
                figures.append((first, each))
                by = said or by
    cells = [statistics.median(figure[index] for figure in taken[how]) for index in (0, 1) for how in ("own", "exec")]
    kind = "the engine" if "the engine serves" in by else "its sessions, carried" if "carries" in by else "itself"
    first_own, first_exec, own, ours = cells
    return f"| {server.name} | {first_own:.0f} ms | {first_exec:.0f} ms | {own:.0f} µs | {ours:.0f} µs ({own / ours:.0f} ×) | {kind} |"


def main(names: list[str]) -> None:
    print(HEAD, "|---|--:|--:|--:|--:|---|", sep="\n", flush=True)
    for server in SERVERS:
        if not names or server.name in names:
            print(row(server), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
