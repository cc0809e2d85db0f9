"""`mcpbolt dev`: runs a server as `mcpbolt run` does, and restarts it when its files change.

On stdin and stdout this process keeps the client, and relays lines to the server's process:

    client ─▶ stdin  ─▶ Relay ─▶ server, then its successor
    client ◀─ stdout ◀─ Relay ◀─

A successor gets the client's handshake again, whose answer the client does not see. Requests that the old server has not
answered within the grace period get an error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any

ABOUT = """
  mcpbolt dev server.py                     on stdin and stdout: clients stay connected
  mcpbolt dev server.py:mcp --http :8000    at http://127.0.0.1:8000/mcp: sessions end with each restart

The Python files of the server's folder, and of each --watch folder, are watched: by watchfiles if it is installed (pip
install "mcpbolt[dev]"), else by looking at them twice a second. On stdin and stdout, requests in flight at a restart may
finish within --grace; later ones get an error. The client is told that the lists may have changed, but subscriptions, tasks
and the state of the old server are gone.
"""
PAUSE = 0.5
"""Seconds between two looks at the files, without watchfiles."""
IGNORED = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
RESTARTED = "the server was restarted before it answered; call again"
DOWN = "the server is not running: it says why on stderr, and starts again when a file changes"


def main(arguments: Sequence[str]) -> None:
    from ._run import parser

    own = ArgumentParser(add_help=False, argument_default=SUPPRESS)
    own.add_argument("--watch", action="append", metavar="FOLDER", help="a further folder whose Python files are watched")
    whole = parser("mcpbolt dev", "Run a server, and restart it when its files change.", ABOUT, [own])
    options = whole.parse_args(arguments)
    _, passed = own.parse_known_args(arguments)
    place = place_of(options.target)
    if place.endswith(".py") and not os.path.isfile(place):
        whole.error(f"there is no {place}")
    folders = [os.path.dirname(os.path.abspath(place)) if place.endswith(".py") else os.getcwd()]
    folders += getattr(options, "watch", [])
    for folder in folders:
        if not os.path.isdir(folder):
            whole.error(f"there is no folder {folder}")
    server = Server([sys.executable, "-m", "mcpbolt", "run", *passed], options.grace)
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    relay = None if options.http or (options.at or "stdio:") != "stdio:" else Relay(server)
    before = looked(folders)
    try:
        server.start(relay)
        if relay is not None:
            Thread(target=relay.serve, args=(stop,), daemon=True).start()
        for paths in changes(folders, before, stop):
            say(f"{', '.join(sorted(map(os.path.relpath, paths)))} changed; restarting")
            server.restart(relay)
    except KeyboardInterrupt:
        pass
    sys.exit(server.stop(relay))


def place_of(target: str) -> str:
    """The file or module of a target, without the name of the server in it."""
    return target if os.path.exists(target) else target.rpartition(":")[0] or target


def say(text: str) -> None:
    print(f"mcpbolt dev: {text}", file=sys.stderr, flush=True)


Looked = dict[str, tuple[int, int]]


def changes(folders: Sequence[str], before: Looked, stop: Event) -> Iterator[set[str]]:
    """The files that changed since the look before, each time that some did."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        yield from polled(folders, before, stop)
        return
    is_first = True
    pause = int(PAUSE * 1000)
    for found in watch(
        *folders, watch_filter=PythonFilter(), stop_event=stop, rust_timeout=pause, yield_on_timeout=True
    ):
        # Changes before the watch began are found by a look.
        paths = {path for _, path in found}
        if is_first:
            paths |= differing(before, looked(folders))
            is_first = False
        if paths:
            yield paths


def polled(folders: Sequence[str], before: Looked, stop: Event) -> Iterator[set[str]]:
    while not stop.wait(PAUSE):
        now = looked(folders)
        if paths := differing(before, now):
            yield paths
        before = now


def differing(before: Looked, now: Looked) -> set[str]:
    return {path for path, _ in before.items() ^ now.items()}


def looked(folders: Iterable[str]) -> Looked:
    """When each Python file was changed, and its size."""
    found = {}
    for top in folders:
        for folder, inner, files in os.walk(top):
            inner[:] = [name for name in inner if name not in IGNORED and not name.startswith(".")]
            for name in files:
                if name.endswith((".py", ".pyi")):
                    path = os.path.join(folder, name)
                    try:
                        status = os.stat(path)
                    except OSError:
                        continue  # It is gone meanwhile.
                    found[path] = (status.st_mtime_ns, status.st_size)
    return found


class Server:
    """The server's process, and its successors."""

    def __init__(self, command: Sequence[str], grace: float) -> None:
        self._command = command
        self._grace = grace
        self._process: subprocess.Popen[bytes] | None = None
        self._threads: list[Thread] = []

    def start(self, relay: Relay | None) -> None:
        pipe = None if relay is None else subprocess.PIPE
        # A file that changes again within a second, and has the same size, would be taken from its bytecode.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        process = self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, env=environment)
        self._threads = [Thread(target=self._watched, args=(process,), daemon=True)]
        if relay is not None:
            self._threads.append(Thread(target=relay.listen, args=(process,), daemon=True))
        for thread in self._threads:
            thread.start()
        if relay is not None:
            relay.begin(process)

    def restart(self, relay: Relay | None) -> None:
        # Meanwhile the lines of the client wait.
        with self._holding(relay):
            self._stop(relay)
            self.start(relay)

    def stop(self, relay: Relay | None) -> int:
        """Ends the process gracefully, by force after the grace period; returns its status, which is 0 if the process ended before it
        served."""
        with self._holding(relay):
            status = self._stop(relay)
        return 0 if status == -signal.SIGTERM else status

    @contextmanager
    def _holding(self, relay: Relay | None) -> Iterator[None]:
        """Has the relay write nothing meanwhile. A process that takes nothing, so that a write to it waits, is ended by force."""
        if relay is None:
            yield
            return
        if not relay.lock.acquire(timeout=self._grace + 2):
            if self._process is not None:
                self._process.kill()
            relay.lock.acquire()
        try:
            yield
        finally:
            relay.lock.release()

    def _stop(self, relay: Relay | None) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if relay is not None:
            relay.leave()
        if process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:
                pass
        else:
            process.terminate()
        try:
            process.wait(self._grace + 2)
        except subprocess.TimeoutExpired:
            process.kill()
        for thread in self._threads:
            thread.join(2)
        if relay is not None:
            relay.refuse_all(RESTARTED)
        return process.wait()

    def _watched(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        if process is self._process:
            say(f"the server ended with status {status}; it starts again when a file changes")


class Relay:
    """Carries the lines between the client and the server's process."""

    def __init__(self, server: Server) -> None:
        self.lock = Lock()
        self._out = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The client's handshake, which each successor gets.
        self._hello: bytes | None = None
        self._hello_id: object = None
        self._ready: bytes | None = None
        # Whether the client has its answer.
        self._is_greeted = False
        # The process whose answer to the handshake the client does not see.
        self._replayed: subprocess.Popen[bytes] | None = None
        self._offers: list[str] = []
        # The client's requests in flight: their ids, by the ids in JSON.
        self._asked: dict[str, object] = {}

    def serve(self, stop: Event) -> None:
        """Passes on what the client says, until it ends."""
        try:
            for line in sys.stdin.buffer:
                with self.lock:
                    self._take(line)
        finally:
            stop.set()

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        """Introduces the client to a new process."""
        self._process = process
        if self._hello is not None:
            self._replayed = process if self._is_greeted else None
            self._write(self._hello + (self._ready or b""))

    def leave(self) -> None:
        """Passes nothing on to the process any more."""
        self._process = None

    def _take(self, line: bytes) -> None:
        message = parsed(line)
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            self._hello, self._hello_id, self._is_greeted = line, id, False
        elif method == "notifications/initialized":
            self._ready = line
        elif method == "notifications/cancelled":
            params = message.get("params")
            self._asked.pop(json.dumps(params.get("requestId")) if isinstance(params, dict) else "", None)
        if method is not None and id is not None:
            self._asked[json.dumps(id)] = id
        if not self._write(line):
            self.refuse_all(DOWN)

    def _write(self, data: bytes) -> bool:
        """Whether the process has taken it."""
        process = self._process
        if process is None or process.stdin is None:
            return False
        try:
            process.stdin.write(data)
            process.stdin.flush()
        except (OSError, ValueError):
            return False
        return process.poll() is None

    def listen(self, process: subprocess.Popen[bytes]) -> None:
        """Passes on what a process says, until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            message = parsed(line)
            if "id" in message and "method" not in message:
                if message["id"] == self._hello_id and process is self._replayed:
                    self._replayed = None
                    self._announce()
                    continue
                self._asked.pop(json.dumps(message["id"]), None)
                if message["id"] == self._hello_id and "result" in message:
                    self._is_greeted = True
                    line = self._with_changes(message)
            self._say(line)
        if process is self._process:
            # It has ended by itself.
            self.refuse_all(DOWN)

    def _with_changes(self, answer: dict[str, Any]) -> bytes:
        """The answer to the handshake, which tells the client that lists may change, as this process does."""
        capabilities = answer["result"].get("capabilities", {})
        self._offers = [name for name in ("tools", "resources", "prompts") if name in capabilities]
        for name in self._offers:
            capabilities[name]["listChanged"] = True
        return json.dumps(answer, ensure_ascii=False).encode() + b"\n"

    def _announce(self) -> None:
        for name in self._offers:
            notice = {"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"}
            self._say(json.dumps(notice).encode() + b"\n")

    def refuse_all(self, why: str) -> None:
        """Answers all requests in flight with an error, but for the handshake, which the next process answers."""
        awaited = None if self._hello is None or self._is_greeted else json.dumps(self._hello_id)
        for key in self._asked.keys() - {awaited}:
            if (id := self._asked.pop(key, None)) is not None:
                refusal = {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": why}}
                self._say(json.dumps(refusal).encode() + b"\n")

    def _say(self, line: bytes) -> None:
        with self._out:
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:
                pass  # The client has gone, which the end of stdin says.


def parsed(line: bytes) -> dict[str, Any]:
    """A message; empty for anything else, which is passed on as it is."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
