#!/usr/bin/env python3
"""Proves mcpbolt against MCP software not written here.

    python3 interop/run.py                        everything
    python3 interop/run.py --server rust          our Rust server and client
    python3 interop/run.py --server 'CMD ARG'     the official clients against that server
    python3 interop/run.py --only 'node-v2.*2026' the sessions whose names match

The official clients (Python `mcp`, both TypeScript SDKs, rmcp) drive a stdio server in every
revision they can speak: list, call, errors, progress, cancellation, many calls at once, shutdown.
In between stands tee.py, and afterwards every message the server sent is checked against the
official schema of its revision; then comes the corpus of bad frames. Our own clients drive
server-everything, a server on Python `mcp`, one on rmcp, and one that talks garbage. What the tests of the
packages left in `.cache/wire` is held against the schemas, too. `--server` takes
rust, python or node (ours), reference (servers on the official SDKs, which prove this harness), or a
command line; it may be given several times.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import bad_frames
import install
import record
import scripts
import verdict

HERE = install.HERE
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*LEGACY, "2026-07-28")
EXIT_SECONDS = 5.0  # tens of milliseconds on a quiet machine
SESSION_SECONDS = 90
CLIENTS: dict[str, tuple[list[object], tuple[str, ...]]] = {
    "python": ([install.PYTHON, HERE / "clients" / "python_client.py"], ALL),
    "node-v1": (["node", HERE / "clients" / "node_v1.mjs"], LEGACY),
    "node-v2": (["node", HERE / "clients" / "node_v2.mjs"], ALL),
    "rmcp": ([install.RMCP / "client"], ALL),
}
EVERYTHING = install.NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
REFERENCE = {
    "reference-python": [install.PYTHON, HERE / "servers" / "python_server.py"],
    "reference-rmcp": [install.RMCP / "server"],
}
OURS = ("rust", "python", "node")
PEERS: dict[str, tuple[list[object], tuple[str, ...], scripts.Script]] = {
    "reference-python": (REFERENCE["reference-python"], ALL, scripts.diagnostic("interop-python-server")),
    "reference-rmcp": (REFERENCE["reference-rmcp"], ALL, scripts.diagnostic("rmcp")),
    "everything": (["node", EVERYTHING, "stdio"], LEGACY, scripts.everything),
    "garbage": ([sys.executable, HERE / "servers" / "garbage_server.py"], ALL, scripts.garbage),
}


def behind_tee(client: list[object], revision: str, server: list[object], stdin: object, stem: Path):
    """Runs the client with a recorded server: its output as JSON lines, and what went wrong at its end."""
    recording, log = stem.with_suffix(".rec"), stem.with_suffix(".log")
    recording.unlink(missing_ok=True)
    tee = [sys.executable, "-S", HERE / "tee.py", recording, "--", *server]
    command = list(map(str, [*client, revision, "--", *tee]))
    with log.open("wb") as stderr:
        try:
            done = subprocess.run(
                command, input=json.dumps(stdin).encode(), stdout=subprocess.PIPE, stderr=stderr, timeout=SESSION_SECONDS
            )
        except subprocess.TimeoutExpired:
            return [], [f"no end after {SESSION_SECONDS} s (see {log})"]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return said, [f"the client ended with {done.returncode} (see {log})"] if done.returncode else []


@dataclass
class Session:
    """One client driving one server in one revision."""

    server: str
    command: list[str]
    client: str
    revision: str

    @property
    def name(self) -> str:
        return f"{self.client} {self.revision} -> {self.server}"

    def run(self, into: Path) -> list[str]:
        stem = into / re.sub(r"\W+", "-", self.name)
        said, problems = behind_tee(CLIENTS[self.client][0], self.revision, self.command, verdict.TEXTS, stem)
        return verdict.judge(self.revision, said) + problems + self.aftermath(stem.with_suffix(".rec"))

    def aftermath(self, path: Path) -> list[str]:
        """What the recording says of the server's messages and its end."""
        import wire

        if not path.exists():
            return ["the server was never started"]
        rec = record.read(path)
        _, problems = wire.check(rec, record.SERVER)
        if (count := rec.progress_count()) != verdict.PROGRESS_STEPS:
            problems.append(f"{count} progress notifications instead of {verdict.PROGRESS_STEPS}")
        if rec.exit_status != 0:
            problems.append(f"the server's exit status: {rec.exit_status}")
        elif rec.exit_delay_s is None or rec.exit_delay_s > EXIT_SECONDS:
            problems.append(f"the server ended {rec.exit_delay_s} s after its input did")
        if left := left_behind(rec.pid):
            problems.append(f"left behind by the server: {left}")
        return problems


@dataclass
class Driven:
    """One of our clients driving one server of others in one revision."""

    client: str
    command: list[str]
    server: str
    revision: str

    @property
    def name(self) -> str:
        return f"our {self.client} client {self.revision} -> {self.server}"

    def run(self, into: Path) -> list[str]:
        import wire

        stem = into / re.sub(r"\W+", "-", self.name)
        server, _, write = PEERS[self.server]
        script = write(self.revision)
        steps = [step for step, _ in script]
        said, problems = behind_tee(self.command, self.revision, server, steps, stem)
        problems = scripts.judge(script, said) + problems
        if not stem.with_suffix(".rec").exists():
            return [*problems, "the server was never started"]
        rec = record.read(stem.with_suffix(".rec"))
        if left := left_behind(rec.pid):
            problems.append(f"left behind by the server: {left}")
        return problems + wire.check(rec, record.CLIENT)[1]


@dataclass
class Rules:
    """The harness's own tests."""

    name = "the tee and the rules of the wire"

    def run(self, _into: Path) -> list[str]:
        command = [sys.executable, "-m", "unittest", "--quiet", "test_tee", "test_wire"]
        done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout.splitlines() if done.returncode else []


@dataclass
class Traces:
    """What the tests of one package made it send."""

    folder: Path

    @property
    def name(self) -> str:
        return f"every message of the {self.folder.name} tests"

    def run(self, _into: Path) -> list[str]:
        import wire

        count, problems = wire.check_traces(self.folder)
        return problems if count else ["nothing was traced"]


@dataclass
class BadFrames:
    """The corpus of bad frames, over raw pipes."""

    server: str
    command: list[str]

    @property
    def name(self) -> str:
        return f"bad frames -> {self.server}"

    def run(self, _into: Path) -> list[str]:
        eras = bad_frames.run(self.command)
        return [f"{era}: {problem}" for era, (_, problems) in eras.items() for problem in problems]


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


def commands(name: str) -> dict[str, list[str]]:
    """The servers that one `--server` means, with their command lines."""
    if name == "reference":
        return {label: list(map(str, command)) for label, command in REFERENCE.items()}
    if name not in OURS:
        words = shlex.split(name)
        return {Path(words[0]).name: words}
    print(f"  building the {name} diagnostic server …", file=sys.stderr, flush=True)
    tool = ["cargo", "xtask", "diagnostic", "--lang", name, "--debug", "--print"]
    done = subprocess.run(tool, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(tool)} failed")
    return {name: shlex.split(done.stdout.strip().splitlines()[-1])}


def driver(name: str, server: list[str]) -> list[str]:
    """Our client in that language, as a driver of scripts; its server's command names the interpreter."""
    if name == "python":
        return [server[0], str(HERE / "drivers" / "python" / "driver.py")]
    if name == "node":
        return ["node", str(HERE / "drivers" / "node" / "driver.mjs")]
    build = ["cargo", "build", "--quiet", "-p", "interop-driver"]
    if subprocess.run(build, cwd=HERE.parent).returncode:
        sys.exit(f"{' '.join(build)} failed")
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    return [str(target / "debug" / "interop-driver")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", metavar="NAME|CMD", help="default: rust, python and node")
    parser.add_argument("--only", default="", metavar="REGEX", help="only sessions whose name matches")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="sessions at once (default %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the sessions and stop")
    options = parser.parse_args()

    if not options.list:
        install.install()
        if not os.environ.get("MCPBOLT_INTEROP"):  # the schema validator lives in the environment just made
            os.execve(install.PYTHON, [str(install.PYTHON), *sys.argv], {**os.environ, "MCPBOLT_INTEROP": "1"})
    servers = {}
    for name in options.server or OURS:
        servers |= {name: []} if options.list else commands(name)
    # The longest first. Bad frames not to the reference servers: the official SDKs are silent about most of it.
    played = (BadFrames(server, command) for server, command in servers.items() if server not in REFERENCE)
    sessions: list[Rules | Session | Driven | Traces | BadFrames] = [Rules(), *played]
    sessions += [
        Session(server, command, client, revision)
        for server, command in servers.items()
        for client, (_, revisions) in CLIENTS.items()
        for revision in revisions
    ]
    for client in filter(OURS.__contains__, servers):
        command = [] if options.list else driver(client, servers[client])
        sessions += [
            Driven(client, command, peer, revision)
            for peer, (_, revisions, _) in PEERS.items()
            for revision in revisions
        ]
    traces = install.CACHE.parent / "wire"
    sessions += map(Traces, sorted(traces.iterdir()) if traces.is_dir() else [])
    sessions = [session for session in sessions if re.search(options.only, session.name)]
    if options.list:
        print(*(session.name for session in sessions), sep="\n")
        return 0
    return play(sessions, options.jobs)


def play(sessions: list[Rules | Session | Driven | Traces | BadFrames], jobs: int) -> int:
    import wire

    if wire.schema_root() is None:
        print("SKIPPED: no official schemas (../shared or $MCPBOLT_SHARED): messages are not validated")
    into = install.CACHE / "run"
    into.mkdir(exist_ok=True)
    began, failed = time.monotonic(), 0
    with ThreadPoolExecutor(jobs) as pool:
        playing = {pool.submit(session.run, into): session for session in sessions}
        for number, done in enumerate(as_completed(playing), 1):
            session = playing[done]
            error = done.exception()
            problems = [f"the harness failed: {error!r}"] if error else done.result()
            failed += bool(problems)
            print(f"  [{number:>3}/{len(sessions)}] {'FAILED' if problems else 'ok    '} {session.name}", flush=True)
            for problem in problems[:10]:
                print(f"          {problem}")
            if len(problems) > 10:
                print(f"          … and {len(problems) - 10} more")
    print(f"interop: {len(sessions) - failed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    return 1 if failed or not sessions else 0


if __name__ == "__main__":
    sys.exit(main())
