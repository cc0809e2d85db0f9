"""A page in a browser that speaks Streamable HTTP to a server of another origin."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import install
import network
import record
import scripts
from peers import Peer

PAGE = install.HERE / "page"
PAGE_SECONDS = 60
INSTALL_SECONDS = 300
CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
CHROMIUM += ["--disable-background-networking", "--remote-debugging-port=0"]
STEPS = list(range(1, 21))
# The steps that a page of this machine may take.
WELCOME = {
    "session": {
        "revision": "2025-11-25",
        "named": True,
        "initialized": 202,
        "listed": "application/json",
        "steps": STEPS,
        "answered": "done",
        "told_of": "notifications/tools/list_changed",
        "asked": "said hi",
        "ended": True,
        "after": 404,
    },
    "alone": {
        "versions": {"2026-07-28"},
        "text": "é 漢字 🦀",
        "kind": "application/json",
        "steps": STEPS,
        "given_up": "TimeoutError",
        "sleeps": {"active": 0, "started": 1, "finished": 0, "cancelled": 1},
        "mismatch": {"status": 400},
    },
}
FAILED = {"failed": "TypeError: Failed to fetch"}
# A page of any other origin learns nothing.
FOREIGN = {"session": FAILED, "alone": FAILED}


class Pages(SimpleHTTPRequestHandler):
    """Serves the page, and is told its outcome."""

    def __init__(self, outcomes: queue.Queue[str], *args: object) -> None:
        self.outcomes = outcomes
        super().__init__(*args, directory=str(PAGE))

    def do_POST(self) -> None:
        self.outcomes.put(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


Pages.extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}


@dataclass
class Visit:
    """A page at that host, and a server of ours."""

    server: tuple[str, Peer]
    browser: str
    host: str
    expected: dict
    carrier = "http"

    @property
    def name(self) -> str:
        return f"a page of {self.host} -> {self.server[0]} over http"

    def visit(self, into: Path, place: network.Place) -> list[str]:
        log = into / re.sub(r"\W+", "-", self.name)
        found = self.outcome(place.address("http"), log.with_suffix(".log"))
        if found is None:
            return [f"no outcome after {PAGE_SECONDS} s (see {log}.log)"]
        wrong = [
            f"{part}: {json.dumps(found.get(part), ensure_ascii=False)}, not {expected}"
            for part, expected in self.expected.items()
            if not scripts.holds(expected, found.get(part))
        ]
        # Both eras in one trace: only each message by itself.
        return wrong + [problem for rec in place.traced() for problem in self.judged(rec)]

    def judged(self, rec: record.Recording) -> list[str]:
        import wire

        if self.expected is FOREIGN:
            return ["something of it reached the server"]
        return wire.check(rec, record.SERVER, together=False)[1]

    def outcome(self, server: str, log: Path) -> dict | None:
        """Runs the page in the browser, and returns its reports."""
        outcomes: queue.Queue[str] = queue.Queue()
        pages = ThreadingHTTPServer((network.HOST, 0), partial(Pages, outcomes))
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, log.open("wb") as output:
            url = f"http://{self.host}:{pages.server_port}/?server={server}"
            command = [self.browser, *CHROMIUM, f"--user-data-dir={profile}", url]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                return json.loads(outcomes.get(timeout=PAGE_SECONDS))
            except queue.Empty:
                return None
            finally:
                process.terminate()
                process.wait()
                pages.shutdown()
                pages.server_close()


def visits(language: str, server: Peer, browser: str) -> list[Visit]:
    """The pages that visit that server of ours."""
    named = (language, server)
    return [Visit(named, browser, "localhost", WELCOME), Visit(named, browser, "foreign.localhost", FOREIGN)]


def found() -> str | None:
    """The browser, which root has installed by Debian's package manager if it is not there."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if not any(map(shutil.which, names)) and os.geteuid() == 0 and shutil.which("apt-get"):
        print("  installing chromium …", flush=True)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(["apt-get", "-q", *command], timeout=INSTALL_SECONDS, **quiet)
    return next(filter(None, map(shutil.which, names)), None)
