"""Servers and clients at every kind of address: each feature once over each carrier, and what may go wrong."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import (
    ApiKey,
    Basic,
    Bearer,
    CarrierError,
    Client,
    CompletionRequest,
    ConnectionClosed,
    Context,
    PeerError,
    RequestTimeout,
    RetryPolicy,
    Root,
    Sampled,
    ServeOptions,
    Server,
)
from support import certificate, client, coroutine

HTTP = "http://127.0.0.1:0/mcp"
WEBSOCKET = "ws://127.0.0.1:0/mcp"
ADDRESSES = [HTTP, WEBSOCKET, "tcp:127.0.0.1:0", "tcp:127.0.0.1:0?framing=length", "unix:HERE/server.sock"]
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
NAME = {"type": "object", "properties": {"name": {"type": "string"}}}


def at(address: str, folder: Path) -> str:
    return address.replace("HERE", str(folder))


class Counts:
    active = cancelled = 0


def everything(counts: Counts) -> Server:
    server = Server("everything", "1.0.0", list_changes=True, subscriptions=True, instructions="Be kind.")

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool
    async def wait(seconds: float) -> str:
        counts.active += 1
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            counts.cancelled += 1
            raise
        finally:
            counts.active -= 1
        return "waited"

    @server.tool
    async def steps(context: Context) -> str:
        for step in range(3):
            context.progress(step, 3, f"step {step}")
            context.log("info", {"step": step})
            await asyncio.sleep(0)
        return "all"

    @server.tool
    async def ask(context: Context) -> str:
        filled = await context.elicit("Who?", NAME)
        (root,) = await context.roots()
        said = await context.sample(f"Greet {filled.content['name']}", max_tokens=9)
        return f"{said.text} at {root.uri}"

    @server.tool
    def who(context: Context) -> str:
        return f"{context.client.name} {context.revision}"

    @server.tool(task="optional")
    async def task(context: Context) -> str:
        context.begin_task()
        await asyncio.sleep(0.05)
        return "done"

    @server.resource("memo://{name}")
    def memo(name: str) -> str:
        return name

    @server.resource("memo://a")
    def first() -> str:
        return "the first"

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}"

    @server.completion
    def complete(request: CompletionRequest) -> list[str]:
        return [request.value + "da"]

    return server


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("address", ADDRESSES)
@coroutine
async def test_every_feature_goes_over_every_carrier(address: str, revision: str, tmp_path: Path) -> None:
    server, counts = everything(counts := Counts()), counts
    logged: list[Any] = []
    told: asyncio.Queue[str] = asyncio.Queue()
    steps: list[tuple[float, float | None, str | None]] = []
    async with server.listening(at(address, tmp_path)) as here, Client(
        here,
        revision=revision,
        name="me",
        tasks=True,
        roots=[Root("file:///here")],
        on_elicitation=lambda request: {"name": "Ada"},
        on_sampling=lambda request: Sampled(request.messages[0].text + "!", "a-model"),
        on_log=lambda message: logged.append(message["data"]),
        on_list_changed=told.put_nowait,
        on_resource_updated=told.put_nowait,
    ) as connected:  # fmt: skip
        info = connected.server_info
        assert (info.name, info.revision, info.instructions) == ("everything", revision, "Be kind.")
        assert len(await connected.list_tools()) == 6
        assert (await connected.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await connected.call_tool("who")).text == f"me {revision}"
        assert (await connected.read_resource("memo://a"))[0].text == "the first"
        assert (await connected.read_resource("memo://b"))[0].text == "b"
        (prompt,) = await connected.list_prompts()
        assert (await connected.get_prompt("greet", {"name": "Ada"})).messages[0].text == "Greet Ada"
        assert (await connected.complete(prompt, "name", "A")).values == ["Ada"]
        await connected.ping()
        with pytest.raises(PeerError):
            await connected.call_tool("nobody")

        await connected.set_log_level("info")
        done = await connected.call_tool("steps", on_progress=lambda *step: steps.append(step))
        assert done.text == "all" and [step[:2] for step in steps] == [(0, 3), (1, 3), (2, 3)]
        assert logged == [{"step": 0}, {"step": 1}, {"step": 2}]

        if revision >= "2025-06-18":
            assert (await connected.call_tool("ask")).text == "Greet Ada! at file:///here"
        if revision >= "2025-11-25":
            task = await connected.start_tool("task")
            assert task.id is not None and (await task).text == "done"

        if revision >= "2026-07-28":
            async with connected.listen(tools=True, uris=["memo://a"]):
                server.tool(name="further")(lambda: "")
                assert await told.get() == "tools"
                server.resource_updated("memo://a")
                assert await told.get() == "memo://a"
        else:
            await connected.subscribe("memo://a")
            server.tool(name="further")(lambda: "")
            assert await told.get() == "tools"
            server.resource_updated("memo://a")
            assert await told.get() == "memo://a"

        calls = [connected.call_tool("wait", {"seconds": 0.05}) for _ in range(50)]
        assert all(result.text == "waited" for result in await asyncio.gather(*calls))
        call = asyncio.create_task(connected.call_tool("wait", {"seconds": 60}))
        await until(lambda: counts.active == 1)
        call.cancel()
        await until(lambda: counts.active == 0)
        with pytest.raises(RequestTimeout):
            await connected.call_tool("wait", {"seconds": 60}, timeout=0.05)
        await until(lambda: counts.active == 0)
        assert counts.cancelled == 2 and connected.stray_count == 0


@pytest.mark.parametrize("address", ADDRESSES)
@coroutine
async def test_clients_share_a_server(address: str, tmp_path: Path) -> None:
    async with everything(Counts()).listening(at(address, tmp_path)) as here:

        async def one(number: int) -> None:
            async with Client(here, name=f"client {number}") as connected:
                for _ in range(3):
                    assert (await connected.call_tool("who")).text == f"client {number} 2026-07-28"

        await asyncio.gather(*(one(number) for number in range(20)))


@pytest.mark.parametrize("address", ADDRESSES)
@coroutine
async def test_who_listens_hears_of_the_end(address: str, tmp_path: Path) -> None:
    counts = Counts()
    closed: list[ConnectionClosed] = []
    server = everything(counts)
    async with Client(server, on_closed=closed.append) as connected:
        async with connected.listen(tools=True) as listening:
            ended = asyncio.create_task(listening.ended())
    ended.cancel()
    assert closed == []
    serving = server.listening(at(address, tmp_path), grace=0.1)
    here = await serving.__aenter__()
    async with Client(here, on_closed=closed.append) as connected:
        async with connected.listen(tools=True) as listening:
            await serving.__aexit__(None, None, None)
            # In good order: the server ends what would stay open before it goes.
            await listening.ended()
            if address != HTTP:
                await until(lambda: bool(closed))
                assert closed[0].reason == "closed_by_peer" and closed[0].scope == "connection"
        with pytest.raises((ConnectionClosed, CarrierError)):
            await connected.call_tool("add", {"a": 1, "b": 2})
    assert len(closed) == (address != HTTP)


def test_a_command_may_be_an_address() -> None:
    example = Path(__file__).resolve().parents[1] / "examples" / "diagnostic.py"

    @coroutine
    async def talk() -> None:
        async with client(f"stdio:{sys.executable} '{example}'") as connected:
            assert (await connected.call_tool("echo", {"text": "a"})).text == "a"

    talk()
    for wrong, why in (
        ("python server.py", "stdio:"),
        ("stdio:", "command"),
        ("tcp:localhost", "port"),
        ("http://me:secret@localhost/", "credentials"),
    ):
        with pytest.raises(ValueError, match=why):
            Client(wrong)


@coroutine
async def test_nobody_at_an_address_is_an_error(tmp_path: Path) -> None:
    async with everything(Counts()).listening("tcp:127.0.0.1:0") as here:
        port = here.rsplit(":", 1)[1]
    for address in (f"tcp:127.0.0.1:{port}", f"ws://127.0.0.1:{port}/mcp", f"unix:{tmp_path}/nobody"):
        with pytest.raises(OSError):
            async with Client(address):
                pass
    with pytest.raises(ConnectionError) as caught:
        async with Client(f"http://127.0.0.1:{port}/mcp"):
            pass
    assert isinstance(caught.value.__cause__, CarrierError) and caught.value.__cause__.fault == "unreachable"


@asynccontextmanager
async def refusing(heads: list[bytes]) -> AsyncIterator[str]:
    """A server that wants other credentials."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=x\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        yield f"//127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize("scheme", ["http:", "ws:"])
@coroutine
async def test_credentials_and_headers_go_along(scheme: str) -> None:
    for auth, expected in (
        (None, b""),
        (Bearer("t-o-k"), b"authorization: bearer t-o-k"),
        (Basic("Aladdin", "open sesame"), b"authorization: basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        (ApiKey("k"), b"x-api-key: k"),
        (ApiKey("k", "X-Own"), b"x-own: k"),
    ):
        assert "t-o-k" not in repr(auth) and "sesame" not in repr(auth)
        heads: list[bytes] = []
        async with refusing(heads) as address:
            with pytest.raises(OSError) as caught:
                async with Client(scheme + address, auth=auth, headers={"X-Trace": "a b"}):
                    pass
        assert expected.lower() in heads[0].lower() and b"x-trace: a b" in heads[0].lower()
        if scheme == "http:":
            cause = caught.value.__cause__
            assert isinstance(cause, CarrierError)
            assert (cause.fault, cause.status, cause.authenticate) == ("refused", 401, "Bearer realm=x")
            assert cause.origin == "peer"


@coroutine
async def test_giving_up_on_the_way_leaves_nothing() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        gone.set()
        writer.close()

    for scheme in ("http:", "ws:", "tcp:"):
        arrived, gone = asyncio.Event(), asyncio.Event()
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            address = f"tcp:127.0.0.1:{port}" if scheme == "tcp:" else f"{scheme}//127.0.0.1:{port}/mcp"
            connecting = asyncio.create_task(Client(address).__aenter__())
            await arrived.wait()
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            await gone.wait()


@pytest.mark.parametrize("scheme", ["https", "wss"])
@coroutine
async def test_what_goes_over_tls_is_vouched_for(scheme: str, tmp_path: Path) -> None:
    tls = certificate(tmp_path)
    async with everything(Counts()).listening(f"{scheme}://127.0.0.1:0/mcp", options=ServeOptions(tls=tls)) as here:
        assert here.startswith(scheme)
        async with Client(here, root_certificates=tls[0]) as connected:
            assert (await connected.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(OSError):
            async with Client(here):
                pass


@coroutine
async def test_a_client_shows_its_certificate_to_who_asks_for_one(tmp_path: Path) -> None:
    for name in ("server", "client", "other"):
        (tmp_path / name).mkdir()
    server, own, other = (certificate(tmp_path / name) for name in ("server", "client", "other"))
    asking = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(own[0]))
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.load_cert_chain(*server)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}}")  # the end of the metadata
        shown = writer.get_extra_info("ssl_object").getpeercert()["subject"][0][0][1]
        body = json.dumps({"status": "success", "data": shown})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        writer.close()

    async def act(certificate: tuple[Path, Path] | None) -> Any:
        connected = Client(address, root_certificates=server[0], certificate=certificate, opening="actions")
        async with connected as client:
            return (await client.action("who", retry=RetryPolicy(tries=1))).data

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=asking) as serving:
        address = f"https://127.0.0.1:{serving.sockets[0].getsockname()[1]}/mcp"
        assert await act(own) == "localhost"
        for shown in (None, other):
            # Its alert, where that comes before the end of the connection, which takes it along at times.
            with pytest.raises(CarrierError, match="fatal alert|broke off"):
                await act(shown)
        with pytest.raises(OSError, match="the key is not that of the client's certificate"):
            await act((own[0], other[1]))
        with pytest.raises(FileNotFoundError):
            await act((own[0], tmp_path / "nothing"))


@coroutine
async def test_a_socket_of_the_file_system_comes_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    for _ in range(2):
        async with everything(Counts()).listening(f"unix:{path}") as here:
            assert here == f"unix:{path}" and os.path.exists(path)
            with pytest.raises(OSError):
                async with Server("second").listening(f"unix:{path}"):
                    pass
        assert not os.path.exists(path)
