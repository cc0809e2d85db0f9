"""`Policy(verifier=…)`: functions of the program, plain or not, that say who a client is."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import ApiKey, Bearer, CarrierError, Client, ConnectionClosed, Context, Credentials, Jwt, PeerError, Policy
from mcpbolt import Principal, ResourceServer, Server
from support import Raw, client, coroutine
from test_asgi import served
from wire import Wire, call

variable: ContextVar[str] = ContextVar("variable", default="unset")


def verify(credentials: Credentials) -> Principal | str | None:
    if credentials.secret == "raise":
        raise LookupError("secret details")
    if credentials.secret == "wrong":
        return True  # type: ignore[return-value]
    if credentials.kind == "bearer":
        return Principal(credentials.secret, ["write"])
    if credentials.kind == "api_key":
        return f"{credentials.secret} {variable.get()}"
    return None


async def verify_soon(credentials: Credentials) -> Principal | str | None:
    await asyncio.sleep(0.001)
    return verify(credentials)


async def verify_at_once(credentials: Credentials) -> Principal | str | None:
    return verify(credentials)


VERIFIERS = [verify, verify_soon, verify_at_once]


def offer(verifier: Any = verify, **options: Any) -> Server:
    server = Server("notes", policy=Policy(verifier=verifier, scopes={"write": ["write"]}, **options))

    @server.tool
    def who(context: Context) -> str:
        return str(context.principal)

    server.tool(name="write")(who)
    return server


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[str]:
    async with server.listening("http://127.0.0.1:0/mcp") as address:
        yield address


@asynccontextmanager
async def in_asgi(server: Server) -> AsyncIterator[str]:
    async with served(server.asgi()) as address:
        yield address


CARRIERS = [listening, in_asgi]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("verifier", VERIFIERS)
@coroutine
async def test_a_verifier_says_who_a_client_is(
    carrier: Any, verifier: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """R-AUX-03: over HTTP; an exception or a wrong value is no verdict, and is logged without being told to the client."""
    variable.set("set")
    async with carrier(offer(verifier)) as address:
        async with Client(address, auth=Bearer("alice")) as caller:
            assert (await caller.call_tool("who")).text == "alice"
            assert (await caller.call_tool("write")).text == "alice"
        async with Client(address, auth=ApiKey("bob")) as caller:
            assert (await caller.call_tool("who")).text == "bob set"
            with pytest.raises(CarrierError) as lacks:
                await caller.call_tool("write")
            assert lacks.value.status == 403
        assert not caplog.records
        for auth, status in ((None, 401), (Bearer("raise"), 503), (Bearer("wrong"), 503)):
            with pytest.raises(ConnectionClosed) as refused:
                async with Client(address, auth=auth):
                    pass
            assert isinstance(refused.value.__cause__, CarrierError) and refused.value.__cause__.status == status
            assert "secret details" not in repr(refused.value.__cause__)
    logged = [record.exc_info[1] for record in caplog.records if record.exc_info and record.levelno == logging.ERROR]
    assert {type(error) for error in logged} == {LookupError, TypeError}
    assert all("the verifier" in record.message for record in caplog.records if record.exc_info)


@pytest.mark.parametrize("carrier", CARRIERS)
@coroutine
async def test_other_requests_do_not_wait_for_a_verification(carrier: Any) -> None:
    """It has a time limit, and is cancelled when its client goes."""
    state = {"begun": 0, "cancelled": 0}

    async def verifier(credentials: Credentials) -> str:
        if credentials.secret == "fast":
            return "fast"
        state["begun"] += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            state["cancelled"] += 1
            raise
        raise AssertionError

    async def until(count: int, what: str) -> None:
        while state[what] < count:
            await asyncio.sleep(0.005)

    async with carrier(offer(verifier)) as address:
        wire = await Wire.open(address)
        waiting = asyncio.ensure_future(wire.stateless(call(1, "who"), _headers={"authorization": "Bearer slow"}))
        await until(1, "begun")
        async with Client(address, auth=Bearer("fast")) as caller:
            assert (await caller.call_tool("who")).text == "fast"
        assert not waiting.done() and not state["cancelled"]
        waiting.cancel()
        wire.close()
        await until(1, "cancelled")
    async with carrier(offer(verifier, verifier_timeout=0.05)) as address, await Wire.open(address) as wire:
        answer = await wire.stateless(call(1, "who"), _headers={"authorization": "Bearer slow"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        await until(2, "cancelled")


@pytest.mark.parametrize("verifier", VERIFIERS)
@coroutine
async def test_only_refused_credentials_are_guesses(verifier: Any) -> None:
    """R-AUX-03: `None` refuses credentials; an exception says nothing about them, with and without a resource server, whose
    next request is verified anew."""
    is_away = True

    def away(credentials: Credentials) -> Principal | str | None:
        if is_away and credentials.secret != "none":
            raise ConnectionError("the database is away")
        return None if credentials.secret == "none" else "alice"

    async def away_soon(credentials: Credentials) -> Principal | str | None:
        await asyncio.sleep(0)
        return away(credentials)

    function = away if verifier is verify else away_soon
    resource = ResourceServer("https://api.example/mcp", issuers=["https://login.example"], cached_for=600)
    both: list[dict[str, Any]] = [{}, {"resource": resource}]
    for options in both:
        is_away = True
        server = offer(function, rate=(3, 0), **options)
        async with listening(server) as address, await Wire.open(address) as wire:

            async def status(token: str) -> int:
                answer = await wire.stateless(call(1, "who"), _headers={"authorization": f"Bearer {token}"})
                assert [chunk async for chunk in answer.chunks()]
                return answer.status

            assert [await status("right") for _ in range(5)] == [503] * 5, options
            is_away = False
            assert await status("right") == 200, options
            assert [await status("none") for _ in range(4)] == [401, 401, 401, 429], options


@coroutine
async def test_a_plain_verifier_that_blocks_holds_up_nobody_else() -> None:
    go = threading.Event()

    def verifier(credentials: Credentials) -> str:
        if credentials.secret == "slow":
            go.wait(60)
        return credentials.secret

    async with offer(verifier).listening("http://127.0.0.1:0/mcp") as address, await Wire.open(address) as wire:
        slow = asyncio.ensure_future(wire.stateless(call(1, "who"), _headers={"authorization": "Bearer slow"}))
        async with Client(address, auth=Bearer("fast")) as caller:
            for _ in range(3):
                assert (await caller.call_tool("who")).text == "fast"
        assert not slow.done()
        go.set()
        assert (await slow).status == 200


SERVER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_verifier import *
async def slow(credentials):
    if credentials.secret == "slow":
        await asyncio.sleep(60)
    return await verify_soon(credentials)
offer([verify, verify_soon, verify_at_once, slow][int(sys.argv[1])], verifier_timeout=float(sys.argv[2])).run()
"""


@pytest.mark.parametrize("number", range(3))
@coroutine
async def test_on_stdin_each_request_says_who_asks(number: int) -> None:
    async with client([sys.executable, "-c", SERVER, str(number), "10"]) as caller:
        calls = [
            caller.call_tool("who", meta={"auth": {"type": "bearer", "token": f"t{index}"}}) for index in range(50)
        ]
        assert [one.text for one in await asyncio.gather(*calls)] == [f"t{index}" for index in range(50)]
        assert (await caller.call_tool("who", meta={"auth": {"type": "api_key", "key": "bob"}})).text == "bob unset"
        for token in ("", "raise", "wrong"):
            with pytest.raises(PeerError) as refused:
                await caller.call_tool("who", meta={"auth": {"type": "bearer", "token": token}})
            assert "secret details" not in str(refused.value)
        with pytest.raises(PeerError):
            await caller.list_tools()


def test_on_stdin_a_verification_ends_with_its_request() -> None:
    def ask(server: Raw, id: int, token: str) -> None:
        meta = {"auth": {"type": "bearer", "token": token}}
        server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "who", "_meta": meta}})

    with Raw([sys.executable, "-c", SERVER, "3", "1"]) as server:
        ask(server, 1, "slow")
        ask(server, 2, "slow")
        ask(server, 3, "fast")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        assert server.receive()["result"]["content"][0]["text"] == "fast"
        late = server.receive()
        assert late["id"] == 2 and "took too long" in late["error"]["message"]
        ask(server, 4, "slow")
        begun = time.monotonic()
        server.end(30)
        assert time.monotonic() - begun < 20


def test_a_verifier_stands_alone() -> None:
    others: list[dict[str, Any]] = [{"keys": {}}, {"jwt": Jwt("HS256", "s" * 32, issuer="me", audience="here")}]
    for other in others:
        with pytest.raises(ValueError, match="takes the place"):
            Policy(verifier=verify, **other)
    assert repr(Credentials("bearer", "hunter2")) == "Credentials('bearer', …)"


def test_a_bad_principal_is_refused_with_a_reason() -> None:
    from mcpbolt._verifier import Verifying

    def said(value: Any) -> Any:
        function: Callable[..., Any] = Verifying(lambda _: value).function
        return function("none", "", b"")

    assert said(Principal("a", ("x", "y"))) == ("a", ["x", "y"], None, None, None) and said(None) is None
    for value, why in [(1, "of type int"), ("", "empty name"), (Principal("a", "write"), "not one string")]:
        with pytest.raises((TypeError, ValueError), match=why):
            said(value)
