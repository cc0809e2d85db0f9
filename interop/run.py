#!/usr/bin/env python3
"""Proves mcpbolt against MCP software not written here.

    python3 interop/run.py                        everything
    python3 interop/run.py --server rust          our Rust server and client
    python3 interop/run.py --only 'node-v2.*2026' the sessions whose names match
    python3 interop/run.py --only 'proxy'         those through `mcpbolt proxy`
    python3 interop/run.py --full                 each revision over each carrier that both have
    python3 interop/run.py --pages                a page in a browser on our servers, and logins in a browser
    python3 interop/run.py --table                draws the README's table anew

Every client of others drives our servers, and our clients drive every server of others, in every
revision that they speak, through every feature that both have: on stdin and stdout, with tee.py in
between, and on the network, where each server has all its clients one after another; and clients of
both eras and of the action dialect call one server at the same time (mixed.py); and clients log in with a real
authorization server (logins.py); and clients talk to servers of another era through a proxy or a gateway (chains.py, eras.py), and many at once
through a gateway, before servers that fail (gateway/); and sessions have eight processes, each request at another one (scattered.py); and one
trace leads from clients through a gateway to servers (spans.py). Afterwards every message that our side sent is checked against the shapes of
its revision; then comes the corpus of bad frames. What the tests of the packages left in `.cache/wire` is held against the shapes, too.
`--server` takes rust, python or node (ours), or reference (clients of others on servers of others, which proves this harness); it may be
given several times.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import bad_frames
import browser
import chains
import eras
import install
import keepers
import logins
import peers
import players
import scattered
import spans
import table
from browser import Visit
from chains import Chained
from logins import Logins
from mixed import Mixed
from sessions import Session, Visits

HERE = install.HERE


@dataclass
class Rules:
    """The harness's own tests."""

    name = "the tee, the rules of the wire, the processes, the authorization server, the table"

    def run(self, _into: Path) -> list[str]:
        command = [sys.executable, "-m", "unittest", "--quiet", "test_tee", "test_wire", "test_forked", "test_players", "test_provider"]
        done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        readme = (HERE / "README.md").read_text()
        stale = [] if table.drawn(readme) == readme else ["README.md has another table: run.py --table draws it anew"]
        return stale + (done.stdout.splitlines() if done.returncode else [])


@dataclass
class Traces:
    """The messages that the tests of one package made it send."""

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


@dataclass
class Gateways:
    """Many clients of `mcpbolt gateway`, and servers that fail."""

    name = "many clients, and servers that fail, at a gateway"

    def run(self, _into: Path) -> list[str]:
        command = [sys.executable, str(HERE / "gateway" / "run.py")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # What is wrong comes last.
        return done.stdout.splitlines()[::-1] if done.returncode else []


Work = Rules | eras.Crossing | Gateways | scattered.Scattered | spans.OneTrace | Session | Traces | BadFrames | Mixed | Logins | Visits


def visited(languages: list[str], build: bool) -> tuple[list[Work], list[Visit]]:
    """The logins in a browser, and the visits of a page to our servers."""
    chromium = browser.found() if build else "chromium"
    if chromium is None:
        sys.exit("no browser: no page speaks to our servers (Debian, Ubuntu: apt install chromium)")
    pages: list[Visit] = []
    raw: list[Work] = []
    for language in languages:
        diagnostic = peers.diagnostic(language) if build else ["python3"]
        raw += logins.in_chromium(language, diagnostic[0], chromium)
        pages += browser.visits(language, peers.ours(language, diagnostic[0])[1], chromium)
    return raw, pages


def planned(languages: list[str], build: bool, full: bool) -> tuple[list[Work], list[Session]]:
    """All there is to do beside sessions, and the sessions."""
    pairs: list[tuple[tuple[str, peers.Peer], tuple[str, peers.Peer]]] = []
    raw: list[Work] = []
    ours: dict[str, tuple[peers.Peer, peers.Peer]] = {}
    for language in languages:
        if language == "reference":
            raw += logins.planned(language)
            servers = [server for server in peers.SERVERS.items() if not server[1].script]
            pairs += itertools.product(peers.CLIENTS.items(), servers)
            continue
        diagnostic = peers.diagnostic(language) if build else ["python3"]
        client, server = ours[language] = peers.ours(language, diagnostic[0])
        raw += [BadFrames(language, diagnostic), Mixed(language, diagnostic)]
        raw += logins.planned(language, diagnostic[0])
        pairs += ((peer, (language, server)) for peer in peers.CLIENTS.items())
        pairs += (((f"our {language}", client), peer) for peer in peers.SERVERS.items())
    traces = install.CACHE.parent / "wire"
    raw += map(Traces, sorted(traces.iterdir()) if traces.is_dir() else [])
    sessions = [session for pair in pairs for session in meetings(*pair, full)]
    if {*peers.OURS} <= {*ours}:
        raw.append(spans.OneTrace(ours["python"][0].command[0]))
    if "rust" not in ours:
        return [Rules(), *raw], sessions
    # The proxy and the gateway are parts of the command, which is built with what is ours in Rust.
    return [Rules(), eras.Crossing(), Gateways(), scattered.Scattered(*ours["rust"]), *raw], sessions + chains.planned(ours)


def meetings(client: tuple[str, peers.Peer], server: tuple[str, peers.Peer], full: bool) -> Iterator[Session]:
    """Their sessions, in every revision that both speak."""
    for revision in client[1].revisions:
        if revision in server[1].revisions:
            for carrier in ("stdio", *peers.carriers(client[1], server[1], revision, full)):
                yield Session(client, server, revision, carrier)


def gathered(sessions: list[Session | Visit]) -> list[Work]:
    """Those on the network by their server: the longest work, and so the first."""
    servers: dict[str, Visits] = {}
    alone: list[Work] = []
    for session in sessions:
        if session.carrier == "stdio" or isinstance(session, Chained):
            alone.append(session)
        else:
            servers.setdefault(session.server[0], Visits(session.server, [])).sessions.append(session)
    return [*sorted(servers.values(), key=lambda visits: -len(visits.sessions)), *alone]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", metavar="NAME", choices=[*peers.OURS, "reference"])
    parser.add_argument("--only", default="", metavar="REGEX", help="only sessions whose name matches")
    parser.add_argument("--full", action="store_true", help="each revision over each carrier that both have")
    parser.add_argument("--pages", action="store_true", help="only in a browser (Chromium): a page on our servers, and logins")
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
    languages, build = options.server or list(peers.OURS), not options.list
    raw, sessions = visited(languages, build) if options.pages else planned(languages, build, options.full)
    raw, sessions = ([one for one in some if re.search(options.only, one.name)] for some in (raw, sessions))
    if options.list:
        print(*(one.name for one in [*raw, *sessions]), sep="\n")
        return 0
    sides = [peer for one in sessions if isinstance(one, Session) for _, peer in (one.client, one.server)]
    commands = [command for peer in sides for command in peer.commands()]
    return play([*gathered(sessions), *raw], commands, options.jobs)


def cpu_seconds() -> float:
    """The processor time of this process and those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Tally:
    """The counts and the report of what has been done."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passed = 0
        self.failures: list[str] = []

    def add(self, name: str, problems: list[str]) -> None:
        more = [f"… and {len(problems) - 10} more"] if len(problems) > 10 else []
        told = "\n".join([f"{'FAILED' if problems else 'ok    '} {name}", *(f"          {one}" for one in [*problems[:10], *more])])
        with self.lock:
            self.passed += not problems
            self.failures += [told] if problems else []
            print(f"  [{self.passed + len(self.failures):>3}] {told}", flush=True)

    def do(self, work: Work, into: Path) -> None:
        try:
            if isinstance(work, Visits | Logins):
                for name, problems in work.run(into):
                    self.add(name, problems)
            else:
                self.add(work.name, work.run(into))
        except Exception as error:
            name = work.server[0] if isinstance(work, Visits) else work.name
            self.add(name, [f"the harness failed: {error!r}"])


def play(work: list[Work], commands: list[list[str]], jobs: int) -> int:
    import wire

    wire.schemas()  # once, before the sessions begin side by side
    into = install.CACHE / "run"
    into.mkdir(exist_ok=True)
    began, used, tally = time.monotonic(), cpu_seconds(), Tally()
    with keepers.kept(commands), players.gathered(), ThreadPoolExecutor(jobs) as pool:
        for one in work:
            pool.submit(tally.do, one, into)
    print(f"{cpu_seconds() - used:.0f} s of CPU time")
    print(*tally.failures, sep="\n", end="\n" if tally.failures else "")
    print(f"interop: {tally.passed} passed, {len(tally.failures)} failed in {time.monotonic() - began:.0f} s")
    return 1 if tally.failures or not work else 0


if __name__ == "__main__":
    sys.exit(main())
