"""One client driving one server in one revision, with everything written down and judged."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import features
import install
import record
import scripts
from peers import OURS, Peer

EXIT_SECONDS = 5.0  # tens of milliseconds on a quiet machine
SESSION_SECONDS = 90


@dataclass
class Session:
    """A client, a server and a revision; at least one of the two is ours."""

    client: tuple[str, Peer]
    server: tuple[str, Peer]
    revision: str

    @property
    def name(self) -> str:
        return f"{self.client[0]} {self.revision} -> {self.server[0]}"

    def run(self, into: Path) -> list[str]:
        (client, driver), (server, served) = self.client, self.server
        stem = into / re.sub(r"\W+", "-", self.name)
        lacking = {*driver.lacks, *served.lacks}
        if served.script:
            script = served.script(self.revision)
        else:
            script = features.script(self.revision, server, lacking)
        said, problems = self.play([step for step, _ in script], stem)
        problems = scripts.judge(script, said) + problems
        path = stem.with_suffix(".rec")
        if not path.exists():
            return [*problems, "the server was never started"]
        rec = record.read(path)
        if self.revision == features.MODERN and "caching" not in lacking and not served.script:
            if (count := rec.count(record.CLIENT, "tools/list")) > features.LISTINGS:
                problems.append(f"the tools were listed {count} times, though they could be kept")
        problems += [f"left behind by the server: {left}" for left in left_behind(rec.pid)]
        if client.removeprefix("our ") in OURS:
            problems += wrong(rec, record.CLIENT)
        if server in OURS:
            problems += wrong(rec, record.SERVER) + self.ending(rec)
        return problems

    def play(self, steps: list[dict], stem: Path) -> tuple[list[dict], list[str]]:
        """Runs the client with a recorded server: its output, and what went wrong at its end."""
        recording, log = stem.with_suffix(".rec"), stem.with_suffix(".log")
        recording.unlink(missing_ok=True)
        tee = [sys.executable, "-S", str(install.HERE / "tee.py"), str(recording), "--", *self.server[1].command]
        command = [*self.client[1].command, self.revision, "--", *tee]
        with log.open("wb") as stderr:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
            try:
                out, _ = process.communicate(json.dumps(steps).encode(), timeout=SESSION_SECONDS)
                problems = [f"the client ended with {process.returncode} (see {log})"] if process.returncode else []
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
                problems = [f"no end after {SESSION_SECONDS} s (see {log})"]
        return [json.loads(line) for line in out.splitlines()], problems

    def ending(self, rec: record.Recording) -> list[str]:
        """What the recording says of our server's progress and its end."""
        problems = []
        count = rec.count(record.SERVER, "notifications/progress")
        if count != features.PROGRESS_STEPS:
            problems.append(f"{count} progress notifications, not {features.PROGRESS_STEPS}")
        if rec.exit_status != 0:
            problems.append(f"the server's exit status: {rec.exit_status}")
        elif rec.exit_delay_s is None or rec.exit_delay_s > EXIT_SECONDS:
            problems.append(f"the server ended {rec.exit_delay_s} s after its input did")
        return problems


def wrong(rec: record.Recording, side: str) -> list[str]:
    """What that side sent that it may not."""
    import wire

    return wire.check(rec, side)[1]


def left_behind(session: int | None) -> list[str]:
    """The processes still in the server's session (the tee makes it the leader of one)."""
    left = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, fields = (folder / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if fields.split()[3] == str(session):
            left.append(name + ")")
    return left
