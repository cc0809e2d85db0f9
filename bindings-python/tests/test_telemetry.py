"""Spans and metrics in the program's own OpenTelemetry, held against the conventions for MCP in `corpus/telemetry.json`.

A tracer is global, so each test is a process of its own: this file with the name of a function.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from support import ROOT, SECONDS

CONVENTIONS = json.loads((ROOT / "corpus" / "telemetry.json").read_text())
# Name; tool, prompt or URI; error.type at the client and at the server; code.
ROWS = [
    ("tools/call order", "order", None, None, None),
    ("tools/call fail", "fail", "tool_error", "tool_error", None),
    ("tools/call unknown", "unknown", "-32602", None, "-32602"),
    ("prompts/get ask", "ask", None, None, None),
    ("resources/read", "shop://prices", None, None, None),
    ("tools/list", "", None, None, None),
]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FORM = {"type": "object", "properties": {"a": {"type": "string"}}}
HEAD = "00-11111111111111111111111111111111-2222222222222222-01"


def alone(*arguments: str, without: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, without, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", ["conventions", "parents", "asked", "passed", "mounted", "broken"])
def test_telemetry(name: str, revision: str) -> None:
    done = alone(name, revision)
    assert done.returncode == 0, done.stderr


def test_without_opentelemetry_an_error_says_what_to_install() -> None:
    done = alone("missing", without="opentelemetry")
    assert done.returncode == 0, done.stderr


def test_without_an_sdk_nothing_is_kept_of_a_request() -> None:
    done = alone("unseen")
    assert done.returncode == 0, done.stderr


def test_nothing_of_opentelemetry_is_imported_unless_it_is_switched_on() -> None:
    done = alone("off")
    assert done.returncode == 0, done.stderr


class Seen:
    """The spans and metrics that the SDK has exported."""

    def __init__(self) -> None:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        trace.set_tracer_provider(tracers)
        metrics.set_meter_provider(MeterProvider([self._reader]))
        self.tracer = trace.get_tracer("the program")

    def spans(self, name: str, count: int) -> list[Any]:
        """The ended spans of that name, once there are that many."""
        return until(lambda: [one for one in self._spans.get_finished_spans() if one.name == name], count)

    def span(self, name: str, kind: str, count: int = 2) -> Any:
        (span,) = [one for one in self.spans(name, count) if one.kind.name == kind]
        return span

    def points(self, histogram: str, count: int) -> list[Any]:
        """The points of a histogram, once that many measurements are in them."""

        def points() -> list[Any]:
            data = self._reader.get_metrics_data()
            scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
            found = [metric for scope in scopes for metric in scope.metrics if metric.name == histogram]
            assert all(metric.unit == CONVENTIONS["histograms"][histogram] for metric in found)
            return [point for metric in found for point in metric.data.data_points]

        return until(points, count, lambda found: sum(point.count for point in found))


def until(find: Callable[[], list[Any]], count: int, counted: Callable[[list[Any]], int] = len) -> list[Any]:
    begun = time.monotonic()
    while counted(found := find()) < count:
        assert time.monotonic() - begun < SECONDS, f"{counted(found)} of {count}: {found}"
        time.sleep(0.01)
    assert counted(found) == count, found
    return found


def shop(**options: Any) -> Any:
    from mcpbolt import Server, ToolError

    server = Server("shop", telemetry=True, **options)

    @server.tool
    async def order(phrase: str) -> str:
        return "secret answer"

    @server.tool
    def fail(phrase: str) -> str:
        raise ToolError("secret failure")

    @server.prompt
    def ask() -> str:
        return "secret question"

    @server.resource("shop://prices")
    def prices() -> str:
        return "secret price"

    return server


async def conventions(revision: str) -> None:
    from mcpbolt import Client, PeerError

    seen = Seen()
    async with shop().listening("http://127.0.0.1:0/mcp") as address:
        async with Client(str(address), revision=revision, telemetry=True) as client:
            await client.call_tool("order", {"phrase": "secret"})
            assert (await client.call_tool("fail", {"phrase": "secret"})).is_error
            with pytest.raises(PeerError):
                await client.call_tool("unknown", {"phrase": "secret"})
            await client.get_prompt("ask")
            await client.read_resource("shop://prices")
            await client.list_tools()
    for name, about, near_error, far_error, code in ROWS:
        near, far = seen.span(name, "CLIENT"), seen.span(name, "SERVER")
        assert near.context.trace_id == far.context.trace_id and far.parent.span_id == near.context.span_id, name
        for span, error in [(near, near_error), (far, far_error)]:
            check_span(span, span is near, about, error, code, revision)
    for role in ["client", "server"]:
        points = seen.points(f"mcp.{role}.operation.duration", count_of(seen, role, revision))
        check_points(points)
        calls = [point for point in points if point.attributes["mcp.method.name"] == "tools/call"]
        assert {(p.attributes["gen_ai.tool.name"], p.attributes.get("error.type"), p.count) for p in calls} == {
            ("order", None, 1),
            # A name is told apart once a call of it has succeeded.
            ("_OTHER", "tool_error", 1),
            ("_OTHER", "-32602" if role == "client" else None, 1),
        }
        if role == "client" or revision == "2025-11-25":
            check_points(seen.points(f"mcp.{role}.session.duration", 1))


def count_of(seen: Seen, role: str, revision: str) -> int:
    """How many requests there were: those of the rows, and the one that opened the connection."""
    opening = "initialize" if revision == "2025-11-25" else "server/discover"
    seen.spans(opening, 2)
    return len(ROWS) + 1


def check_span(span: Any, is_near: bool, about: str, error: str | None, code: str | None, revision: str) -> None:
    has, name = span.attributes, span.name
    assert set(has) <= set(CONVENTIONS["spans"]), name
    assert {key for key, when in CONVENTIONS["spans"].items() if when == "always"} <= set(has), name
    method = name.split(" ")[0]
    wanted = {
        "mcp.method.name": method,
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": about if method == "tools/call" else None,
        "gen_ai.operation.name": "execute_tool" if method == "tools/call" else None,
        "gen_ai.prompt.name": about if method == "prompts/get" else None,
        "mcp.resource.uri": about if method == "resources/read" else None,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "127.0.0.1" if is_near else None,
        "client.address": None if is_near else "127.0.0.1",
        "error.type": error,
        "rpc.response.status_code": code,
    }
    assert {key: has.get(key) for key in wanted} == wanted, name
    # Not from 2026-07-28 on.
    assert ("mcp.session.id" in has) == (not is_near and revision == "2025-11-25"), name
    assert (span.status.status_code.name == "ERROR") == (error is not None), name
    assert span.start_time <= span.end_time
    assert "secret" not in span.to_json() and "phrase" not in span.to_json()


def check_points(points: list[Any]) -> None:
    for point in points:
        assert set(point.attributes) <= set(CONVENTIONS["attributes of histograms"])
        assert set(CONVENTIONS["boundaries"]) <= set(point.explicit_bounds)


async def parents(revision: str) -> None:
    from mcpbolt import Client, Context

    seen, server = Seen(), shop()

    @server.tool
    def plain() -> str:
        with seen.tracer.start_as_current_span("in plain"):
            return "a"

    @server.tool
    async def task(context: Context) -> str:
        with seen.tracer.start_as_current_span("in task"):
            await asyncio.sleep(0)
            return "a"

    async with server.listening("http://127.0.0.1:0/mcp") as address:
        async with Client(str(address), revision=revision, telemetry=True, headers={"traceparent": HEAD}) as client:
            with seen.tracer.start_as_current_span("work") as work:
                await client.call_tool("plain")
                await asyncio.gather(*(client.call_tool("task") for _ in range(20)))
        async with Client(str(address), revision=revision, headers={"traceparent": HEAD}) as client:
            await client.get_prompt("ask")
            await client.call_tool("order", {"phrase": ""}, meta={"traceparent": PARENT, "tracestate": "a=b"})
    # One trace: the span that is current at the call, the client's, the server's, and one that the function makes.
    all = [one for name in ["plain", "task"] for one in seen.spans(f"tools/call {name}", 2 if name == "plain" else 40)]
    inner = seen.spans("in plain", 1) + seen.spans("in task", 20)
    at = {one.context.span_id: one for one in all}
    for one in inner:
        far = at.pop(one.parent.span_id)
        near = at.pop(far.parent.span_id)
        assert (far.kind.name, near.kind.name) == ("SERVER", "CLIENT")
        assert near.parent.span_id == work.get_span_context().span_id
        assert {span.context.trace_id for span in (one, far, near)} == {work.get_span_context().trace_id}
        assert [f"{link.context.span_id:016x}" for link in far.links] == [HEAD.split("-")[2]]
    assert not at
    # The parent is that of the request's `_meta`; without one there, that of the HTTP header.
    (order,) = seen.spans("tools/call order", 1)
    assert f"{order.context.trace_id:032x}-{order.parent.span_id:016x}" == PARENT[3:-3]
    assert order.parent.is_remote and order.context.trace_state.to_header() == "a=b"
    (ask,) = seen.spans("prompts/get ask", 1)
    assert f"{ask.context.trace_id:032x}-{ask.parent.span_id:016x}" == HEAD[3:-3] and not ask.links


async def asked(revision: str) -> None:
    """A server's own requests, which exist up to 2025-11-25, are below the call that they belong to."""
    from mcpbolt import Client, Context

    seen, server = Seen(), shop()

    @server.tool
    async def awaits(context: Context) -> str:
        return str((await context.elicit("?", FORM)).content)

    @server.tool
    def waits(context: Context) -> str:
        return str(context.elicit("?", FORM).wait().content)

    async with Client(server, revision=revision, telemetry=True, on_elicitation=lambda _: {"a": "b"}) as client:
        for name in ["awaits", "waits"]:
            assert "b" in (await client.call_tool(name)).text
    if revision == "2025-11-25":
        spans = seen.spans("elicitation/create", 4)
        at = {one.context.span_id: one for one in spans}
        for name in ["awaits", "waits"]:
            call = seen.span(f"tools/call {name}", "SERVER")
            (sent,) = [one for one in spans if one.parent and one.parent.span_id == call.context.span_id]
            (arrived,) = [one for one in spans if one.parent and one.parent.span_id == sent.context.span_id]
            assert (sent.kind.name, arrived.kind.name) == ("CLIENT", "SERVER")
            del at[sent.context.span_id], at[arrived.context.span_id]
        assert not at
    else:
        for name in ["awaits", "waits"]:
            # Each call took two requests.
            spans = seen.spans(f"tools/call {name}", 4)
            near = {one.context.span_id for one in spans if one.kind.name == "CLIENT"}
            assert {one.parent.span_id for one in spans if one.kind.name == "SERVER"} == near


async def passed(revision: str) -> None:
    """A trace leads through a front to the servers behind it."""
    from mcpbolt import Client
    from mcpbolt.chain import External, Front

    seen, server = Seen(), shop()

    def below(name: str, kind: str, parent: Any = None, count: int = 2) -> Any:
        span = seen.span(name, kind, count)
        assert (span.parent and span.parent.span_id) == (parent and parent.context.span_id), name
        assert parent is None or span.context.trace_id == parent.context.trace_id, name
        return span

    async with server.listening("http://127.0.0.1:0/mcp") as address:
        front = Front(External(str(address), prefix="far"), telemetry=True).join(External(shop(), prefix="near"))
        async with front.listening("http://127.0.0.1:0/mcp") as at:
            async with Client(str(at), revision=revision, telemetry=True) as client:
                await client.call_tool("far_order", {"phrase": ""})
                assert len(await client.list_tools()) == 4
            async with Client(str(at), revision=revision) as client:
                await client.get_prompt("near_ask")
    passing = below("tools/call order", "CLIENT", below("tools/call far_order", "SERVER", below("tools/call far_order", "CLIENT")))
    below("tools/call order", "SERVER", passing)
    assert passing.attributes["gen_ai.tool.name"] == "order" and passing.attributes["server.address"] == "127.0.0.1"
    # The lists of both servers are asked for within that of the front. The second server is told of the front's own span.
    lists = seen.spans("tools/list", 6)
    (asked,) = [one for one in lists if one.parent is None]
    (arrived,) = [one for one in lists if one.parent and one.parent.span_id == asked.context.span_id]
    within = [one for one in lists if one.parent and one.parent.span_id == arrived.context.span_id]
    assert sorted(one.kind.name for one in within) == ["CLIENT", "CLIENT", "SERVER"]
    parents = {one.parent.span_id for one in lists if one.parent}
    assert [one.kind.name for one in within if one.context.span_id in parents] == ["CLIENT"]
    # A trace of a client without telemetry begins at the front.
    below("prompts/get ask", "SERVER", below("prompts/get ask", "CLIENT", below("prompts/get near_ask", "SERVER", count=1)))


async def mounted(revision: str) -> None:
    """A server that mounts an external one has one span of each request, and counts it once."""
    from mcpbolt import Client, Context, Server
    from mcpbolt.chain import External

    seen, far = Seen(), Server("far")

    @far.tool
    def order() -> str:
        return "far"

    server = shop()

    @server.tool
    def plain() -> str:
        with seen.tracer.start_as_current_span("in plain"):
            return "near"

    @server.tool
    async def asks(ctx: Context) -> str:
        return str((await ctx.elicit("?", FORM)).content)

    @server.middleware
    async def lists(call: Any, next: Any) -> Any:
        if call.method == "tools/list":
            seen.tracer.start_span("in list").end()
        return await next(call)

    server.mount("far", External(far))
    async with server.listening("http://127.0.0.1:0/mcp") as address:
        async with Client(str(address), revision=revision, on_elicitation=lambda _: {"a": "b"}) as client:
            await client.call_tool("plain")
            await client.call_tool("far_order")
            await client.call_tool("asks")
            assert len(await client.list_tools()) == 5
    server_spans = {}
    for name in ["tools/call plain", "tools/call far_order", "tools/list"]:
        spans = seen.spans(name, 2 if name == "tools/list" else 1)
        (server_spans[name],) = [one for one in spans if one.kind.name == "SERVER"]
    for name, parent, count in [
        ("in plain", "tools/call plain", 1),
        ("in list", "tools/list", 1),
        ("tools/call order", "tools/call far_order", 1),
        ("tools/list", "tools/list", 2),
    ]:
        within = server_spans[parent].context.span_id
        found = [one for one in seen.spans(name, count) if one.parent]
        assert [one.parent.span_id for one in found] == [within], name
    is_older = revision == "2025-11-25"
    asking = seen.spans("tools/call asks", 1 if is_older else 2)
    assert {one.kind.name for one in asking} == {"SERVER"}
    asked = seen.spans("elicitation/create", 1 if is_older else 0)
    assert [one.parent.span_id for one in asked] == [one.context.span_id for one in asking if is_older]

    points = seen.points("mcp.server.operation.duration", 5 if is_older else 6)
    counts = [(one.attributes.get("gen_ai.tool.name"), one.count) for one in points if "gen_ai.tool.name" in one.attributes]
    assert sorted(counts) == [("asks", len(asking)), ("far_order", 1), ("plain", 1)]


async def broken(revision: str) -> None:
    """No request fails by spans and a log that throw."""
    import logging

    from mcpbolt import Client
    from mcpbolt.chain import External, Front
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

    def fails(*_: object, **__: object) -> None:
        nonlocal failures
        failures += 1
        raise RuntimeError("of the program")

    class Breaking(SpanProcessor):
        def on_start(self, span: Span, parent_context: object = None) -> None:
            for name in broken:
                fails() if name == "on_start" else setattr(span, name, fails)

        def on_end(self, span: ReadableSpan) -> None:
            fails() if "on_end" in broken else None

    class Failing(logging.Handler):
        emit = fails

    logging.getLogger("mcpbolt.telemetry").addHandler(Failing())
    tracers = TracerProvider()
    tracers.add_span_processor(Breaking())
    trace.set_tracer_provider(tracers)
    broken: list[str] = []
    async with Client(Front(External(shop()), telemetry=True), revision=revision, telemetry=True) as client:
        for broken in [["get_span_context"], ["end"], ["update_name", "set_attributes"], ["on_start"], ["on_end"]]:
            failures = 0
            found = await asyncio.gather(*(client.call_tool("order", {"phrase": ""}) for _ in range(5)))
            assert {one.text for one in found} == {"secret answer"}, broken
            until(lambda: [True] if failures else [], 1)


def missing() -> None:
    from mcpbolt import Client, Server

    from mcpbolt.chain import External, Front

    makers = [
        lambda: Server("a", telemetry=True),
        lambda: Client(Server("a"), telemetry=True),
        lambda: Front(External(Server("a")), telemetry=True),
    ]
    for make in makers:
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'mcpbolt\[telemetry\]'"):
            make()


async def unseen() -> None:
    from mcpbolt import Client
    from mcpbolt._telemetry import telemetry

    async with Client(shop(), telemetry=True) as client:
        for _ in range(10):
            await client.call_tool("order", {"phrase": ""})
    until(lambda: [] if telemetry()._open else [True], 1)


def off() -> None:
    from mcpbolt import Client, Server

    async def call() -> None:
        server = Server("a")
        server.tool(lambda: "a", name="a")
        async with Client(server) as client:
            await client.call_tool("a")

    before = {name for name in sys.modules if name.startswith("opentelemetry")}
    asyncio.run(call())
    assert {name for name in sys.modules if name.startswith("opentelemetry")} == before


if __name__ == "__main__":
    without, name, *arguments = sys.argv[1:]
    if without:
        sys.modules[without] = None  # type: ignore[assignment]
    made = globals()[name](*arguments)
    if made is not None:
        asyncio.run(made)
