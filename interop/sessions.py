"""One client driving one server in one revision, with everything written down and judged."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import features
import install
import network
import players
import record
import scripts
from browser import Visit
from peers import OURS, Peer

EXIT_SECONDS = 5.0  # tens of milliseconds on a quiet machine


@dataclass
class Session:
    """A client, a server, a revision and what carries it."""

    client: tuple[str, Peer]
    server: tuple[str, Peer]
    revision: str
    carrier: str = "stdio"

    @property
    def name(self) -> str:
        over = "" if self.carrier == "stdio" else f" over {self.carrier}"
        return f"{self.client[0]} {self.revision} -> {self.server[0]}{over}"

    def ours(self) -> dict[str, bool]:
        """Whether each side is ours."""
        names = {record.CLIENT: self.client[0].removeprefix("our "), record.SERVER: self.server[0]}
        return {side: name in OURS for side, name in names.items()}

    def lacking(self) -> set[str]:
        return self.client[1].lacking(self.carrier) | self.server[1].lacking(self.carrier)

    def script(self) -> list[scripts.Step]:
        name, server = self.server
        own = server.script and server.script(self.revision)
        return own or features.script(self.revision, name, self.lacking())

    def run(self, into: Path) -> list[str]:
        """With a server of its own, on stdin and stdout."""
        stem = self.stem(into)
        path = stem.with_suffix(".rec")
        path.unlink(missing_ok=True)
        tee = [sys.executable, "-S", str(install.HERE / "tee.py"), str(path), "--"]
        problems = self.play([*tee, *self.server[1].command], stem)
        if not path.exists():
            return [*problems, "the server was never started"]
        rec = record.read(path)
        problems += self.judged(rec, {side: [rec] for side, ours in self.ours().items() if ours})
        problems += [f"left behind by the server: {left}" for left in left_behind(rec.pid)]
        return problems + (ending(rec) if self.ours()[record.SERVER] else [])

    def visit(self, into: Path, place: network.Place) -> list[str]:
        """Plays the session with a server that others visit, too. The messages come from the traces of our side."""
        stem = self.stem(into)
        traces = stem.with_suffix(".traces")
        shutil.rmtree(traces, ignore_errors=True)
        traces.mkdir()
        problems = self.play([place.address(self.carrier)], stem, {"MCPBOLT_TRACE": str(traces)})
        written = {record.CLIENT: [record.read_trace(path)[1] for path in sorted(traces.iterdir())]}
        written[record.SERVER] = place.traced()
        recordings = {side: written[side] for side, ours in self.ours().items() if ours}
        problems += [f"our {side} has traced nothing" for side, traced in recordings.items() if not traced]
        whole = record.Recording([line for traced in recordings.values() for one in traced for line in one.lines])
        return problems + (self.judged(whole, recordings) if recordings else [])

    def stem(self, into: Path) -> Path:
        return into / re.sub(r"\W+", "-", self.name)

    def play(self, server: list[str], stem: Path, environment: dict[str, str] = {}) -> list[str]:
        """Runs the client: what it found, and what went wrong at its end."""
        script, client = self.script(), self.client[1]
        played = players.again if client.lasting else players.once
        steps = [step for step, _ in script]
        words = [self.revision, self.carrier, *server]
        lines, problems = played(client.command, words, steps, stem.with_suffix(".log"), environment)
        return scripts.judge(script, [json.loads(line) for line in lines]) + problems

    def judged(self, whole: record.Recording, recordings: dict[str, list[record.Recording]]) -> list[str]:
        """Returns the faults of the session, and those of the messages that each side of ours sent."""
        problems = []
        furnished = not self.server[1].script
        if self.revision == features.MODERN and "caching" not in self.lacking() and furnished:
            if (count := whole.count(record.CLIENT, "tools/list")) > features.LISTINGS:
                problems.append(f"the tools were listed {count} times, though they could be kept")
        if record.SERVER in recordings and furnished:
            count = whole.count(record.SERVER, "notifications/progress")
            if count != features.PROGRESS_STEPS:
                problems.append(f"{count} progress notifications, not {features.PROGRESS_STEPS}")
        # A client that disconnects over HTTP cancels without a message.
        silent = self.revision == features.MODERN and self.carrier != "stdio"
        for side, traced in recordings.items():
            for one in traced:
                problems += wrong(one, side, together=not silent, http=self.carrier == "http")
        return problems


@dataclass
class Visits:
    """A server on the network, and its sessions, one after another."""

    server: tuple[str, Peer]
    sessions: list[Session | Visit]

    def run(self, into: Path) -> Iterator[tuple[str, list[str]]]:
        """Returns the faults of each, and of the server's end."""
        with network.started(*self.server, into) as (place, problems):
            for session in self.sessions:
                yield session.name, session.visit(into, place)
        yield f"the end of {self.server[0]} on the network", problems


def ending(rec: record.Recording) -> list[str]:
    """Returns the faults of our server's end in the recording."""
    if rec.exit_status != 0:
        return [f"the server's exit status: {rec.exit_status}"]
    if rec.exit_delay_s is None or rec.exit_delay_s > EXIT_SECONDS:
        return [f"the server ended {rec.exit_delay_s} s after its input did"]
    return []


def wrong(rec: record.Recording, side: str, together: bool, http: bool = False) -> list[str]:
    """Returns the messages of that side that it may not send."""
    import wire

    return wire.check(rec, side, together, http)[1]


def left_behind(session: int | None) -> list[str]:
    """The processes still in the server's session (the tee makes it the leader of one). A fork (forked.py)
    is in none of ours, but does not outlive the process that stands for it there.
    """
    left = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, fields = (folder / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if fields.split()[3] == str(session):
            left.append(name + ")")
    return left
