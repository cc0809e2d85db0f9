"""`mcpbolt dev`: a server that restarts when its files change, while its clients stay."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mcpbolt import Client, PeerError
from support import Raw, client, coroutine

SERVER = """
import asyncio
from mcpbolt import Server

server = Server("dev", "{0}")

@server.tool
def version() -> str:
    return "{0}"

@server.tool
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"
"""
COMMANDS = {
    "watchfiles": [sys.executable, "-m", "mcpbolt", "dev"],
    "polled": [sys.executable, "-c", "import sys; sys.modules['watchfiles'] = None; from mcpbolt._run import main; main()", "dev"],
}
COMMAND = COMMANDS["polled"]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER.format("one"))
    return path


async def until(holds: Callable[[], Any]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", COMMANDS)
@coroutine
async def test_a_client_stays_connected(how: str, server: Path) -> None:
    """It is told that the lists have changed."""
    told: list[str] = []
    command = [*COMMANDS[how], str(server)]
    async with client(command, on_list_changed=told.append, revision="2025-11-25") as connected:
        assert (await connected.call_tool("version")).text == "one"
        server.write_text(SERVER.format("two").replace("version()", "edition()"))
        await until(lambda: told)
        assert [tool.name for tool in await connected.list_tools()] == ["edition", "wait"]
        assert (await connected.call_tool("edition")).text == "two"


@coroutine
async def test_requests_in_flight_are_answered_and_so_are_those_of_a_server_that_does_not_start(server: Path) -> None:
    async with client([*COMMAND, str(server), "--grace", "3"]) as connected:
        await connected.call_tool("version")
        short = asyncio.ensure_future(connected.call_tool("wait", {"seconds": 1}))
        long = asyncio.ensure_future(connected.call_tool("wait", {"seconds": 60}))
        await asyncio.sleep(0.1)
        server.write_text("1 +")
        assert (await short).text == "waited"
        with pytest.raises(PeerError):
            await long
        with pytest.raises(PeerError, match="not running"):
            while True:
                await connected.call_tool("version")
        server.write_text(SERVER.format("three"))
        for _ in range(1000):
            try:
                assert (await connected.call_tool("version")).text == "three"
                break
            except PeerError:
                await asyncio.sleep(0.02)


@coroutine
async def test_a_client_that_comes_before_the_server_starts_is_greeted_when_it_does(server: Path) -> None:
    server.write_text("1 +")
    asyncio.get_running_loop().call_later(1.5, server.write_text, SERVER.format("one"))
    async with client([*COMMAND, str(server)]) as connected:
        assert (await connected.call_tool("version")).text == "one"


def test_a_server_that_reads_nothing_is_replaced(server: Path) -> None:
    with Raw([*COMMAND, str(server), "--grace", "0"], subprocess.PIPE) as served:
        assert served.process.stderr
        server.write_text("import time; time.sleep(1000)")
        assert b"restarting" in served.process.stderr.readline()
        filler = {"jsonrpc": "2.0", "method": "notifications/filler", "params": {"text": "x" * 1000}}
        # Beyond what the pipes hold.
        sender = Thread(target=served.send, args=[filler] * 400)
        sender.start()
        time.sleep(0.5)
        server.write_text(SERVER.format("two"))
        sender.join(60)
        # Calls that come before the new server runs are answered with an error.
        answer: dict[str, Any] = {}
        for id in range(1000):
            served.call(id, "version")
            while (answer := served.receive()).get("id") != id:
                pass
            if "result" in answer:
                break
            time.sleep(0.02)
        assert answer["result"]["content"][0]["text"] == "two"


def test_it_ends_with_its_client_and_with_a_signal(server: Path) -> None:
    with Raw([*COMMAND, str(server)], subprocess.PIPE) as served:
        served.call(1, "version")
        assert served.receive()["result"]["content"][0]["text"] == "one"
        assert served.end(20)[0] == 0
    with Raw([*COMMAND, str(server)], subprocess.PIPE) as served:
        served.process.send_signal(signal.SIGTERM)
        assert served.end(20)[0] == 0


@coroutine
async def test_over_http_the_server_restarts(server: Path) -> None:
    command = [*COMMAND, str(server), "--http", ":0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr
    try:
        for expected in ("one", "two"):
            while b"listens on" not in (line := await process.stderr.readline()):
                assert line
            async with Client(line.split()[-1].decode()) as connected:
                assert (await connected.call_tool("version")).text == expected
            server.write_text(SERVER.format("two"))
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_what_cannot_be_served_says_why(server: Path) -> None:
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 30, "cwd": server.parent}
    for arguments, said in [
        (["nowhere.py"], "there is no nowhere.py"),
        (["server.py", "--watch", "nowhere"], "there is no folder nowhere"),
        ([], "target"),
    ]:
        done = subprocess.run([*COMMAND, *arguments], **options)
        assert done.returncode == 2 and said in done.stderr, done
    shown = subprocess.run([*COMMAND, "--help"], **options)
    assert shown.returncode == 0 and all(word in shown.stdout for word in ("--watch", "--http", "--grace", "watchfiles"))


def test_only_python_files_are_looked_at(tmp_path: Path) -> None:
    from mcpbolt._dev import looked

    for name in ("a.py", "b.txt", "package/c.py", "package/__pycache__/d.py", ".git/e.py", "venv/f.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert sorted(os.path.relpath(path, tmp_path) for path in looked([str(tmp_path)])) == ["a.py", "package/c.py"]
    before = looked([str(tmp_path)])
    time.sleep(0.01)
    (tmp_path / "a.py").write_text("1")
    assert looked([str(tmp_path)]) != before
