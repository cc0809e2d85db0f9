"""Servers under releases whose messages the engine carries: run in an environment that has one. Every answer is compared
with what the server says by itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from published.talk import Talk, masked
from support import coroutine

from mcpbolt import Client
from mcpbolt.mcp import _gate

FILE = Path(__file__).parent / "existing" / "former.py"
CAPABILITIES = {"sampling": {}, "roots": {}}
ANSWERS = {
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "said"}},
    "roots/list": {"roots": [{"uri": "file:///home/me"}]},
}


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


STEPS = [
    *((method, {}) for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping", "no/such")),
    *(call("add", a=a) for a in (1, "5", "x", None, 2**70)),
    *(call("echo", text=text) for text in ("", "ü\n🎉", "a" * 5000, 1)),
    call("fail"),
    call("none"),
    ("tools/call", {"name": "progress", "arguments": {"n": 3}, "_meta": {"progressToken": "token"}}),
    call("ask"),
    ("resources/read", {"uri": "memo://a"}),
    ("resources/read", {"uri": "memo://none"}),
    ("prompts/get", {"name": "greet", "arguments": {"who": "me"}}),
    ("prompts/get", {"name": "greet"}),
]


class Answering(Talk):
    """A client that answers what it is asked."""

    def line(self) -> bytes:
        while True:
            line = super().line()
            message = json.loads(line or b"{}")
            if "id" not in message or "method" not in message:
                return line
            self.send({"id": message["id"], "result": ANSWERS[message["method"]]})


def said(kind: str, how: str, folder: Path) -> tuple[list[Any], str, int]:
    command = [sys.executable, "-m", "mcpbolt", "exec", str(FILE), kind]
    environment = {"MCPBOLT": how, "MCPBOLT_REPORT": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}
    with Answering(command, folder, environment, "2025-11-25") as talk:
        client = {"name": "raw", "version": "1"}
        answers = [talk.request("initialize", {"protocolVersion": talk.revision, "capabilities": CAPABILITIES, "clientInfo": client})]
        talk.send({"method": "notifications/initialized"})
        answers += [talk.request(*step) for step in STEPS]
        number = talk.begin(*call("slow"))
        talk.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        last = talk.request(*call("add", a=2))
        # By itself the server answers what was cancelled, against the specification.
        last.pop("before", None)
        return masked([*answers, last]), talk.stderr(), talk.end()


def test_this_release_is_carried() -> None:
    assert _gate.known("mcp") == _gate.known("fastmcp") == _gate.CARRIED


@pytest.mark.parametrize("kind", ["highlevel", "lowlevel", "fastmcp"])
def test_a_carried_server_says_the_same_as_by_itself(kind: str, tmp_path: Path) -> None:
    (theirs, quiet, end), (ours, told, own_end) = (said(kind, how, tmp_path) for how in ("off", "on"))
    assert f"the engine carries the messages, the sessions of mcp {version('mcp')}" in told, told
    assert "mcpbolt: " not in quiet
    assert end == own_end == 0
    differences = [(step, *pair) for step, *pair in zip([None, *STEPS, "last"], theirs, ours) if pair[0] != pair[1]]
    assert not differences, json.dumps(differences, indent=1)[:9000]


def test_a_client_of_a_later_revision_is_refused_and_ends_the_server(tmp_path: Path) -> None:
    ends = {}
    for how in ("off", "on"):
        command = [sys.executable, "-m", "mcpbolt", "exec", str(FILE), "highlevel"]
        with Talk(command, tmp_path, {"MCPBOLT": how}, "2026-07-28") as talk:
            ends[how] = talk.open()["error"]["code"], talk.end()
    assert ends["off"] == ends["on"] == (-32602, 0)


@coroutine
async def test_a_carried_server_answers_over_http_in_sessions(tmp_path: Path) -> None:
    program = """
import mcpbolt
mcpbolt.install()
import uvicorn
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("http", log_level="CRITICAL")

@server.tool()
async def who(ctx: Context) -> str:
    # In 1.27 and 1.28 `report_progress` does not say which request it belongs to.
    request = ctx.request_context
    await request.session.send_progress_notification(request.meta.progressToken, 1, 2, related_request_id=str(request.request_id))
    return ctx.request_context.request.headers["x-who"]

uvicorn.Server(uvicorn.Config(server.streamable_http_app(), port=0)).run()
"""
    (tmp_path / "program.py").write_text(program)
    with (tmp_path / "stderr").open("wb") as log:
        environment = {**os.environ, "MCPBOLT_REPORT": "1"}
        process = subprocess.Popen([sys.executable, "program.py"], cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        while (port := re.search(r"http://127\.0\.0\.1:(\d+)", (tmp_path / "stderr").read_text())) is None:
            assert process.poll() is None, (tmp_path / "stderr").read_text()
            await asyncio.sleep(0.05)
        for name in ("ada", "bob"):
            seen: list[tuple[Any, ...]] = []
            async with Client(f"http://127.0.0.1:{port[1]}/mcp", headers={"x-who": name}) as client:
                assert (await client.call_tool("who", on_progress=lambda *far: seen.append(far))).text == name
                assert len(seen) == 1
        assert "http: the engine carries the messages" in (tmp_path / "stderr").read_text()
    finally:
        process.terminate()
        process.wait(30)
