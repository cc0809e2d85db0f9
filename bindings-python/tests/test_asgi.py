"""A server as an ASGI application: under uvicorn, and as a part of a Starlette one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.client.client import Client as TheirClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from mcpbolt import Context, Misuse, ServeOptions, Server
from support import coroutine
from wire import STATELESS, Wire, call

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def served(app: Any, path: str = "/mcp", **options: Any) -> AsyncIterator[str]:
    """That application under uvicorn; gives where the endpoint is."""
    config = uvicorn.Config(app, port=0, log_level="error", **{"timeout_graceful_shutdown": 5, **options})
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        server.should_exit = True
        await task


class Seen:
    def __init__(self) -> None:
        self.lifespans: list[str] = []
        self.cancelled = 0
        self.active = 0


def serving(seen: Seen, with_lifespan: bool = True) -> Server:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        seen.lifespans.append("begins")
        yield "state"
        seen.lifespans.append("ends")

    server = Server("asgi", "1.0.0", lifespan=lifespan if with_lifespan else None)

    @server.tool
    def add(a: int, b: int, context: Context) -> str:
        return f"{a + b} {context.state}"

    @server.tool
    async def wait(seconds: float = 60) -> None:
        seen.active += 1
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            seen.cancelled += 1
            raise
        finally:
            seen.active -= 1

    @server.tool
    async def steps(context: Context) -> str:
        for step in range(3):
            context.progress(step, 3)
            await asyncio.sleep(0.01)
        return "all"

    @server.tool
    def length(text: str) -> str:
        return str(len(text))

    return server


def text(answer: dict[str, Any]) -> str:
    found: str = answer["result"]["content"][0]["text"]
    return found


@coroutine
async def test_a_server_is_an_application() -> None:
    seen = Seen()
    async with served(serving(seen).asgi()) as address, await Wire.open(address) as wire:
        assert seen.lifespans == ["begins"]
        assert text(await (await wire.stateless(call(1, "add", a=1, b=2))).json()) == "3 state"
        streamed = await wire.stateless(call(2, "steps"), progressToken="p")
        *progress, answer = [event async for event in streamed.events()]
        assert [one["params"]["progress"] for one in progress] == [0, 1, 2] and text(answer) == "all"
        assert text(await (await wire.stateless(call(3, "length", text="x" * 3_000_000))).json()) == "3000000"
        session = await wire.begin("2025-06-18")
        assert text(await (await wire.post(call(4, "add", a=1, b=2), **session)).json()) == "3 state"
        assert (await wire.send("DELETE", **session)).status == 204
        assert (await wire.send("POST", b"{", host="evil.example")).status == 403
    assert seen.lifespans == ["begins", "ends"]


@coroutine
async def test_a_body_that_is_too_long_is_refused_before_its_end() -> None:
    server = serving(Seen())
    async with served(server.asgi(options=ServeOptions(max_message_bytes=100_000))) as address:
        async with await Wire.open(address) as wire:
            head = [f"POST {wire.url.path} HTTP/1.1", f"host: {wire.url.netloc}", "transfer-encoding: chunked"]
            head += ["accept: application/json, text/event-stream", "content-type: application/json"]
            wire.writer.write("\r\n".join([*head, "", ""]).encode())
            for _ in range(20):
                wire.writer.write(b"2710\r\n" + b" " * 10_000 + b"\r\n")
            assert (await wire.reader.readline()).startswith(b"HTTP/1.1 413")


@coroutine
async def test_a_body_that_stalls_is_given_up() -> None:
    server = serving(Seen())
    async with served(server.asgi(options=ServeOptions(stall_timeout=0.3))) as address:
        async with await Wire.open(address) as wire:
            head = [f"POST {wire.url.path} HTTP/1.1", f"host: {wire.url.netloc}", "content-length: 100"]
            head += ["accept: application/json, text/event-stream", "content-type: application/json"]
            wire.writer.write("\r\n".join([*head, "", "{"]).encode())
            line = await asyncio.wait_for(wire.reader.readline(), 5)
            assert line.startswith(b"HTTP/1.1 408")


@coroutine
async def test_the_end_of_its_lifespan_answers_what_is_under_way() -> None:
    seen = Seen()
    app = serving(seen).asgi(grace=5)
    async with served(app, lifespan="off") as address:
        wire, reader = await Wire.open(address), await Wire.open(address)
        async with app.lifespan():
            session = await reader.begin("2025-11-25")
            stream = await reader.send("GET", **session)
            asking = asyncio.ensure_future(wire.stateless(call(1, "wait", seconds=0.3)))
            while not seen.active:
                await asyncio.sleep(0.01)
        assert asking.done() or not seen.active
        assert (await (await asking).json())["result"]["content"] == []
        assert [event async for event in stream.events()] == []
        wire.close()
        reader.close()


@coroutine
async def test_the_end_of_its_lifespan_does_not_wait_for_ever() -> None:
    seen = Seen()
    app = serving(seen).asgi(grace=0.2)
    async with served(app, lifespan="off") as address:
        wire, streaming = await Wire.open(address), await Wire.open(address)
        async with app.lifespan():
            asking = asyncio.ensure_future(wire.stateless(call(1, "wait")))
            stream = asyncio.ensure_future(streaming.stateless(call(2, "wait"), progressToken=1))
            while seen.active < 2:
                await asyncio.sleep(0.01)
            loop = asyncio.get_running_loop()
            began = loop.time()
        assert loop.time() - began < 1
        assert (await asking).status == 503
        while seen.active:
            await asyncio.sleep(0.01)
        assert seen.cancelled == 2
        stream.cancel()
        wire.close()
        streaming.close()


@coroutine
async def test_streams_end_with_the_server_that_runs_it() -> None:
    """uvicorn waits for answers before it tells of the end: for as long as it is told to."""
    app = serving(Seen()).asgi()
    async with served(app, timeout_graceful_shutdown=1) as address:
        wire = await Wire.open(address)
        session = await wire.begin("2025-11-25")
        assert (await wire.send("GET", **session)).status == 200
        loop = asyncio.get_running_loop()
        began = loop.time()
    assert 0.9 < loop.time() - began < 3
    wire.close()


@coroutine
async def test_who_leaves_cancels_the_call() -> None:
    seen = Seen()
    async with served(serving(seen).asgi()) as address:
        for options in ({}, {"progressToken": 1}):
            wire = await Wire.open(address)
            asking = asyncio.ensure_future(wire.stateless(call(1, "wait"), **options))
            while not seen.active:
                await asyncio.sleep(0.01)
            wire.close()
            while seen.active:
                await asyncio.sleep(0.01)
            asking.cancel()
        assert seen.cancelled == 2


@pytest.mark.parametrize("where", ["/", "/tools", "route"])
@coroutine
async def test_a_server_is_a_part_of_an_application(where: str) -> None:
    async def home(request: Request) -> PlainTextResponse:
        return PlainTextResponse("home")

    seen = Seen()
    mounted = serving(seen).asgi()
    routes: list[Any] = [Route("/home", home)]
    if where == "route":
        routes.append(Route("/mcp", mounted))
    else:
        routes.append(Mount(where, mounted))
    path = "/tools/mcp" if where == "/tools" else "/mcp"
    async with served(Starlette(routes=routes, lifespan=mounted.lifespan), path) as address:
        assert seen.lifespans == ["begins"]
        async with await Wire.open(address) as wire:
            assert text(await (await wire.stateless(call(1, "add", a=1, b=2))).json()) == "3 state"
            home_page = await wire.send("GET", path="/home")
            assert b"".join([chunk async for chunk in home_page.chunks()]) == b"home"
            for elsewhere in ("/mcp/further", "/.well-known/oauth-protected-resource"):
                nothing = await wire.send("GET", path=elsewhere)
                assert nothing.status == 404 and b"".join([chunk async for chunk in nothing.chunks()]) in (b"", b"Not Found")
            if where == "/tools":
                exactly = await wire.post(PING)
                assert exactly.status == 400
                [_ async for _ in exactly.chunks()]
                assert (await wire.send("POST", json.dumps(PING).encode(), "/tools/")).status == 400
        # The two endpoints of 2024-11-05 are where it is mounted.
        async with await Wire.open(address) as wire:
            stream = await wire.send("GET", accept="text/event-stream")
            assert f"data: {path}?" in (await anext(stream.chunks())).decode()
    assert seen.lifespans == ["begins", "ends"]


def test_without_the_lifespan_of_the_application_there_is_none() -> None:
    headers = {"accept": "application/json, text/event-stream", "host": "localhost"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    forgetful = Starlette(routes=[Mount("/", serving(Seen()).asgi())])
    with pytest.raises(Misuse, match="lifespan"):
        TestClient(forgetful).post("/mcp", json=hello, headers=headers)
    plain = Starlette(routes=[Mount("/", serving(Seen(), with_lifespan=False).asgi())])
    for _ in range(2):
        # Each of its requests has a loop of its own.
        assert TestClient(plain).post("/mcp", json=hello, headers=headers).status_code == 200


@coroutine
async def test_the_official_client_speaks_with_it() -> None:
    async with served(serving(Seen()).asgi()) as address:
        for mode in ("legacy", "auto"):
            async with TheirClient(address, mode=mode) as client:
                assert (client.protocol_version == STATELESS) == (mode == "auto")
                results = await asyncio.gather(*(client.call_tool("add", {"a": 1, "b": n}) for n in range(20)))
                assert [result.content[0].text for result in results] == [f"{1 + n} state" for n in range(20)]
