"""The process of a server: what reaches its wire, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import DIAGNOSTIC, ROOT, Raw

SERVER = """
import sys, time, asyncio, ctypes
from mcpbolt import Server
server = Server('process')

@server.tool
def hold(seconds: float) -> str:
    # PyDLL keeps the interpreter's lock while the function runs.
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return 'held'

@server.tool
def block(seconds: float) -> str:
    time.sleep(seconds)
    return 'blocked'

@server.tool
def stray() -> str:
    print('printed')
    sys.stdout.write('written')
    sys.__stdout__.write('kept')
    import os
    os.write(1, b'to the descriptor')
    os.system('echo from a child')
    return repr(sys.stdin.read())
"""
TASKS = """
@server.tool
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return 'napped'

@server.tool
async def stubborn() -> str:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""
PLAIN = SERVER + "server.run(grace=0.5)"
LOOPING = SERVER + TASKS + "server.run(grace=0.5)"


@pytest.mark.parametrize("code", [PLAIN, LOOPING], ids=["plain", "looping"])
def test_nothing_but_messages_reaches_the_wire(code: str) -> None:
    with Raw(code, subprocess.PIPE) as server:
        server.call(1, "stray")
        assert server.receive()["result"]["content"] == [{"type": "text", "text": "''"}]
        status, rest, err = server.end(5)
        assert (status, rest) == (0, [])
        for text in ("printed\n", "written", "to the descriptor", "from a child\n"):
            assert text in err


@pytest.mark.parametrize(("code", "tool"), [(PLAIN, "block"), (LOOPING, "block"), (LOOPING, "nap")])
def test_what_is_in_flight_is_answered_after_the_end_of_input(code: str, tool: str) -> None:
    with Raw(code) as server:
        server.call(1, tool, seconds=0.3)
        server.call(2, tool, seconds=0.01)
        status, answers, _ = server.end(5)
        assert status == 0
        assert sorted(answer["id"] for answer in answers) == [1, 2]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"),
    [(PLAIN, "block", {"seconds": 60}), (LOOPING, "stubborn", {}), (PLAIN, "hold", {"seconds": 60})],
    ids=["blocked", "stubborn", "holding"],
)
def test_a_wedged_handler_does_not_hold_the_process(code: str, tool: str, arguments: dict[str, float]) -> None:
    with Raw(code) as server:
        server.call(1, tool, **arguments)
        time.sleep(0.2)
        began = time.monotonic()
        _, answers, _ = server.end(10)
        assert answers == []
        assert 0.45 < time.monotonic() - began < 2


@pytest.mark.parametrize("code", [PLAIN, LOOPING], ids=["plain", "looping"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(code: str, number: signal.Signals) -> None:
    with Raw(code, subprocess.PIPE) as server:
        server.call(1, "block", seconds=0.2)
        time.sleep(0.1)
        server.process.send_signal(number)
        assert server.receive()["id"] == 1
        assert server.process.wait(5) == 0
        assert "Traceback" not in server.end(5)[2]


@pytest.mark.parametrize("tasks", ["", TASKS], ids=["plain", "looping"])
def test_a_second_signal_does_not_wait(tasks: str) -> None:
    with Raw(SERVER + tasks + "server.run(grace=60)") as server:
        server.call(1, "hold", seconds=60)
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(0.3)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) != 0


@pytest.mark.parametrize("code", [PLAIN, LOOPING], ids=["plain", "looping"])
def test_a_reader_that_is_gone_ends_even_an_idle_server(code: str) -> None:
    with Raw(code, subprocess.PIPE) as server:
        assert server.process.stdout and server.process.stderr
        server.process.stdout.close()
        server.process.wait(5)
        assert b"Traceback" not in server.process.stderr.read()


WRAPPER = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, '-c', sys.argv[1]])
os.write(2, f'{child.pid}\\n'.encode())
child.wait()
"""


@pytest.mark.parametrize("tool", ["", "block", "hold"], ids=["idle", "blocked", "holding"])
def test_the_death_of_its_parent_ends_it(tool: str) -> None:
    with Raw([sys.executable, "-c", WRAPPER, LOOPING], subprocess.PIPE) as server:
        assert server.process.stderr
        pid = int(server.process.stderr.readline())
        if tool:
            server.call(1, tool, seconds=60)
            time.sleep(0.2)
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + 10
        while is_running(pid):
            assert time.monotonic() < until
            time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether a process still runs; one that nobody has reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_idle_task_that_ends_with_its_server_is_cancelled() -> None:
    code = SERVER + TASKS + "server.run(grace=0.1)"
    with Raw(code, subprocess.PIPE) as server:
        server.call(1, "nap", seconds=60)
        time.sleep(0.2)
        _, answers, err = server.end(5)
        assert answers == [] and "Traceback" not in err


def test_a_server_runs_in_a_loop_that_is_there() -> None:
    code = SERVER + TASKS + "asyncio.run(asyncio.wait_for(server.serve(grace=1), 20)); print('after')"
    with Raw(code) as server:
        server.call(1, "nap", seconds=0)
        assert server.receive()["result"]["content"][0]["text"] == "napped"
        assert server.process.stdin
        server.process.stdin.close()
        assert server.process.wait(5) == 0
        assert server.process.stdout and server.process.stdout.read() == b"after\n"


@pytest.mark.parametrize("era", ["before any envelope", "2025-03-26", "2025-11-25", "2026-07-28"])
def test_bad_frames_have_their_one_outcome(era: str) -> None:
    import json

    corpus = ROOT / "corpus" / "bad_frames.json"
    cases = json.loads(corpus.read_text())
    assert era in cases["eras"] and len(cases["frames"]) > 50
    command = [sys.executable, str(ROOT / "interop" / "bad_frames.py"), "--only", f"^{era}: (?!.*over the limit)", "--", *DIAGNOSTIC]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert era in done.stdout
