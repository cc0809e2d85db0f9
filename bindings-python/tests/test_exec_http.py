"""HTTP applications of the SDK and FastMCP under `mcpbolt.install`: routes, middleware and authorization stay, and the engine
answers what they let through."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from support import coroutine

from mcpbolt import Bearer, Client, ConnectionClosed, McpError

COMMON = """
import contextvars, sys
import mcpbolt

mcpbolt.install()
tenant = contextvars.ContextVar("tenant", default="nobody")

class Tenant:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        headers = dict(scope.get("headers", ()))
        tenant.set(headers.get(b"x-tenant", b"-").decode())
        await self.app(scope, receive, send)
"""
TOOLS = """
def whose() -> str:
    return tenant.get()

async def who(context: Context) -> list[str]:
    request = context.request_context.request
    return [request.headers["x-tenant"], request.url.path, type(request.scope["app"]).__name__, tenant.get()]

for tool in (whose, who):
    server.tool()(tool)
"""
SERVE = """
import uvicorn
config = uvicorn.Config(Tenant(app), port=0, log_level="info")
uvicorn.Server(config).run()
"""
SDK = COMMON + """
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from starlette.responses import PlainTextResponse

class Verifier:
    async def verify_token(self, token):
        return AccessToken(token=token, client_id=token, scopes=[]) if token in ("ada", "bob") else None

auth = AuthSettings(issuer_url="https://auth.example", resource_server_url="https://server.example/mcp", required_scopes=[])
server = MCPServer("http", auth=auth, token_verifier=Verifier(), log_level="CRITICAL")

@server.custom_route("/health", methods=["GET"])
async def health(request):
    return PlainTextResponse("well")

@server.tool()
def token() -> str:
    return get_access_token().client_id
""" + TOOLS + "app = server.streamable_http_app()\n" + SERVE
FAST = COMMON + """
from fastmcp import Context, FastMCP
from starlette.responses import PlainTextResponse

server = FastMCP("http")

@server.custom_route("/health", methods=["GET"])
async def health(request):
    return PlainTextResponse("well")
""" + TOOLS + "app = server.http_app()\n" + SERVE


@contextmanager
def running(program: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Runs a program that listens; yields its address and the file that has its stderr."""
    (folder / "program.py").write_text(program)
    log = folder / "stderr"
    env = {**os.environ, "MCPBOLT_REPORT": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "program.py"], cwd=folder, env=env, stdout=stderr, stderr=stderr)
        try:
            port = None
            while port is None:
                assert process.poll() is None, log.read_text()
                port = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
            yield f"http://127.0.0.1:{port[1]}", log
        finally:
            process.terminate()
            process.wait(30)


def told(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("mcpbolt: ")]


@pytest.mark.parametrize("program", [SDK, FAST], ids=["sdk", "fastmcp"])
@coroutine
async def test_what_stands_before_the_engine_stays(program: str, tmp_path: Path) -> None:
    with running(program, tmp_path) as (at, log):
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"{at}/health")).text == "well"
        assert told(log)[0].startswith("mcpbolt: http: the engine serves 'http'"), log.read_text()
        for revision in ("2025-06-18", "2025-11-25", "2026-07-28"):

            async def ask(tenant: str) -> None:
                headers = {"x-tenant": tenant}
                async with Client(f"{at}/mcp", revision=revision, headers=headers, auth=Bearer("ada")) as client:
                    for _ in range(3):
                        assert (await client.call_tool("whose")).text == tenant
                        said = (await client.call_tool("who")).structured
                        assert said == {"result": [tenant, "/mcp", said["result"][2], tenant]}, said
                        assert said["result"][2].startswith("Starlette")

            await asyncio.gather(*(ask(f"tenant {n}") for n in range(4)))


@coroutine
async def test_authorization_stays_and_sessions_belong_to_who_opened_them(tmp_path: Path) -> None:
    with running(SDK, tmp_path) as (at, log):
        for revision in ("2025-11-25", "2026-07-28"):
            for name in ("ada", "bob"):
                async with Client(f"{at}/mcp", revision=revision, auth=Bearer(name)) as client:
                    assert (await client.call_tool("token")).text == name
            with pytest.raises((McpError, ConnectionClosed)):
                async with Client(f"{at}/mcp", revision=revision, auth=Bearer("eve")) as client:
                    await client.call_tool("token")
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}}
        kinds = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
        async with httpx2.AsyncClient() as http:
            opened = await http.post(f"{at}/mcp", json=hello, headers={**kinds, "authorization": "Bearer ada"})
            session = {"mcp-session-id": opened.headers["mcp-session-id"], **kinds}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            for name, status in (("ada", 200), ("bob", 404), ("eve", 401)):
                answer = await http.post(f"{at}/mcp", json=ping, headers={**session, "authorization": f"Bearer {name}"})
                assert answer.status_code == status, name
            # DNS rebinding is stopped by the SDK's own check.
            assert (await http.post(f"{at}/mcp", json=ping, headers={**session, "authorization": "Bearer ada", "host": "evil.example"})).status_code == 421


@pytest.mark.parametrize(
    ("options", "reason"),
    [("json_response=True", "every answer is JSON without events (json_response)"), ("retry_interval=5", "has clients come back")],
)
@coroutine
async def test_what_the_engine_does_not_have_is_served_by_the_program(options: str, reason: str, tmp_path: Path) -> None:
    with running(SDK.replace("streamable_http_app()", f"streamable_http_app({options})"), tmp_path) as (at, log):
        async with Client(f"{at}/mcp", auth=Bearer("ada"), headers={"x-tenant": "a"}) as client:
            assert (await client.call_tool("token")).text == "ada"
        (said,) = told(log)
        assert said.startswith("mcpbolt: http: the program serves by itself") and reason in said
