#!/usr/bin/env python3
"""Proves mcpbolt against MCP software not written here.

    python3 interop/run.py                        everything
    python3 interop/run.py --server rust          our Rust server and client
    python3 interop/run.py --only 'node-v2.*2026' the sessions whose names match
    python3 interop/run.py --table                draws the README's table anew

Every client of others drives our servers, and our clients drive every server of others, in every
revision that they speak, through every feature that both have. In between stands tee.py, and
afterwards every message that our side sent is checked against the official schema of its revision;
then comes the corpus of bad frames. What the tests of the packages left in `.cache/wire` is held
against the schemas, too. `--server` takes rust, python or node (ours), or reference (clients of
others on servers of others, which proves this harness); it may be given several times.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import bad_frames
import install
import peers
import table
from sessions import Session

HERE = install.HERE


@dataclass
class Rules:
    """The harness's own tests."""

    name = "the tee, the rules of the wire, the table"

    def run(self, _into: Path) -> list[str]:
        command = [sys.executable, "-m", "unittest", "--quiet", "test_tee", "test_wire"]
        done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        readme = (HERE / "README.md").read_text()
        stale = [] if table.drawn(readme) == readme else ["README.md has another table: run.py --table draws it anew"]
        return stale + (done.stdout.splitlines() if done.returncode else [])


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


Work = Rules | Session | Traces | BadFrames


def planned(languages: list[str], build: bool) -> list[Work]:
    """All there is to do, the longest first."""
    sessions: list[Session] = []
    raw: list[Work] = []
    for language in languages:
        if language == "reference":
            sessions += [
                Session(client, server, revision)
                for client in peers.CLIENTS.items()
                for server in peers.SERVERS.items()
                for revision in shared(client[1], server[1])
                if not server[1].script
            ]
            continue
        diagnostic = peers.diagnostic(language) if build else ["python3"]
        client, server = peers.ours(language, diagnostic[0], build)
        raw.append(BadFrames(language, diagnostic))
        for name, peer in peers.CLIENTS.items():
            sessions += [Session((name, peer), (language, server), revision) for revision in shared(peer, server)]
        for name, peer in peers.SERVERS.items():
            pair = (f"our {language}", client), (name, peer)
            sessions += [Session(*pair, revision) for revision in shared(client, peer)]
    traces = install.CACHE.parent / "wire"
    raw += map(Traces, sorted(traces.iterdir()) if traces.is_dir() else [])
    return [Rules(), *raw, *sessions]


def shared(client: peers.Peer, server: peers.Peer) -> list[str]:
    return [revision for revision in client.revisions if revision in server.revisions]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", metavar="NAME", choices=[*peers.OURS, "reference"])
    parser.add_argument("--only", default="", metavar="REGEX", help="only sessions whose name matches")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="sessions at once (default %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the sessions and stop")
    parser.add_argument("--table", action="store_true", help="draw the README's table anew and stop")
    options = parser.parse_args()

    if options.table:
        readme = HERE / "README.md"
        readme.write_text(table.drawn(readme.read_text()))
        return 0
    if not options.list:
        install.install()
        if not os.environ.get("MCPBOLT_INTEROP"):  # the schema validator lives in the environment just made
            os.execve(install.PYTHON, [str(install.PYTHON), *sys.argv], {**os.environ, "MCPBOLT_INTEROP": "1"})
    work = planned(options.server or list(peers.OURS), build=not options.list)
    work = [one for one in work if re.search(options.only, one.name)]
    if options.list:
        print(*(one.name for one in work), sep="\n")
        return 0
    return play(work, options.jobs)


def cpu_seconds() -> float:
    """What this process and those that it started have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def play(work: list[Work], jobs: int) -> int:
    import wire

    if wire.schema_root() is None:
        print("SKIPPED: no official schemas (../shared or $MCPBOLT_SHARED): messages are not validated")
    into = install.CACHE / "run"
    into.mkdir(exist_ok=True)
    began, used, failed = time.monotonic(), cpu_seconds(), 0
    with ThreadPoolExecutor(jobs) as pool:
        playing = {pool.submit(one.run, into): one for one in work}
        for number, done in enumerate(as_completed(playing), 1):
            error = done.exception()
            problems = [f"the harness failed: {error!r}"] if error else done.result()
            failed += bool(problems)
            print(f"  [{number:>3}/{len(work)}] {'FAILED' if problems else 'ok    '} {playing[done].name}", flush=True)
            for problem in problems[:10]:
                print(f"          {problem}")
            if len(problems) > 10:
                print(f"          … and {len(problems) - 10} more")
    print(f"{cpu_seconds() - used:.0f} s of CPU time")
    print(f"interop: {len(work) - failed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    return 1 if failed or not work else 0


if __name__ == "__main__":
    sys.exit(main())
