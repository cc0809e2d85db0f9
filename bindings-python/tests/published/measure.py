"""Measures published servers by themselves and under `mcpbolt exec`, and prints a table: `python -m published.measure [NAME...]`, in
the folder of the tests. Each server takes turns; the figures are medians of processor time."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from published.servers import SERVERS, Published
from published.talk import Message, Talk, arguments
from test_published import begun

ROUNDS, REQUESTS, SECONDS = 3, 200, 1.5
REVISION = "2025-06-18"
HEAD = "| server | first list: own | exec | a `tools/list`: own | exec | a call: own | exec | of | answered by |"


def cpu(talk: Talk) -> float:
    """The processor time of a server until now, in ms."""
    total = 0
    for path in Path(f"/proc/{talk.process.pid}/task").glob("*/schedstat"):
        total += int(path.read_text().split()[0])
    return total / 1e6


def each(talk: Talk, request: Callable[[], object]) -> float:
    """Microseconds of one request, of up to `REQUESTS` within `SECONDS`."""
    until, count, begin = time.monotonic() + SECONDS, 0, cpu(talk)
    while count < REQUESTS and (count == 0 or time.monotonic() < until):
        request()
        count += 1
    return (cpu(talk) - begin) / count * 1e3


def called(talk: Talk, server: Published, tools: list[Message]) -> tuple[str, Message]:
    """A tool that answers without an error, and its arguments: the one that the server names, or the first."""
    for tool in [] if server.is_listed_only else tools:
        name = tool["name"]
        if name not in server.without and server.measured in ("", name):
            params = {"name": name, "arguments": arguments(tool["inputSchema"], name, server)}
            result = talk.request("tools/call", params).get("result", {})
            if result and not result.get("isError"):
                return name, params
    return "", {}


def measured(server: Published, how: str, folder: Path) -> tuple[list[float], str, str]:
    """Milliseconds to the first list, microseconds of a later one and of a call, the tool, and how the server runs."""
    with begun(server, how, folder, REVISION) as talk:
        talk.open()
        tools = talk.request("tools/list")["result"]["tools"]
        figures = [cpu(talk), each(talk, lambda: talk.request("tools/list"))]
        name, params = called(talk, server, tools)
        if name:
            figures.append(each(talk, lambda: talk.request("tools/call", params)))
        said = [line for line in talk.stderr().splitlines() if line.startswith("mcpbolt: ")]
        talk.end()
    return figures, name, said[0] if said else ""


def row(server: Published) -> str:
    taken: dict[str, list[list[float]]] = {"own": [], "exec": []}
    name = by = ""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for how, rounds in taken.items():
                figures, name, said = measured(server, how, Path(folder) / "here")
                rounds.append(figures)
                by = said or by
    own, ours = ([statistics.median(column) for column in zip(*rounds)] for rounds in taken.values())
    cells = [server.name]
    for index, (unit, a, b) in enumerate(zip(("ms", "µs", "µs"), own, ours)):
        cells += [f"{a:.0f} {unit}", f"{b:.0f} {unit}" + (f" ({a / b:.1f} ×)" if index else "")]
    cells += [name] if name else ["–", "–", "none"]
    cells.append("the engine" if "the engine serves" in by else "its sessions, carried" if "carries" in by else "itself")
    return f"| {' | '.join(cells)} |"


def main(names: list[str]) -> int:
    """Returns the exit status: 1 if a server was not measured."""
    status = 0
    print(HEAD, "|---|--:|--:|--:|--:|--:|--:|---|---|", sep="\n", flush=True)
    for server in SERVERS:
        if not names or server.name in names:
            try:
                print(row(server), flush=True)
            except Exception as error:
                status = 1
                print(f"| {server.name} | not measured: {error} |", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
