"""`run(…, workers=…)`: several processes at one address, which are killed, replaced and ended while clients call."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from mcpbolt import Client, ServeOptions, Server, SharedStore
from stores import valkey
from support import coroutine

PROGRAM = """
import asyncio, os, sys
from mcpbolt import Server

server = Server("many", "1.0.0")

@server.tool
async def process() -> int:
    return os.getpid()

@server.tool
async def slow() -> int:
    await asyncio.sleep(0.1)
    return os.getpid()

@server.tool
async def told() -> int:
    print("begun", file=sys.stderr, flush=True)
    await asyncio.sleep(0.1)
    return os.getpid()

@server.tool
async def stuck() -> None:
    print("stuck", file=sys.stderr, flush=True)
    await asyncio.sleep(600)

@server.tool
def blocking() -> str:
    return sys.argv[1]

if __name__ == "__main__":
    server.run("http://127.0.0.1:0/mcp", workers=2)
"""

THREADED = """
thread = Thread(target=server.run, args=("http://127.0.0.1:0/mcp",), kwargs={"workers": 2})
thread.start()
thread.join()
"""

HANGS = 60.0
"""Seconds after which a call hangs."""


class Caller:
    """A client of 2026-07-28 that keeps its connection."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._connection: http.client.HTTPConnection | None = None

    def call(self, tool: str) -> str:
        """The text of the answer. Raises `OSError` or `HTTPException` if the connection breaks off before that."""
        connection = self._connection or http.client.HTTPConnection(self._place, timeout=HANGS)
        self._connection = None
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": {}, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.will_close:
            connection.close()
        else:
            self._connection = connection
        return str(answer["result"]["content"][0]["text"])


class Tree:
    """A program that serves with workers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self.said = process.stderr.readline()
        found = re.search(r"many listens on http://(\S+)/mcp, with 2 workers", self.said)
        assert found, self.said + process.stderr.read()
        self.place = found[1]

    def workers(self) -> set[int]:
        return {int(Caller(self.place).call("process")) for _ in range(40)}

    def children(self) -> set[int]:
        running = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        rows = [row.split() for row in running.stdout.splitlines()]
        return {int(pid) for pid, state in rows if not state.startswith("Z")}


@contextmanager
def started(folder: Path, text: str = PROGRAM) -> Iterator[subprocess.Popen[str]]:
    """A program that has been started, and may not serve yet."""
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, str(program), "an argument"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def tree(folder: Path, text: str = PROGRAM) -> Iterator[Tree]:
    with started(folder, text) as process:
        yield Tree(process)


def comes(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.02)
    return False


class Load:
    """Clients that call without a pause."""

    def __init__(self, place: str, count: int = 4) -> None:
        self.answered = 0
        self.lost = 0
        self.over = Event()
        self.threads = [Thread(target=self._run, args=(Caller(place),)) for _ in range(count)]

    def _run(self, caller: Caller) -> None:
        while not self.over.is_set():
            try:
                caller.call("slow")
                self.answered += 1
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                self.lost += 1

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        assert comes(lambda: self.answered > 10)
        return self

    def __exit__(self, *_: Any) -> None:
        before = self.answered
        went_on = comes(lambda: self.answered > before + 10)
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert went_on


def test_the_program_runs_in_each_worker_with_its_arguments(tmp_path: Path) -> None:
    with tree(tmp_path) as running:
        children = running.children()
        assert len(children) == 2
        assert running.workers() <= children
        assert Caller(running.place).call("blocking") == "an argument"
        running.process.terminate()
        assert running.process.wait(HANGS) == 0
        assert comes(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children))


def test_workers_are_started_outside_the_main_thread(tmp_path: Path) -> None:
    """Where signals are left to the program."""
    threaded = "\n".join([PROGRAM.partition("if __name__")[0], "from threading import Thread", THREADED])
    with tree(tmp_path, threaded) as running:
        children = running.children()
        assert running.workers() <= children
        running.process.terminate()
        assert running.process.wait(HANGS) == -signal.SIGTERM
        assert comes(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children))


def test_workers_are_replaced_without_a_lost_call(tmp_path: Path) -> None:
    with tree(tmp_path) as running:
        old = running.children()
        with Load(running.place) as load:
            running.process.send_signal(signal.SIGHUP)
            assert comes(lambda: len(running.children()) == 2 and not running.children() & old)
        assert load.lost == 0


def test_a_killed_worker_loses_its_own_calls_and_is_replaced(tmp_path: Path) -> None:
    with tree(tmp_path) as running:
        killed, kept = running.children()
        with Load(running.place) as load:
            os.kill(killed, signal.SIGKILL)
            assert comes(lambda: len(running.children()) == 2 and killed not in running.children())
        assert kept in running.children()
        assert load.lost <= len(load.threads)


STARTS = """
import os, time
if "MCPBOLT_WORKER" in os.environ:
    os.write(2, b"starting\\n")
    time.sleep(1)
"""


def test_a_signal_for_the_counters_of_the_command_ends_no_worker(tmp_path: Path) -> None:
    with started(tmp_path, STARTS + PROGRAM) as process:
        assert process.stderr is not None
        assert [process.stderr.readline() for _ in range(2)] == ["starting\n"] * 2
        process.send_signal(signal.SIGUSR1)
        running = Tree(process)
        children = running.children()
        assert len(children) == 2
        for child in children:
            os.kill(child, signal.SIGUSR1)
        assert running.workers() <= children
        assert running.children() == children


LINGERS = """
if "MCPBOLT_WORKER" in os.environ:
    import time
    parent = os.getppid()
    print("over", file=sys.stderr, flush=True)
    while os.getppid() == parent:
        time.sleep(0.1)
"""


def in_session(place: str, session: str | None, message: dict[str, Any]) -> http.client.HTTPResponse:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}
    connection = http.client.HTTPConnection(place, timeout=HANGS)
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
    return connection.getresponse()


def has_stopped(process: int) -> bool:
    return all("State:\tT" in (task / "status").read_text() for task in Path(f"/proc/{process}/task").iterdir())


def session_of_the_first_worker(running: Tree) -> str:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    for other in running.children():
        os.kill(other, signal.SIGSTOP)
        assert comes(lambda: has_stopped(other))
        response = in_session(running.place, None, {"id": 1, "method": "initialize", "params": params})
        os.kill(other, signal.SIGCONT)
        session = response.headers["Mcp-Session-Id"]
        if session.endswith("-1"):
            return session
    raise AssertionError("no session is of the first worker")


def test_a_session_of_a_worker_that_serves_no_more_is_gone(tmp_path: Path) -> None:
    """R-SES-05: its process may take long to end, for which no request waits."""
    with tree(tmp_path, PROGRAM + LINGERS) as running:
        session = session_of_the_first_worker(running)
        assert in_session(running.place, session, {"id": 2, "method": "tools/list"}).status == 200
        running.process.send_signal(signal.SIGHUP)
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == "over\n"
        assert in_session(running.place, session, {"id": 3, "method": "tools/list"}).status == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_calls_in_flight_end(tmp_path: Path, number: signal.Signals) -> None:
    with tree(tmp_path) as running:
        caller, answers = Caller(running.place), list[str]()
        thread = Thread(target=lambda: answers.append(caller.call("told")))
        thread.start()
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == "begun\n"
        running.process.send_signal(number)
        thread.join()
        assert int(answers[0]) > 0
        assert running.process.wait(HANGS) == 0
        assert "Traceback" not in running.process.stderr.read()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ('server.run(workers=2)', "stdio: has one client and one process"),
        ('server.run("tcp:127.0.0.1:0", workers=0)', "workers: at least 1, not 0"),
        ('server.run("tcp:127.0.0.1:0", workers=2, grace=-1)', "a time is a positive number of seconds"),
        ('server.run("http://0.0.0.0:0/mcp", workers=2)', "worker 1|worker 2"),
        ('server.run("tcp:127.0.0.1:0", health="http://127.0.0.1:0")', "pass workers="),
        ('server.run("tcp:127.0.0.1:0", workers=2, health="tcp:127.0.0.1:0")', "health is no address of HTTP"),
    ],
)
def test_what_workers_cannot_serve_is_told(call: str, why: str) -> None:
    program = f"from mcpbolt import Server\nserver = Server('many', '1')\n{call}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS)
    assert ran.returncode == 1
    assert re.search(why, ran.stderr), ran.stderr


def test_a_program_that_cannot_be_started_again_is_told() -> None:
    program = "from mcpbolt import Server\nServer('many', '1').run('tcp:127.0.0.1:0', workers=2)"
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, timeout=HANGS)
    assert "RuntimeError: workers= starts this program again" in ran.stderr


def test_the_command_serves_with_workers(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mcpbolt", "run", str(program), "--http", ":0", "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            running = Tree(process)
            assert running.workers() <= running.children()
        finally:
            process.terminate()
        assert process.wait(HANGS) == 0


def test_health_tells_whether_the_workers_serve(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        health = f"127.0.0.1:{free.getsockname()[1]}"

    def status(path: str) -> int:
        connection = http.client.HTTPConnection(health, timeout=HANGS)
        connection.request("GET", path)
        return connection.getresponse().status

    with tree(tmp_path, PROGRAM.replace("workers=2", f"workers=2, health='http://{health}', grace=60")) as running:
        assert status("/readyz") == status("/livez") == 200
        caller = Caller(running.place)
        thread = Thread(target=lambda: pytest.raises((OSError, http.client.HTTPException), caller.call, "stuck"))
        thread.start()
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == "stuck\n"
        running.process.terminate()
        assert comes(lambda: status("/readyz") == 503)
        assert status("/livez") == 200
        running.process.terminate()
        assert running.process.wait(HANGS) == 0
        thread.join()


def test_a_front_is_served_with_workers(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(PROGRAM.replace('"http://127.0.0.1:0/mcp", workers=2', ""))
    program = tmp_path / "front.py"
    program.write_text(
        "import sys\nfrom mcpbolt.chain import External, Front\n"
        f"external = External([sys.executable, {str(server)!r}], name='many')\n"
        "Front(external).run('http://127.0.0.1:0/mcp', workers=2)\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stderr=subprocess.PIPE, text=True) as process:
        try:
            running = Tree(process)
            assert int(Caller(running.place).call("process")) not in running.children()
        finally:
            process.terminate()
        assert process.wait(HANGS) == 0


def test_what_a_store_cannot_be_is_told(tmp_path: Path) -> None:
    keys = tmp_path / "store.keys"
    keys.write_text("a1" * 32 + "\nb2b2")
    keys.chmod(0o600)
    store = SharedStore("redis://:hush@127.0.0.1:1/0", keys)
    assert "hush" not in repr(ServeOptions(store=store))
    with pytest.raises(ValueError, match="store.keys: line 2 is not a key"):
        Server("many", "1").run("http://127.0.0.1:0/mcp", options=ServeOptions(store=store))


def test_servers_with_one_store_accept_sessions_of_each_other(tmp_path: Path) -> None:
    """R-SES-05: also while the store is away."""
    keys = tmp_path / "store.keys"
    keys.write_text("a1" * 32 + "\n" + "b2" * 32)
    keys.chmod(0o600)
    store = f"options=ServeOptions(store=SharedStore('redis://127.0.0.1:1/0', {str(keys)!r})), workers=2"
    text = PROGRAM.replace("import Server", "import ServeOptions, Server, SharedStore").replace("workers=2", store)
    with tree(tmp_path, text) as one, tree(tmp_path, text) as other:
        session = session_of_the_first_worker(one)
        for place in one.place, other.place:
            assert in_session(place, session, {"id": 2, "method": "tools/list"}).status == 200


TASKS = """
import asyncio, os, sys
from mcpbolt import Context, ServeOptions, Server, SharedStore, TaskLimits

server = Server("many", "1.0.0", task_limits=TaskLimits(poll_interval=0.02))

@server.tool(task="optional", annotations={"idempotentHint": True})
async def render(film: str, context: Context) -> str:
    assert context.begin_task()
    context.task_message(str(os.getpid()))
    while not os.path.exists(sys.argv[0] + ".goes_on"):
        await asyncio.sleep(0.02)
    return f"{film} by {os.getpid()}"

if __name__ == "__main__":
    store = SharedStore(*STORE)
    server.run("http://127.0.0.1:0/mcp", options=ServeOptions(store=store), workers=2)
"""


@coroutine
async def test_a_task_goes_on_when_its_worker_is_killed(tmp_path: Path) -> None:
    """R-TSX-18: its client finds it at any worker, and its idempotent tool runs once more."""
    keys = tmp_path / "store.keys"
    keys.write_text("a1" * 32 + "\n" + "b2" * 32)
    keys.chmod(0o600)
    with valkey(tmp_path) as store, tree(tmp_path, TASKS.replace("STORE", repr((store, str(keys))))) as running:
        address = f"http://{running.place}/mcp"

        async def said(id: str) -> int:
            # Each asks on a connection of its own, which comes to any worker.
            async with Client(address, tasks=True) as client:
                return int((await client.task(id).info()).message or 0)

        async with Client(address, tasks=True) as client:
            id = (await client.start_tool("render", {"film": "Metropolis"})).id
        assert id is not None
        first = await said(id)
        assert {await said(id) for _ in range(20)} == {first}
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + HANGS
        while (second := await said(id)) in (0, first):
            assert time.monotonic() < deadline
        (tmp_path / "program.py.goes_on").touch()
        async with Client(address, tasks=True) as client:
            assert (await client.task(id).result()).text == f"Metropolis by {second}"
