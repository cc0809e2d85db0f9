"""Chains: fronts, middleware and external servers."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from mcpbolt import Client, ConnectionClosed, Context, McpError, Misuse, PeerError, Policy, ProtocolError, RequestTimeout, Server
from mcpbolt.chain import External, Front, Middleware, Next, Prefix
from support import DIAGNOSTIC, ROOT, SECONDS, coroutine

REVISIONS = ["2025-06-18", "2026-07-28"]
EXAMPLE = [sys.executable, str(ROOT / "bindings-python" / "examples" / "chain.py")]


def inner() -> Server:
    server = Server("inner", list_changes=True)

    @server.tool
    def add(a: int, b: int) -> str:
        return str(a + b)

    @server.tool
    async def ask(context: Context) -> str:
        context.info("asking")
        answer = await context.elicit("Your name?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return str(answer.content)

    @server.tool
    async def log(context: Context) -> str:
        context.info("one")
        context.info("two")
        return "logged"

    return server


class Watching(Middleware):
    """Notes what passes."""

    def __init__(self, name: str = "", seen: list[str] | None = None) -> None:
        self.name = name
        self.seen: list[str] = [] if seen is None else seen

    async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
        self.seen.append(f"{self.name}> {message['method']} {next.direction}")
        response = await next(message)
        assert response["id"] == message["id"] and response["jsonrpc"] == "2.0"
        self.seen.append(f"{self.name}< {'error' if 'error' in response else 'result'}")
        return response

    async def notification(self, message: dict[str, Any], next: Next) -> None:
        self.seen.append(f"{self.name}! {message['method']} {next.direction}")
        await next(message)


# R-CHN-08
@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_middleware_sees_requests_in_order_and_answers_in_reverse(revision: str) -> None:
    seen: list[str] = []
    front = Front(External(inner()), middleware=[Watching("a", seen), Watching("b", seen)])
    assert front.name == "inner"
    async with Client(front, revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert client.server_info.name == "inner"
    assert seen == ["a> tools/call to_server", "b> tools/call to_server", "b< result", "a< result"]


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_questions_of_the_server_pass_in_the_other_direction(revision: str) -> None:
    watching = Watching()
    front = Front(External(inner()), middleware=[watching])
    async with Client(front, revision=revision, on_elicitation=lambda asked: {"name": "Faust"}) as client:
        assert (await client.call_tool("ask")).text == "{'name': 'Faust'}"
    asked = "> elicitation/create to_client" in watching.seen
    # Between two sides of the stateless era, questions are parts of answers.
    assert asked == (revision == "2025-06-18")


# R-CHN-12
@coroutine
async def test_a_call_that_asks_as_soon_as_the_client_is_connected_asks_once() -> None:
    asked: list[str] = []

    def user(question: Any) -> dict[str, str]:
        asked.append(question.message)
        return {"name": "Faust"}

    front = Front(External(inner(), opening="handshake", revision="2025-11-25"))
    for _ in range(40):
        async with Client(front, revision="2026-07-28", on_elicitation=user) as client:
            assert (await client.call_tool("ask")).text == "{'name': 'Faust'}"
    assert len(asked) == 40


@pytest.mark.parametrize("revision", REVISIONS)
@coroutine
async def test_messages_may_be_changed_on_their_way(revision: str) -> None:
    class Changing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            if message["params"].get("name") == "add":
                message["params"]["arguments"]["b"] = 40
            return await next(message)

        async def response(self, message: dict[str, Any], next: Next) -> None:
            assert next.request is not None and next.direction == "to_client" and next.revision == revision
            if next.request["method"] == "tools/call":
                message["result"]["content"][0]["text"] += "!"
                message["result"].pop("structuredContent", None)
            await next(message)

        async def notification(self, message: dict[str, Any], next: Next) -> None:
            if message["params"].get("data") != "one":
                message["params"]["data"] = "other"
                await next(message)

    logs: list[Any] = []
    front = Front(External(inner()), middleware=[Changing()])
    async with Client(front, revision=revision, on_log=lambda log: logs.append(log["data"])) as client:
        await client.set_log_level("debug")
        assert (await client.call_tool("add", {"a": 2, "b": 2})).text == "42!"
        assert (await client.call_tool("log")).text == "logged!"
    assert logs == ["other"]


@coroutine
async def test_answers_do_not_overtake_notifications_and_what_nobody_sees_does_not_pass_through_python() -> None:
    class Notices(Middleware):
        async def notification(self, message: dict[str, Any], next: Next) -> None:
            await next(message)

    logs: list[Any] = []
    front = Front(External(inner()), middleware=[Notices()])
    async with Client(front, on_log=lambda log: logs.append(log["data"])) as client:
        await client.set_log_level("debug")
        for _ in range(50):
            await client.call_tool("log")
    assert logs == ["one", "two"] * 50


@coroutine
async def test_middleware_may_answer_itself_and_refuse() -> None:
    class Own(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            match message["params"].get("name"):
                case "mine":
                    return {"result": {"content": [{"type": "text", "text": "mine"}], "resultType": "complete"}}
                case "error":
                    return {"error": {"code": -32000, "message": "no", "data": [1]}}
                case "protocol":
                    raise ProtocolError("invalid_params", "not so", {"a": 1})
                case "peer":
                    raise PeerError(-7, "as the other said")
                case "fails":
                    raise RuntimeError("a secret")
                case "nothing":
                    return None  # type: ignore[return-value]
                case "twice":
                    await next(message)
                    return await next(message)
                case "method":
                    return await next({**message, "method": "tools/list"})
            return await next(message)

    front = Front(External(inner()), middleware=[Own()])
    async with Client(front) as client:
        assert (await client.call_tool("mine")).text == "mine"
        for name, code, message, data in [
            ("error", -32000, "no", [1]),
            ("protocol", -32602, "not so", {"a": 1}),
            ("peer", -7, "as the other said", None),
            ("fails", -32603, "the middleware failed unexpectedly", None),
            ("nothing", -32603, "the middleware failed unexpectedly", None),
            ("twice", -32603, "the middleware failed unexpectedly", None),
            ("method", -32603, "the middleware failed unexpectedly", None),
        ]:
            with pytest.raises(PeerError) as refused:
                await client.call_tool(name)
            assert (refused.value.code, refused.value.message, refused.value.data) == (code, message, data)
        # The front goes on.
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


def test_exceptions_of_middleware_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            await next(message)
            return await next(message)

        async def notification(self, message: dict[str, Any], next: Next) -> None:
            raise RuntimeError("lost")

    @coroutine
    async def run() -> None:
        front = Front(External(inner()), middleware=[Failing()], mask_error_details=False)
        async with Client(front) as client:
            await client.set_log_level("debug")
            with pytest.raises(PeerError, match="`request` of Failing failed: the request was passed on before"):
                await client.call_tool("log")

    with caplog.at_level(logging.ERROR):
        run()
    said = [record.message for record in caplog.records if record.name == "mcpbolt.server.inner"]
    assert "`request` of Failing failed" in said and "`notification` of Failing failed" in said


# R-CAN-12
@coroutine
async def test_a_cancellation_reaches_middleware_and_the_server() -> None:
    reached: list[str] = []
    begun, ended = asyncio.Event(), asyncio.Event()
    server = inner()

    @server.tool
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            reached.append("server")
            ended.set()
        return ""

    class Waiting(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            try:
                return await next(message)
            except asyncio.CancelledError:
                reached.append("middleware")
                raise

    async with Client(Front(External(server), middleware=[Waiting()])) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await begun.wait()
        call.cancel()
        await ended.wait()
        while len(reached) < 2:
            await asyncio.sleep(0.001)
    assert sorted(reached) == ["middleware", "server"]


# R-CAN-12
@coroutine
async def test_a_request_that_is_cancelled_before_its_middleware_runs_leaves_nothing_behind() -> None:
    from mcpbolt._failures import Failures
    from mcpbolt._hooks import HookRunner

    watching = Watching()
    runner = HookRunner(asyncio.get_running_loop())
    runner.add([0], [watching], Failures("inner"), None)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for number in range(3):
        # As both are told when they come together.
        runner.on_request(0, number, message, ("to_server", "2026-07-28", None))
        runner.on_given_up(0, number)
    await asyncio.sleep(0)
    assert (runner.calls, watching.seen) == ({}, [])
    runner.close()


@coroutine
async def test_middleware_that_gives_up_an_answer_cancels_the_request() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    server = inner()

    @server.tool
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return ""

    class Hasty(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            answer = asyncio.ensure_future(next(message))
            await begun.wait()
            answer.cancel()
            return {"error": {"code": -1, "message": "too slow"}}

    async with Client(Front(External(server), middleware=[Hasty()])) as client:
        with pytest.raises(PeerError, match="too slow"):
            await client.call_tool("wait")
        await ended.wait()


# R-CHN-14
@coroutine
async def test_a_server_that_cannot_be_reached_is_an_exception_for_middleware_and_an_error_for_the_client() -> None:
    seen: list[BaseException] = []

    class Seeing(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            try:
                return await next(message)
            except McpError as error:
                seen.append(error)
                raise

    front = Front(External("tcp:127.0.0.1:1", name="gone"), middleware=[Seeing()])
    with pytest.raises(PeerError, match='the server "gone"') as refused:
        async with Client(front, opening="stateless", revision="2026-07-28") as client:
            await client.list_tools()
    assert isinstance(refused.value.data, dict) and refused.value.data["reason"] == "upstream_unavailable"
    assert all(isinstance(error, McpError) for error in seen)

    server = inner()

    @server.tool
    async def wait() -> None:
        await asyncio.sleep(60)

    async with Client(Front(External(server, timeout=0.05), middleware=[Seeing()])) as client:
        with pytest.raises(PeerError) as refused:
            await client.call_tool("wait")
    assert isinstance(refused.value.data, dict) and refused.value.data["reason"] == "upstream_timeout"
    assert isinstance(seen[-1], RequestTimeout)


# R-CHN-10
@coroutine
async def test_what_is_passed_on_unchanged_stays_as_it_is_byte_for_byte() -> None:
    number = "1.00000000000000000000000000000000001"
    server = Server("numbers")

    @server.tool
    def raw() -> str:
        return "ok"

    seen: list[bytes] = []

    class Looking(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            return await next(message)

    # A server that answers each line with what came, under its id.
    echo = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    id = json.loads(line).get('id')\n"
        "    text = line[line.index('\"arguments\":') + 12:] if 'arguments' in line else '{}'\n"
        "    depth = end = 0\n"
        "    for end, letter in enumerate(text):\n"
        "        depth += (letter == '{') - (letter == '}')\n"
        "        if depth == 0: break\n"
        "    first = '{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"e\",\"version\":\"1\"}}'\n"
        "    if id is not None:\n"
        "        result = first if 'initialize' in line else '{\"content\":[],\"structuredContent\":' + text[:end + 1] + '}'\n"
        "        print('{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}' % (json.dumps(id), result), flush=True)\n"
    )
    front = Front(External([sys.executable, "-c", echo], opening="handshake"), middleware=[Looking()])
    async with front.listening("tcp:127.0.0.1:0") as at:
        host, port = at.removeprefix("tcp:").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        writer.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode() + b"\n")
        await reader.readline()
        writer.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        asked = '{"a":%s,"a":2,"\\u00e9":"\\u0041","big":123456789012345678901234567890e0}' % number
        call = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"raw","arguments":%s}}\n' % asked
        writer.write(call.encode())
        answer = await reader.readline()
        writer.close()
        seen.append(answer)
    assert seen == [b'{"jsonrpc":"2.0","id":"x","result":{"content":[],"structuredContent":%s}}\n' % asked.encode()]


@coroutine
async def test_a_front_serves_another_process_over_http_with_a_prefix_and_another_front() -> None:
    first = Front(External(DIAGNOSTIC, inherit_env=["PYTHONPATH"]), middleware=[Prefix("first")])
    assert first.name == Path(sys.executable).name
    watching = Watching()
    second = Front(External(first, name="second"), middleware=[watching])
    async with second.listening("http://127.0.0.1:0/mcp") as at:
        for revision in REVISIONS:
            async with Client(at, revision=revision) as client:
                tools = [tool.name for tool in await client.list_tools()]
                assert tools and all(name.startswith("first_") for name in tools)
        assert at.counts.http_requests > 0
    assert "> tools/list to_server" in watching.seen


@coroutine
async def test_the_lifespan_of_a_server_at_the_end_is_open_while_the_front_is_served() -> None:
    from contextlib import asynccontextmanager

    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        seen.append("open")
        yield "state"
        seen.append("closed")

    server = Server("alive", lifespan=lifespan)

    @server.tool
    def state(context: Context) -> str:
        return str(context.state)

    front = Front(External(server))
    for _ in range(2):
        async with front.listening("http://127.0.0.1:0/mcp") as at, Client(at) as client:
            assert (await client.call_tool("state")).text == "state"
    assert seen == ["open", "closed"] * 2


@coroutine
async def test_a_front_has_a_policy_of_its_own_whose_credentials_stay_with_it() -> None:
    token = "k" * 40
    audited: list[Any] = []
    policy = Policy(keys={token: ("alice", [])}, audit=audited.append)
    principals: list[str | None] = []
    headers: list[str] = []

    class Who(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            principals.append(next.principal)
            headers.append(json.dumps(message))
            return await next(message)

    front = Front(External(inner()), middleware=[Who()], policy=policy)
    from mcpbolt import ApiKey

    async with front.listening("http://127.0.0.1:0/mcp") as at:
        async with Client(at, auth=ApiKey(token)) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        with pytest.raises(McpError):
            async with Client(at):
                pass
    assert set(principals) == {"key:alice"} and token not in "".join(headers)


WHICH = """
import os
from mcpbolt import Server
server = Server("which")

@server.tool
def process() -> int:
    return os.getpid()

server.run()
"""


async def processes(external: External, keys: list[str]) -> list[str]:
    """The processes behind a front that sessions of the owners of these keys get, all open at a time."""
    from contextlib import AsyncExitStack

    from mcpbolt import ApiKey

    policy = Policy(keys={key: (key[0], []) for key in {*keys}})
    async with Front(external, policy=policy).listening("http://127.0.0.1:0/mcp") as at, AsyncExitStack() as stack:
        clients = [Client(at, auth=ApiKey(key), revision="2025-06-18") for key in keys]
        for client in clients:
            await stack.enter_async_context(client)
        return [(await client.call_tool("process")).text for client in clients]


@coroutine
async def test_clients_share_a_process_as_far_as_the_isolation_says() -> None:
    alice, bob = "a" * 40, "b" * 40
    command = [sys.executable, "-c", WHICH]
    for isolation, count in [(None, 3), ("session", 3), ("principal", 2), ("shared", 1)]:
        external = External(command, isolation=isolation, inherit_env=["PYTHONPATH"])  # type: ignore[arg-type]
        seen = await processes(external, [alice, alice, bob])
        assert len({*seen}) == count, isolation


@coroutine
async def test_a_client_that_needs_one_connection_too_many_is_refused() -> None:
    external = External([sys.executable, "-c", WHICH], max_connections=1, inherit_env=["PYTHONPATH"])
    with pytest.raises(McpError, match="overloaded|too many"):
        await processes(external, ["a" * 40] * 2)
    shared = External([sys.executable, "-c", WHICH], max_connections=1, isolation="shared", inherit_env=["PYTHONPATH"])
    assert len({*await processes(shared, ["a" * 40] * 2)}) == 1


@coroutine
async def test_the_chain_of_the_document_runs() -> None:
    lines: list[str] = []
    # What the server needs of this test's environment, if anything.
    path = [f"PYTHONPATH={os.environ[name]}" for name in ["PYTHONPATH"] if name in os.environ]
    command = [*EXAMPLE, "env", *path, *DIAGNOSTIC]
    async with Client(command, inherit_env=["PYTHONPATH"], on_stderr=lines.append) as client:
        assert await client.list_tools()
    assert "→ tools/list" in lines and "← result" in lines


@coroutine
async def test_a_front_on_stdio_ends_with_its_client_and_prints_nothing_to_stdout() -> None:
    program = (
        "import sys\n"
        "from mcpbolt.chain import External, Front\n"
        f"Front(External({DIAGNOSTIC!r}, inherit_env=['PYTHONPATH'])).run()\n"
        "print('over', 'asyncio' in sys.modules, file=sys.stderr)\n"
    )
    lines: list[str] = []
    async with Client([sys.executable, "-c", program], inherit_env=["PYTHONPATH"], on_stderr=lines.append) as client:
        assert await client.list_tools()
    assert lines == ["over False"]


@coroutine
async def test_messages_of_a_front_that_has_ended_are_refused_and_nothing_is_kept() -> None:
    stuck = asyncio.Event()

    class Stuck(Middleware):
        async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
            stuck.set()
            await asyncio.sleep(60)
            return await next(message)

    middleware = Stuck()
    kept = weakref.ref(middleware)
    front = Front(External(inner()), middleware=[middleware])
    async with front.listening("http://127.0.0.1:0/mcp", grace=0.1) as at:
        client = Client(at, opening="stateless", revision="2026-07-28")
        await client.__aenter__()
        call = asyncio.create_task(client.list_tools())
        await stuck.wait()
    with pytest.raises((McpError, ConnectionClosed)):
        await call
    await client.__aexit__(None, None, None)
    del front, middleware, client, call
    for _ in range(20):
        gc.collect()
        if kept() is None:
            break
        await asyncio.sleep(0.05)
    assert kept() is None


SDK = """
from mcp.server import MCPServer
server = MCPServer("theirs")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


@coroutine
async def test_a_server_and_a_client_of_the_official_sdk_are_joined() -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    watching = Watching()
    async with Client(Front(External([sys.executable, "-c", SDK]), middleware=[watching, Prefix("their")])) as client:
        assert [tool.name for tool in await client.list_tools()] == ["their_add"]
        assert (await client.call_tool("their_add", {"a": 1, "b": 2})).structured == {"result": 3}
    assert watching.seen.count("< result") >= 2
    program = (
        "import sys\n"
        "from mcpbolt.chain import External, Front, Middleware\n"
        "class Loud(Middleware):\n"
        "    async def request(self, message, next):\n"
        "        return await next(message)\n"
        f"Front(External([sys.executable, '-c', {SDK!r}]), middleware=[Loud()]).run()\n"
    )
    environment = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "PATH")}
    front = StdioServerParameters(command=sys.executable, args=["-c", program], env=environment)
    async with stdio_client(front) as streams, ClientSession(*streams) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["add"]
        assert (await session.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


@coroutine
async def test_what_no_middleware_sees_passes_while_the_event_loop_is_blocked() -> None:
    from urllib.request import Request, urlopen

    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    front = Front(External(DIAGNOSTIC, inherit_env=["PYTHONPATH"]), middleware=[Middleware()])
    async with front.listening("http://127.0.0.1:0/mcp") as at:
        # Blocks the thread of the event loop until the answer is there.
        with urlopen(Request(at, json.dumps(body).encode(), headers), timeout=SECONDS) as answer:
            said = answer.read().decode()
    assert '"id":7' in said and '"tools":[' in said


def test_a_chain_works_under_trio() -> None:
    import trio

    watching = Watching()

    async def run() -> None:
        with trio.fail_after(SECONDS):
            front = Front(External(inner()), middleware=[watching])
            async with front.listening("http://127.0.0.1:0/mcp") as at, Client(at) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
                with trio.move_on_after(0.05):
                    await client.call_tool("ask")

    trio.run(run)
    assert "> tools/call to_server" in watching.seen


def test_a_signal_ends_a_front_that_runs() -> None:
    for middleware in ["", "Middleware()"]:
        program = (
            "from mcpbolt import Server\n"
            "from mcpbolt.chain import External, Front, Middleware\n"
            f"Front(External({DIAGNOSTIC!r}), middleware=[{middleware}]).run('http://127.0.0.1:0/mcp')\n"
            "print('over')\n"
        )
        running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        assert "is reached at http://127.0.0.1:" in running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=SECONDS)
        assert (running.returncode, out) == (0, "over\n")


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="address"):
        External("nothing://here")
    with pytest.raises(ValueError, match="the command is empty"):
        External([])
    with pytest.raises(ValueError, match="timeout"):
        External("tcp:localhost:1", timeout=-1)
    with pytest.raises(ValueError, match="isolation"):
        External("tcp:localhost:1", isolation="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prefix"):
        Prefix("not a prefix")
    with pytest.raises(Misuse, match="no event loop"):
        Front(External(inner())).listening("http://127.0.0.1:0/mcp").__aenter__().send(None)
