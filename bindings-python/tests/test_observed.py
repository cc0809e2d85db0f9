"""Servers whose requests something observes: answers, spans and calls of hooks are the same accelerated as by themselves,
and what nothing observes is the engine's."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from forks import Forks
from mcp.server.mcpserver import MCPServer
from support import coroutine
from test_existing import STATELESS, Conversation, Message, call

from mcpbolt import Client
from mcpbolt.mcp import accelerate, listening, report

TRACED = {"_meta": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
ESCAPED = {"_meta": {"baggage": "a=b", **TRACED["_meta"]}}
HERE = "http://127.0.0.1:0/mcp"
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
HOOKS = sorted(name for name in vars(Middleware) if name == "__call__" or not name.startswith("_"))
OBSERVED = [
    *(f"{kind}:{what}" for kind in ("sdk", "fast") for what in ("nothing", "traced", "noop", "disabled", "late", "debug", "function")),
    "sdk:telemetry",
    *(f"fast:{hook}" for hook in HOOKS),
    *(f"fast:{what}" for what in ("object", "timing", "detailed", "logging", "errors", "caching", "limiting", "injection", "dereferences")),
    *(f"fast:{what}" for what in ("off", "propagation_only", "intercepts", "settled", "own", "loud", "inner")),
]


# In 2026-07-28 few suffice: the engine asks the same questions.
STATELESSLY = ["sdk:traced", "sdk:late", "sdk:function", "fast:traced", "fast:propagation_only", "fast:on_call_tool", "fast:on_message"]
CASES = [*(("2025-11-25", word) for word in OBSERVED), *((STATELESS, word) for word in STATELESSLY)]


def steps(what: str, revision: str) -> Iterator[tuple[str, list[Message]]]:
    if what == "late":
        yield "before a tracer is installed", [call("echo", text="a"), {"method": "tools/list"}, {"method": "prompts/list"}]
        yield "installs a tracer", [call("late")]
    for turn in ("first", "again"):
        for method in LISTS:
            yield f"{method} {turn}", [{"method": method}]
        # The engine refuses pings in 2026-07-28, which does not have them (R-PNG-03).
        if revision != STATELESS:
            yield f"ping {turn}", [{"method": "ping"}]
        yield f"call {turn}", [call("add", a=1)]
        yield f"whose {turn}", [call("whose")]
        yield f"read {turn}", [{"method": "resources/read", "params": {"uri": "memo://a"}}]
        yield f"read by template {turn}", [{"method": "resources/read", "params": {"uri": "memo://x/of/me"}}]
        yield f"prompt {turn}", [{"method": "prompts/get", "params": {"name": "greet", "arguments": {"who": "me"}}}]
    yield "long", [call("echo", text="a" * 200)]
    yield "failure", [call("fail")]
    yield "wrong arguments", [call("add", a="x")]
    yield "no tool", [call("none")]
    yield "no resource", [{"method": "resources/read", "params": {"uri": "none://a"}}]
    yield "no prompt", [{"method": "prompts/get", "params": {"name": "none"}}]
    yield "malformed", [{"method": "tools/call", "params": {"arguments": {}}}]
    for meta in (TRACED, ESCAPED):
        yield f"call in a trace {meta}", [{"method": "tools/call", "params": {"name": "traced", "arguments": {}, **meta}}]
        yield f"list in a trace {meta}", [{"method": "tools/list", "params": meta}]
    yield "call in no trace", [call("traced")]
    yield "seen", [call("seen")]


def masked(said: Any) -> Any:
    """Without what differs from run to run: identifiers of sessions, times. Errors are in one line on the wire (R-RPC-14)."""
    text = re.sub(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", "ID", json.dumps(said))
    made = json.loads(re.sub(r"duration_ms=\d+\.\d+|\d+\.\d+ ?ms", "TIME", text))
    for messages in made.values():
        for one in messages:
            if "error" in one:
                one["error"]["message"] = " ".join(one["error"]["message"].split())
    return made


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks("observed") as made:
        yield made


async def both(forks: Forks, word: str, revision: str) -> list[dict[str, list[Message]]]:
    ways = (f"{how} stdio: {word}" for how in ("own", "accelerated"))
    given = [*steps(word.split(":")[1], revision)]
    return await asyncio.gather(*(Conversation(forks, way, revision).hold(given) for way in ways))


@pytest.mark.parametrize(("revision", "word"), CASES)
def test_what_is_observed_is_the_same(forks: Forks, revision: str, word: str) -> None:
    theirs, ours = map(masked, asyncio.run(both(forks, word, revision)))
    differences = {name: [said, ours[name]] for name, said in theirs.items() if ours[name] != said}
    assert not differences, json.dumps(differences, indent=1)[:20000]
    assert "seen" in theirs


async def reaches(server: Any, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The methods whose requests reach the SDK's kernel, with each list asked for twice before."""
    from mcpbolt.mcp import _kernel

    seen: list[str] = []
    handled = _kernel.Kernel.serving

    def serving(kernel: Any, meta: object) -> None:
        seen.append(sys._getframe(1).f_locals["method"])
        handled(kernel, meta)

    with monkeypatch.context() as patched:
        patched.setattr(_kernel.Kernel, "serving", serving)
        async with listening(server, HERE) as here, Client(here, revision="2025-11-25") as client:
            await ask(client)
            seen.clear()
            await ask(client)
    return set(seen)


async def ask(client: Client) -> None:
    """One request of each kind."""
    await client.list_tools()
    await client.list_resources()
    await client.list_resource_templates()
    await client.list_prompts()
    await client.ping()
    await client.call_tool("add", {"a": 1})
    await client.read_resource("memo://a")
    await client.get_prompt("greet", {"who": "me"})


ALL = {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "ping", "tools/call", "resources/read", "prompts/get"}


def made(kind: Any, **options: Any) -> Any:
    server = kind("observed", **options)
    server.tool()(add)
    server.resource("memo://a")(memo)
    server.prompt()(greet)
    return accelerate(server)


def add(a: int) -> int:
    return a


def memo() -> str:
    return "memo"


def greet(who: str) -> str:
    return who


def hooks(*names: str) -> Any:
    async def hook(self: Any, context: Any, call_next: Any) -> Any:
        return await call_next(context)

    return type("Hooks", (Middleware,), dict.fromkeys(names, hook))()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), set()),
        (("on_call_tool",), {"tools/call"}),
        (("on_list_tools", "on_read_resource"), {"tools/list", "resources/read"}),
        (("on_initialize", "on_notification"), set()),
        (("on_message",), ALL),
        (("on_request",), ALL),
        (("__call__",), ALL),
    ],
)
@coroutine
async def test_a_hook_keeps_only_its_own_method(
    names: tuple[str, ...], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = made(FastMCP, middleware=[hooks(*names)] if names else [])
    assert await reaches(server, monkeypatch) == expected
    kept = {title.split()[0] for title in report(server).kept}
    words = {"tools/call": "tool", "resources/read": "resource", "prompts/get": "prompt"}
    assert kept == {word for method, word in words.items() if method in expected}


@coroutine
async def test_what_the_sdk_logs_about_resources_keeps_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("mcp.server.mcpserver.resources.resource_manager")
    server = made(MCPServer, log_level="CRITICAL")
    assert await reaches(server, monkeypatch) == set()
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger.manager._clear_cache()  # type: ignore[attr-defined]
    assert await reaches(server, monkeypatch) == {"resources/list", "resources/templates/list", "resources/read"}
    logger.manager._clear_cache()  # type: ignore[attr-defined]


@coroutine
async def test_middleware_that_comes_and_goes_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for pings and lists, which are answered from memory until then."""
    seen: list[str] = []

    async def watch(ctx: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server = made(MCPServer, log_level="CRITICAL")
    async with listening(server, HERE) as here, Client(here, revision="2025-11-25") as client:
        for expected in ([], ["ping", "tools/list", "tools/call"], []):
            seen.clear()
            for _ in range(2):
                await client.ping()
                await client.list_tools()
                await client.call_tool("add", {"a": 1})
            assert seen == expected * 2
            if watch in server.middleware:
                server.middleware.remove(watch)
            else:
                server.middleware.append(watch)
