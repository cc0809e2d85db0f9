"""While Python code holds the interpreter, whatever does not need it goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import HELLO, Raw

HELD_SECONDS = 10
LIMIT_SECONDS = 0.2
"""Ten times what is promised, for nine of ten: a busy machine holds up any process at times."""
LONGEST_SECONDS = HELD_SECONDS / 4
"""Nobody waits for the interpreter."""

SERVER = """
import asyncio, ctypes
from mcpbolt import Server

server = Server('held')

@server.tool
def hold(seconds: float) -> str:
    # PyDLL keeps the interpreter's lock while the function runs.
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return 'held'

@server.tool
def echo(text: str) -> str:
    return text
"""
TASK = """
@server.tool
async def task() -> None: ...
"""
RUN = "server.run()"


def exchanges(server: Raw, number: int) -> list[float]:
    """One of everything that the engine answers by itself; how long each took."""
    took: list[float] = []

    def ask(expected: str, code: int | None = None, /, **message: object) -> None:
        began = time.monotonic()
        server.send({"jsonrpc": "2.0", "id": number, **message})
        answer = server.receive()
        took.append(time.monotonic() - began)
        assert answer["id"] == number and answer.get("error", {}).get("code") == code, answer
        assert expected in json.dumps(answer)

    ask("{}", method="ping")
    ask("hold", method="tools/list")
    ask("no such", -32601, method="no such")
    ask("nobody", -32602, method="tools/call", params={"name": "nobody"})
    # A call that is cancelled while it waits gives its id back once the engine has heard of it.
    server.call(number, "echo", text="never")
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    ask("{}", method="ping")
    return took


def held(code: str) -> list[float]:
    """How long exchanges took while the server's interpreter was held."""
    with Raw(code) as server:
        server.call("held", "hold", seconds=HELD_SECONDS)
        # Another worker would answer what is queued before the interpreter is held.
        time.sleep(0.5)
        server.call("queued", "echo", text="after")
        until = time.monotonic() + HELD_SECONDS - 1
        took: list[float] = []
        while time.monotonic() < until:
            took += exchanges(server, len(took))
            time.sleep(0.1)
        assert {server.receive()["id"], server.receive()["id"]} == {"held", "queued"}
        return took


def check(took: list[float]) -> None:
    """Holds sorted times against what is promised."""
    assert took[len(took) * 9 // 10] < LIMIT_SECONDS and took[-1] < LONGEST_SECONDS


def test_a_handler_that_holds_the_interpreter_delays_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor() as pool:
        plain, looping = pool.map(held, [SERVER + RUN, SERVER + TASK + RUN])
    for name, took in (("workers", plain), ("a loop", looping)):
        took.sort()
        with capsys.disabled():
            print(
                f"\nheld interpreter, server with {name}: {len(took)} exchanges,"
                f" median {took[len(took) // 2] * 1e3:.2f} ms, longest {took[-1] * 1e3:.2f} ms"
            )
        check(took)


OVER_HTTP = "server.run('http://127.0.0.1:0/mcp')"


def held_over_http(code: str) -> list[float]:
    """The same over HTTP, in a session, with as many queued calls as there are connections."""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    address = urlsplit(process.stderr.readline().split()[-1])
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    numbers = count(1)

    def ask(session: dict[str, str], method: str, **params: object) -> tuple[Message, dict[str, Any]]:
        assert address.hostname
        http = HTTPConnection(address.hostname, address.port, timeout=30)
        number = next(numbers)
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        http.request("POST", address.path, body, {**headers, **session})
        response = http.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        assert answer["id"] == number
        return response.headers, answer

    try:
        hello, _ = ask({}, "initialize", **HELLO["params"])
        session = {"mcp-session-id": hello["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        with ThreadPoolExecutor() as pool:
            hold = pool.submit(ask, session, "tools/call", name="hold", arguments={"seconds": HELD_SECONDS})
            time.sleep(0.5)
            call = {"name": "echo", "arguments": {"text": "after"}}
            queued = [pool.submit(ask, session, "tools/call", **call) for _ in range(3)]
            until = time.monotonic() + HELD_SECONDS - 1
            took: list[float] = []
            while time.monotonic() < until:
                for method in ("ping", "tools/list", "no such"):
                    began = time.monotonic()
                    ask(session, method)
                    took.append(time.monotonic() - began)
                time.sleep(0.1)
            assert not hold.done() and not any(one.done() for one in queued)
            for one in [hold, *queued]:
                assert not one.result()[1]["result"].get("isError")
        return took
    finally:
        process.kill()
        process.communicate()


def test_nor_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor() as pool:
        plain, looping = pool.map(held_over_http, [SERVER + OVER_HTTP, SERVER + TASK + OVER_HTTP])
    for name, took in (("workers", plain), ("a loop", looping)):
        took.sort()
        with capsys.disabled():
            print(
                f"\nheld interpreter over HTTP, server with {name}: {len(took)} exchanges,"
                f" median {took[len(took) // 2] * 1e3:.2f} ms, longest {took[-1] * 1e3:.2f} ms"
            )
        check(took)


CLIENT = """
import asyncio, ctypes, sys, time
from mcpbolt import Client, RequestTimeout

async def main():
    async with Client(sys.argv[1:]) as client:
        call = asyncio.ensure_future(client.call_tool('echo', {'text': 'never'}, timeout=0.5))
        await asyncio.sleep(0)
        print(time.monotonic() + 0.5, flush=True)
        ctypes.PyDLL(None).usleep(3_000_000)
        try:
            await call
        except RequestTimeout:
            print('timed out', flush=True)

asyncio.run(main())
"""
SILENT = """
import json, sys, time

for line in sys.stdin:
    message = json.loads(line)
    if message['method'] == 'server/discover':
        error = {'code': -32601, 'message': 'unknown'}
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'error': error}), flush=True)
    elif message['method'] == 'initialize':
        result = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
    elif message['method'] == 'notifications/cancelled':
        open(sys.argv[1], 'w').write(str(time.monotonic()))
"""


def test_a_deadline_passes_on_time_while_the_client_holds_its_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = tmp_path / "heard"
    command = [sys.executable, "-c", CLIENT, sys.executable, "-c", SILENT, str(heard)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True)
    due, ended = done.stdout.splitlines()
    assert ended == "timed out"
    late = float(heard.read_text()) - float(due)
    with capsys.disabled():
        print(f"\nheld interpreter, client: the deadline's cancellation came after {late * 1e3:.2f} ms")
    assert -0.01 < late < LONGEST_SECONDS
