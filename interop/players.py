"""Client processes, each for one session or for many, one after another."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SESSION_SECONDS = 90
END = b"null\n"

Played = tuple[list[bytes], list[str]]  # the lines of a client, and what went wrong at its end


def late(log: Path) -> str:
    return f"no end after {SESSION_SECONDS} s (see {log})"


def ended(status: int, log: Path) -> str:
    return f"the client ended with {status} (see {log})"


def once(command: list[str], words: list[str], steps: list[dict], log: Path, environment: dict[str, str]) -> Played:
    """By a process of its own, which has the steps on stdin."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, **environment}}
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, *words], stderr=stderr, **streams)
        try:
            out, _ = process.communicate(json.dumps(steps).encode(), timeout=SESSION_SECONDS)
            problems = [ended(process.returncode, log)] if process.returncode else []
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            problems = [late(log)]
    return out.splitlines(), problems


@dataclass
class Player:
    """A process that has a session on each line of stdin, and prints `null` where a process that had
    this session alone would end.
    """

    process: subprocess.Popen
    log: Path


idle: defaultdict[tuple[str, ...], list[Player]] = defaultdict(list)


def again(command: list[str], words: list[str], steps: list[dict], log: Path, _environment: dict[str, str]) -> Played:
    """By a process that has played before, if one is idle. One that ends or is late plays no more."""
    try:
        player = idle[tuple(command)].pop()
    except IndexError:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with log.open("wb") as stderr:
            player = Player(subprocess.Popen(command, stderr=stderr, **pipes), log)
    process, lines, is_late = player.process, [], threading.Event()

    def give_up() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(SESSION_SECONDS, give_up)
    timer.start()
    try:
        with suppress(BrokenPipeError):
            revision, carrier, *server = words
            session = {"revision": revision, "carrier": carrier, "server": server, "steps": steps}
            process.stdin.write(json.dumps(session).encode() + b"\n")
            process.stdin.flush()
        for line in process.stdout:
            if line == END:
                idle[tuple(command)].append(player)
                return lines, []
            lines.append(line)
        process.communicate()
    finally:
        timer.cancel()
    return lines, [late(player.log) if is_late.is_set() else ended(process.returncode, player.log)]


@contextmanager
def gathered() -> Iterator[None]:
    """At the end, no idle process remains."""
    try:
        yield
    finally:
        for players in idle.values():
            for player in players:
                player.process.kill()
                player.process.communicate()
        idle.clear()
