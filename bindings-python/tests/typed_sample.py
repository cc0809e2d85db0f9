# pyright: strict
"""Checked by type checkers, never run: what the package promises to type checkers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

from mcpbolt import (
    ActionAnswer,
    ActionError,
    AsgiApp,
    Basic,
    Bearer,
    BreakerPolicy,
    CallToolResult,
    CarrierError,
    Client,
    ClientInfo,
    ConnectionClosed,
    ConnectOptions,
    Context,
    Counts,
    Elicited,
    Icon,
    Image,
    Jwt,
    McpError,
    Policy,
    Pool,
    ProtocolError,
    References,
    RequestTimeout,
    Results,
    RetryPolicy,
    Root,
    Sampled,
    SamplingRequest,
    ServeOptions,
    ServedAddress,
    Server,
    Skill,
    Steps,
    Task,
    TaskInfo,
    TaskLimits,
    Tool,
    ToolResult,
)
from mcpbolt import engine
from mcpbolt.chain import (
    Approval,
    ApprovalCall,
    Breaker,
    CallReports,
    Direction,
    External,
    Front,
    Masking,
    Middleware,
    Next,
    PinDrift,
    Pins,
    Prefix,
    Retry,
    UpstreamCall,
    tool_pin,
)


def by_hand(data: bytes) -> bytes:
    message = engine.decode(data)
    assert_type(message.id, "int | str | None")
    assert_type(message.params, "dict[str, Any] | None")
    assert_type(engine.encode_request(1, "ping"), bytes)
    kind, _, method, _ = engine.unpack(data)
    if kind == "request":
        assert_type(method, "str | None")
    connection = engine.Connection("server", "x", capabilities={"tools": {}})
    connection.feed(data)
    for event in connection.events():
        match event:
            case engine.Request():
                event.respond({"content": []})
            case engine.Answered(number=number):
                assert_type(number, int)
            case _:
                pass
    return connection.output()


async def at_an_address(server: Server) -> None:
    async with server.listening("http://127.0.0.1:0/mcp") as address:
        assert_type(address.counts, Counts)
        Client(address, options=ConnectOptions(proxy="", read_timeout=5.0))


@asynccontextmanager
async def lifespan(server: Server) -> AsyncGenerator[list[str]]:
    yield [server.name]


def hello(client: ClientInfo) -> None:
    print(client.name)


async def approve(tool: str, arguments: dict[str, Any], context: Context) -> bool:
    return (await context.elicit(tool, {"type": "object"})).accepted


def clean(tool: str, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
    return {**arguments, "b": ""}


kept = Results(60, scope="public")
server = Server(
    "sample",
    "1.0",
    actions=True,
    lifespan=lifespan,
    cache_lists=60,
    cache_scope="public",
    extensions={"com.example/a": {}},
    task_limits=TaskLimits(ttl=60, per_owner=8),
    references=References(1 << 20, ttl=60),
    policy=Policy(
        keys={"k": ("alice", ["read"]), "l": ("bob", ())},
        jwt=Jwt("RS256", "PEM", keys={"k": ("EdDSA", "PEM")}, issuer=["me", "you"], any_audience=True),
        scopes={"plain": ["read"]},
        audit_queue=100,
        audit_when_full="refuse",
    ),
    approval={"plain": approve, "other": lambda tool, arguments, context: context.revision > "2025"},
    sanitise={"*": clean},
    on_initialized=hello,
)
server.add_skills("skills")


@server.tool(kept=kept, on_get=False)
def booked(room: str, steps: Steps) -> str:
    steps.taken(lambda: kept.forget("booked"))
    kept.forget_all()
    return room


@server.tool
def plain(a: int, b: str = "") -> str:
    return b * a


@server.tool(name="other", inline=True)
def named(a: int) -> Image:
    return Image(bytes(a))


@server.resource("files://{path}")
async def file(path: str, context: Context) -> bytes:
    context.progress(1, total=2)
    return path.encode()


@server.tool
async def asks(context: Context) -> str:
    assert_type(await context.roots(), list[Root])
    assert_type(context.elicit("?", {"type": "object"}).wait(), Elicited)
    return (await context.sample("x", max_tokens=1)).text


@server.tool(task="optional", icons=["https://a/b.png", Icon("data:,")], meta={"a": 1}, output_schema={})
async def long(context: Context) -> ToolResult:
    assert_type(context.begin_task(), bool)
    assert_type(context.principal, str | None)
    assert_type(context.has_scope("read"), bool)
    assert_type(context.client, ClientInfo)
    context.require("elicitation", "url")
    if context.extension("com.example/a") is None:
        raise ProtocolError("invalid_params", "no", {"a": 1})
    return ToolResult([Image(b"", meta={"a": 1})], meta=context.meta)


async def sampling(request: SamplingRequest) -> Sampled:
    return Sampled(request.messages[0].text, "model")


@server.prompt
def prompt(code: str) -> str:
    return code


assert_type(plain(1), str)
assert_type(named(1), Image)
assert_type(prompt("x"), str)


async def main() -> None:
    async with Client([sys.executable, "server.py"], timeout=5) as client:
        assert_type(await client.list_tools(), list[Tool])
        result = await client.call_tool("plain", {"a": 1}, on_progress=lambda done, total, message: None)
        assert_type(result, CallToolResult)
        assert_type(result.text, str)
        try:
            await client.ping(timeout=1)
        except RequestTimeout as error:
            assert_type(error.code, int | None)
            failure: McpError | TimeoutError = error
            print(failure)
    async with Client(server, on_sampling=sampling, on_elicitation=lambda request: {"size": 1}) as client:
        async with client.listen(tools=True):
            async for page in client.tool_pages():
                assert_type(page, list[Tool])
    async with Client(server, tasks=True, extensions={"com.example/a": {}}) as client:
        task = await client.start_tool("long", ttl=60, meta={"traceparent": "00"})
        assert_type(task, Task)
        async for info in task:
            assert_type(info, TaskInfo)
        assert_type(await task, CallToolResult)
        assert_type(await client.list_tasks(), list[TaskInfo])
        for skill in await client.list_skills():
            assert_type(skill, Skill)
            assert_type(await client.read_skill(skill), str)
            assert_type(await client.read_skill_file(skill, skill.uri), bytes)
        assert_type(client.server_info.extensions, dict[str, Any])
    retry, breaker = RetryPolicy(tries=2, base=0.5), BreakerPolicy(failures=3)
    async with Client(server, opening="actions") as client:
        try:
            called = await client.action("own", {"a": 1}, on_partial=print, retry=retry, breaker=breaker, fallback=("b", {}))
            assert_type(called, ActionAnswer)
            assert_type(called.joined("token"), str)
            calls: list[tuple[str, dict[str, Any]]] = [("own", {"a": 1})]
            assert_type((await client.action_batch(calls)).results(), list[Any | ActionError])
            assert_type(await client.action_schemas(), dict[str, Any])
        except ActionError as error:
            assert_type(error.kind, str | None)
            assert_type(error.for_people, str)
    options = ServeOptions(
        hosts=["example.com"],
        anonymous=True,
        origins=["https://app.example.com"],
        cors=True,
        tls=("cert.pem", Path("key.pem")),
        tls_clients=Path("clients.pem"),
        trusted_proxies=["10.0.0.0/8"],
        max_sessions_per_peer=5,
        session_ttl=60,
        stall_timeout=5,
        threads=2,
        max_connections_per_peer=50,
    )
    async with server.listening("https://127.0.0.1:0/mcp", grace=1, options=options) as address:
        assert_type(address, ServedAddress)
        async with Client(address, auth=Bearer("t"), headers={"X-Own": "1"}, on_closed=closed) as client:
            async with client.listen(uris=["a://b"]) as listening:
                assert_type(await listening.ended(), None)
    assert_type(server.asgi("/mcp", options=options), AsgiApp)
    async with server.asgi().lifespan():
        pass
    for other in ("ws://127.0.0.1:8000/mcp", "unix:/run/own.sock", "tcp:127.0.0.1:8000"):
        async with Client(other, auth=Basic("name", "secret")) as client:
            assert_type(client.server_info.name, str)
        await server.serve(address, options=options)
    await server.serve()


async def chained() -> None:
    class Loud(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            assert_type(next.direction, Direction)
            return await next(message)

    front = Front(External(["npx", "server"], cwd="/", timeout=5), middleware=[Loud(), Prefix("a")], policy=Policy())
    assert_type(front.name, str)

    async def approve(call: ApprovalCall) -> bool | str:
        assert_type(call.arguments, dict[str, Any])
        return call.principal is not None or "nobody knows you"

    def drifted(drift: PinDrift) -> None:
        assert_type(drift.pinned, str | None)

    def reported(call: UpstreamCall) -> None:
        assert_type(call.seconds, float)

    breaker = Breaker(failures=2, window=1, rest=1)
    assert_type(breaker.is_open, bool)
    assert_type(tool_pin({"name": "add"}), str)
    pins = Pins({"add": "sha256:0"}, on_drift=drifted)
    rules = [CallReports(reported), breaker, Retry(1), pins, Masking(["a"], texts="both")]
    far = External("https://example.com/mcp", isolation="shared", max_connections=2, rules=rules)
    front = Front(far, middleware=[Approval(["*"], approve), Approval(["pay"], timeout=None)], hook_timeout=None)
    assert_type(front.asgi("/mcp"), AsgiApp)
    Server("own").mount("far", far)
    async with front.listening("http://127.0.0.1:0/mcp") as address:
        assert_type(address, ServedAddress)
    async with Client(Front(External(front, name="b"))) as client:
        assert_type(client, Client)
    async with Pool(max_connections=2, headers={"X-Own": "1"}) as pool:
        async with pool.client("https://example.com/mcp", revision="2025-06-18") as client:
            assert_type(client, Client)
        pool.release(await pool.acquire(["npx", "server"]), discard=True)
        assert_type(pool.counts.idle, int)


def closed(error: ConnectionClosed) -> None:
    assert_type(error.reason, str)
    if isinstance(error.__cause__, CarrierError):
        assert_type(error.__cause__.status, int | None)


asyncio.run(main())
