"""While Python code holds the interpreter, whatever does not need it goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import Raw

HELD_SECONDS = 10
LIMIT_SECONDS = 0.2
"""Ten times what is promised."""

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
    ask("string", -32602, method="tools/call", params={"name": "echo", "arguments": {"text": 7}})
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
        assert took[-1] < LIMIT_SECONDS


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
    assert -0.01 < late < LIMIT_SECONDS
