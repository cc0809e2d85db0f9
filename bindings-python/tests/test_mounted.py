"""External servers that are mounted in a server, and fronts within ASGI applications and with verifiers of the program."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpbolt import (
    ApiKey,
    Bearer,
    Client,
    Context,
    Credentials,
    Depends,
    McpError,
    Misuse,
    PeerError,
    Policy,
    Principal,
    Server,
)
from mcpbolt.chain import External, Front, Middleware, Next
from support import DIAGNOSTIC, coroutine

REVISIONS = ["2025-06-18", "2026-07-28"]

WEATHER = """
from mcpbolt import Context, Server
server = Server("weather", "2.0.0", instructions="Ask me about the sky.")

@server.tool
def today(place: str) -> str:
    return f"sunny in {place}"

@server.tool
async def ask(context: Context) -> str:
    answer = await context.elicit("Where?", {"type": "object", "properties": {"place": {"type": "string"}}})
    return str(answer.content)

@server.resource("sky://now")
def now() -> str:
    return "blue"

@server.prompt
def forecast(place: str) -> str:
    return f"Forecast for {place}"

server.run()
"""


def weather(**options: Any) -> External:
    return External([sys.executable, "-c", WEATHER], name="weather", inherit_env=["PYTHONPATH"], **options)


def own(**options: Any) -> Server:
    server = Server("own", "3.2.1", instructions="Mine.", **options)

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def who(context: Context) -> str:
        return f"{context.principal} {context.has_scope('read')} {context.client.name} {context.revision}"

    @server.tool
    async def work(context: Context) -> str:
        context.info("working")
        context.progress(1, 2, "half")
        answer = await context.elicit("Go on?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return f"{answer.content} {context.meta.get('mine')}"

    @server.resource("memo://all")
    def memo() -> str:
        return "milk"

    @server.prompt
    def hello(name: str) -> str:
        return f"Hello {name}"

    return server


async def has_all(client: Client) -> None:
    tools = [tool.name for tool in await client.list_tools()]
    assert tools == ["add", "who", "work", "weather_today", "weather_ask"]
    assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}
    assert (await client.call_tool("weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
    assert [one.uri for one in await client.list_resources()] == ["memo://all", "sky://weather/now"]
    assert (await client.read_resource("sky://weather/now"))[0].text == "blue"
    assert (await client.read_resource("memo://all"))[0].text == "milk"
    assert [one.name for one in await client.list_prompts()] == ["hello", "weather_forecast"]
    assert "Bonn" in str((await client.get_prompt("weather_forecast", {"place": "Bonn"})).messages)


# R-CHN-11
@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_clients_see_an_external_server_beside_the_tools_of_the_server(revision: str) -> None:
    server = own()
    server.mount("weather", weather())
    async with Client(server, revision=revision) as client:
        await has_all(client)
        info = client.server_info
        assert (info.name, info.version) == ("own", "3.2.1")
        assert info.instructions == "own: Mine.\n\nweather: Ask me about the sky."
    async with server.listening("http://127.0.0.1:0/mcp") as at:
        async with Client(at, revision=revision) as client:
            await has_all(client)
        assert at.counts.http_requests > 0


@coroutine
async def test_a_server_with_external_servers_runs_on_stdio_and_on_the_network() -> None:
    program = f"""
from mcpbolt import Server
from mcpbolt.chain import External
import sys
server = Server("own")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

server.mount("far", External({DIAGNOSTIC!r}, inherit_env=["PYTHONPATH"]))
server.run(*sys.argv[1:])
"""
    for words in [[], ["stdio:"]]:
        command = [sys.executable, "-c", program, *words]
        async with Client(command, inherit_env=["PYTHONPATH"]) as client:
            tools = [tool.name for tool in await client.list_tools()]
            assert tools[0] == "add" and all(name.startswith("far_") for name in tools[1:]) and len(tools) > 1
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, "http://127.0.0.1:0/mcp", stderr=asyncio.subprocess.PIPE
    )
    assert running.stderr is not None
    line = (await running.stderr.readline()).decode()
    assert line.startswith("own listens on http://127.0.0.1:")
    async with Client(line.split()[-1]) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    running.terminate()
    assert await running.wait() == 0


# R-CAN-12, R-LOG-07
@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_the_handlers_of_the_server_see_what_they_saw_without_external_servers(revision: str) -> None:
    logs: list[Any] = []
    progress: list[Any] = []

    async def seen(server: Server) -> list[Any]:
        logs.clear(), progress.clear()
        async with Client(
            server,
            revision=revision,
            name="asker",
            on_elicitation=lambda asked: {"name": "Faust"},
            on_log=lambda log: logs.append((log["level"], log["data"])),
        ) as client:
            await client.set_log_level("debug")
            told = [
                (await client.call_tool("who")).text,
                (
                    await client.call_tool(
                        "work", meta={"mine": 7}, on_progress=lambda *report: progress.append(report)
                    )
                ).text,
            ]
        return [*told, *logs, *progress]

    alone, mounted = own(), own()
    mounted.mount("weather", weather())
    expected = await seen(alone)
    assert expected[:2] == [f"None False asker {revision}", "{'name': 'Faust'} 7"]
    assert await seen(mounted) == expected


@coroutine
async def test_a_call_of_the_server_is_cancelled_with_its_request() -> None:
    server = Server("own")
    begun, ended = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return ""

    server.mount("weather", weather())
    async with Client(server) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await begun.wait()
        call.cancel()
        await ended.wait()


@coroutine
async def test_questions_of_an_external_server_reach_the_client() -> None:
    server = own()
    server.mount("weather", weather())
    for revision in REVISIONS:
        async with Client(server, revision=revision, on_elicitation=lambda asked: {"place": "Bonn"}) as client:
            assert (await client.call_tool("weather_ask")).text == "{'place': 'Bonn'}"


# R-CHN-15
@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_the_policy_of_the_server_counts_once_and_for_all_tools(revision: str) -> None:
    alice, bob = "a" * 40, "b" * 40
    audited: list[Any] = []
    policy = Policy(
        keys={alice: ("alice", ["read"]), bob: ("bob", [])},
        scopes={"weather_today": ["read"]},
        permissions={"tools": {"allowed": ["add", "who", "weather_today"]}},
        audit=audited.append,
    )
    server = own(policy=policy)
    server.mount("weather", weather())
    async with server.listening("http://127.0.0.1:0/mcp") as at:
        with pytest.raises(McpError):
            async with Client(at, revision=revision):
                pass
        async with Client(at, auth=ApiKey(alice), revision=revision, name="a") as a:
            async with Client(at, auth=ApiKey(bob), revision=revision, name="b") as b:
                assert [tool.name for tool in await a.list_tools()] == ["add", "who", "weather_today"]
                audited.clear()
                for _ in range(3):
                    assert (await a.call_tool("who")).text == f"key:alice True a {revision}"
                    assert (await b.call_tool("who")).text == f"key:bob False b {revision}"
                assert (await a.call_tool("weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
                with pytest.raises(McpError, match="more has to be granted"):
                    await b.call_tool("weather_today", {"place": "Bonn"})
                while len(audited) < 8:
                    await asyncio.sleep(0.001)
    calls = [(event["name"], event["principal"], event["outcome"]) for event in audited]
    assert sorted(calls) == sorted(
        [("who", "key:alice", "done"), ("who", "key:bob", "done")] * 3
        + [("weather_today", "key:alice", "done"), ("weather_today", "key:bob", "denied")]
    )


@coroutine
async def test_middleware_hooks_and_the_lifespan_of_the_server_count_for_its_own_tools() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        seen.append("open")
        yield "state"
        seen.append("closed")

    server = own(lifespan=lifespan, approval={"add": lambda name, arguments, context: arguments["a"] < 10})

    @server.middleware
    async def note(call: Any, next: Any) -> Any:
        seen.append(call.name)
        return await next(call)

    @server.tool
    def state(context: Context) -> str:
        return str(context.state)

    server.mount("weather", weather())
    async with Client(server) as client:
        assert (await client.call_tool("state")).text == "state"
        assert (await client.call_tool("add", {"a": 20, "b": 2})).is_error
        assert (await client.call_tool("weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
    assert seen == ["open", "state", "add", "closed"]


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_values_of_a_session_are_not_shared_by_clients(revision: str) -> None:
    made: list[str] = []
    left: list[str] = []

    async def session(context: Context) -> AsyncIterator[str]:
        value = f"{context.principal} {len(made)}"
        made.append(value)
        yield value
        left.append(value)

    def add_to(server: Server) -> Server:
        @server.tool
        async def value(value: str = Depends(session, scope="session")) -> str:
            return value

        return server

    alice, bob = "a" * 40, "b" * 40
    policy = Policy(keys={alice: ("alice", []), bob: ("bob", [])})
    for mounts in [False, True]:
        made.clear(), left.clear()
        server = add_to(own(policy=policy))
        if mounts:
            server.mount("weather", weather())
        seen = []
        async with server.listening("http://127.0.0.1:0/mcp") as at:
            for key in [alice, bob]:
                async with Client(at, auth=ApiKey(key), revision=revision) as client:
                    for _ in range(2):
                        seen.append((await client.call_tool("value")).text)
        # Over HTTP each call of 2026-07-28 is a session of its own.
        each = ["key:alice 0", "key:alice 1", "key:bob 2", "key:bob 3"]
        shared = ["key:alice 0", "key:alice 0", "key:bob 1", "key:bob 1"]
        assert seen == (each if revision == "2026-07-28" else shared), mounts
        assert sorted(left) == sorted(made)


@coroutine
async def test_a_server_that_does_not_come_leaves_the_tools_of_the_server() -> None:
    server = own()
    server.mount("gone", External("tcp:127.0.0.1:1", name="gone"))
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["add", "who", "work"]
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(PeerError, match='the server "gone"'):
            await client.call_tool("gone_tool")


@coroutine
async def test_external_servers_are_mounted_beside_servers_and_behind_fronts() -> None:
    inner, server = Server("inner"), own()

    @inner.tool
    def deep() -> str:
        return "deep"

    server.mount("in", inner)
    server.mount("weather", weather())
    late: list[str] = []

    class Seeing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            late.append(message["method"])
            return await next(message)

    front = Front(External(server, prefix="all"), middleware=[Seeing()])
    async with Client(front) as client:
        tools = [tool.name for tool in await client.list_tools()]
        assert tools == [f"all_{name}" for name in ["add", "who", "work", "in_deep", "weather_today", "weather_ask"]]
        assert (await client.call_tool("all_in_deep")).text == "deep"
        assert (await client.call_tool("all_weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
    assert "tools/call" in late


@coroutine
async def test_tools_that_are_added_later_are_seen_and_may_not_have_names_of_external_servers() -> None:
    server = own(list_changes=True)
    server.mount("weather", weather())
    with pytest.raises(ValueError, match="'weather_x'"):

        @server.tool
        def weather_x() -> None: ...

    with pytest.raises(ValueError, match="'x://Weather/y'"):

        @server.resource("x://Weather/y")
        def y() -> str:
            return ""

    changed = asyncio.Event()
    async with Client(server, revision="2025-06-18", on_list_changed=lambda kind: changed.set()) as client:
        assert len(await client.list_tools()) == 5

        @server.tool
        def more() -> str:
            return "more"

        await changed.wait()
        assert "more" in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool("more")).text == "more"
        with pytest.raises(Misuse, match="before the first"):
            server.mount("late", External("tcp:127.0.0.1:1"))


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_the_official_client_sees_the_external_server(revision: str) -> None:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    server = own()
    server.mount("weather", weather())
    async with server.listening("http://127.0.0.1:0/mcp") as at:
        async with streamable_http_client(at) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert names == ["add", "who", "work", "weather_today", "weather_ask"]
            told = await session.call_tool("weather_today", {"place": "Bonn"})
            assert told.content[0].text == "sunny in Bonn"  # type: ignore[union-attr]


def test_what_cannot_be_mounted_is_named() -> None:
    far = External("tcp:127.0.0.1:1", name="far")
    for server, prefix, external, why in [
        (own(), "not a prefix", far, "prefix"),
        (own(), "far", External("tcp:127.0.0.1:1", prefix="a"), "has a prefix already"),
        (own(actions=True), "far", far, "another dialect"),
        (own(profile="extended"), "far", far, "another dialect"),
        (own(), "add", far, None),
        (own(), "own", External("tcp:127.0.0.1:1", name="own"), "same name"),
    ]:
        if why is None:
            server.mount(prefix, external)  # `add` does not begin with `add_`
            continue
        with pytest.raises(ValueError, match=why):
            server.mount(prefix, external)
        assert server._front is None
    with pytest.raises(TypeError, match="a Server or an External, not str"):
        own().mount("far", "https://example.com/mcp")  # type: ignore[arg-type]
    server, outer = own(), Server("outer")
    server.mount("far", far)
    with pytest.raises(ValueError, match="prefixes|prefix"):
        server.mount("far", External("tcp:127.0.0.1:2", name="other"))
    with pytest.raises(ValueError, match="has external servers mounted"):
        outer.mount("in", server)
    with pytest.raises(ValueError, match="leads to this front itself|within"):
        server.mount("loop", External(server, name="loop"))
    outer.mount("in", Server("inner"))
    inner = Server("inner")
    outer.mount("deep", inner)
    with pytest.raises(ValueError, match="is mounted in another one"):
        inner.mount("far", External("tcp:127.0.0.1:1", name="x"))
    named = Server("named")
    named.tool(name="far_away")(lambda: "")
    with pytest.raises(ValueError, match="'far_away'"):
        named.mount("far", far)


class Asgi:
    """An ASGI application on uvicorn."""

    def __init__(self, app: Any) -> None:
        import uvicorn

        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))

    async def __aenter__(self) -> str:
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.001)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        self.server.should_exit = True
        await self.task


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_a_front_and_a_server_with_external_servers_are_asgi_applications(revision: str) -> None:
    seen: list[str] = []

    class Seeing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            seen.append(message["method"])
            return await next(message)

    front = Front(External(own()), middleware=[Seeing()]).join(weather(prefix="weather"))
    server = own()
    server.mount("weather", weather())
    for app in [front.asgi("/mcp"), server.asgi("/mcp")]:
        async with Asgi(app) as at:
            async with Client(f"{at}/mcp", revision=revision, on_elicitation=lambda asked: {"place": "Bonn"}) as client:
                await has_all(client)
                assert (await client.call_tool("weather_ask")).text == "{'place': 'Bonn'}"
    assert "tools/call" in seen


@coroutine
async def test_a_front_within_an_application_has_its_lifespan() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        seen.append("open")
        yield
        seen.append("closed")

    mounted = Front(External(own(lifespan=lifespan))).asgi()
    async with Asgi(Starlette(routes=[Mount("/api", mounted)], lifespan=mounted.lifespan)) as at:
        async with Client(f"{at}/api") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert seen == ["open"]
    assert seen == ["open", "closed"]


# R-CHN-15
@pytest.mark.parametrize("is_async", [False, True])
@coroutine
async def test_a_verifier_of_the_program_says_who_the_clients_of_a_front_are(is_async: bool) -> None:
    principals: list[Any] = []

    def verify(credentials: Credentials) -> Principal | None:
        if credentials.secret == "broken":
            raise RuntimeError("no verdict")
        if credentials.kind != "bearer" or not credentials.secret.startswith("token of "):
            return None
        return Principal(credentials.secret.removeprefix("token of "), scopes=["read"])

    async def verify_later(credentials: Credentials) -> Principal | None:
        await asyncio.sleep(0)
        return verify(credentials)

    class Who(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            principals.append(next.principal)
            return await next(message)

    policy = Policy(verifier=verify_later if is_async else verify)
    front = Front(External(own(), name="own"), middleware=[Who()], policy=policy)
    front.join(weather(prefix="weather"))
    for app in [None, front.asgi()]:
        async with front.listening("http://127.0.0.1:0/mcp") if app is None else Asgi(app) as at:
            address = at if app is None else f"{at}/mcp"
            for revision in REVISIONS:
                async with Client(address, auth=Bearer("token of ada"), revision=revision, name="c") as client:
                    assert (await client.call_tool("who")).text.startswith("ada True c 20")
                    assert (await client.call_tool("weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
                    assert client.server_info.name == "mcpbolt"
            for wrong in ["wrong", "broken"]:
                with pytest.raises(McpError):
                    async with Client(address, auth=Bearer(wrong)) as client:
                        await client.list_tools()
    assert {*principals} == {"ada"}


@coroutine
async def test_a_verifier_of_the_program_counts_for_a_server_with_external_servers() -> None:
    server = own(policy=Policy(verifier=lambda credentials: credentials.secret or None))
    server.mount("weather", weather())
    async with server.listening("http://127.0.0.1:0/mcp") as at:
        async with Client(at, auth=Bearer("ada"), name="c") as client:
            assert (await client.call_tool("who")).text == "ada False c 2026-07-28"
            assert (await client.call_tool("weather_today", {"place": "Bonn"})).text == "sunny in Bonn"
        with pytest.raises(McpError):
            async with Client(at) as client:
                await client.list_tools()
