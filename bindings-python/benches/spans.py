#!/usr/bin/env python3
"""What `telemetry=True` adds to a call, beside a function that makes the same span and measurement with OpenTelemetry's SDK by hand.

    python bindings-python/benches/spans.py [--quick]

Each contender is a process of its own, with a client and a server. Figures are the CPU time of all its threads per call, in microseconds;
contenders take turns, and what is told is the median of the rounds, and of the ratios of each round.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from mcpbolt import Client, Server

IS_QUICK = "--quick" in sys.argv
ROUNDS, CALLS, IN_FLIGHT = (3, 500, 32) if IS_QUICK else (21, 5_000, 32)
COMMON = {
    "mcp.method.name": "tools/call",
    "gen_ai.tool.name": "echo",
    "gen_ai.operation.name": "execute_tool",
    "mcp.protocol.version": "2026-07-28",
    "network.transport": "pipe",
}
NONE, OURS, THEIRS = CONTENDERS = ("no span", "telemetry", "by hand")


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def contender(name: str) -> Server:
    """A server whose calls have no span, one of this package, or one that its function makes as the conventions ask for."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider())
    tracer = trace.get_tracer("by hand")
    duration = metrics.get_meter("by hand").create_histogram("mcp.server.operation.duration", "s")
    ids = itertools.count()
    server = Server("spans", telemetry=name == OURS)

    async def plain(text: str) -> str:
        return text

    async def by_hand(text: str) -> str:
        began = time.perf_counter()
        attributes = {**COMMON, "jsonrpc.request.id": str(next(ids))}
        with tracer.start_as_current_span("tools/call echo", kind=trace.SpanKind.SERVER, attributes=attributes):
            try:
                return text
            finally:
                duration.record(time.perf_counter() - began, COMMON)

    server.tool(by_hand if name == THEIRS else plain, name="echo")
    return server


async def per_call(client: Client) -> float:
    """Microseconds of CPU that one call takes."""

    async def line() -> None:
        for _ in range(CALLS // IN_FLIGHT):
            assert (await client.call_tool("echo", {"text": "a"})).text == "a"

    begun = time.process_time()
    await asyncio.gather(*(line() for _ in range(IN_FLIGHT)))
    return (time.process_time() - begun) * 1e6 / (CALLS // IN_FLIGHT * IN_FLIGHT)


async def compete(name: str) -> None:
    """Measures a round for each line of stdin."""
    async with Client(contender(name), revision="2026-07-28") as client:
        for _ in sys.stdin:
            print(await per_call(client), flush=True)


class Process:
    """One contender."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, __file__, *sys.argv[1:], "--contender", name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.took: list[float] = []
        self.round()
        # It was to warm up.
        self.took.clear()

    def round(self) -> None:
        assert self._process.stdin and self._process.stdout
        print(file=self._process.stdin, flush=True)
        self.took.append(float(self._process.stdout.readline()))

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait() == 0


def main() -> None:
    contenders = {name: Process(name) for name in CONTENDERS}
    for _ in range(ROUNDS):
        for one in contenders.values():
            one.round()
    for one in contenders.values():
        one.end()
    print(f"Python {sys.version.split()[0]}; µs of CPU per call, median of {ROUNDS} rounds of {CALLS}")
    for name, one in contenders.items():
        print(f"{name:12}{statistics.median(one.took):8.2f}")
    rounds = zip(*(contenders[name].took for name in CONTENDERS), strict=True)
    ratios = sorted((ours - none) / (theirs - none) for none, ours, theirs in rounds)
    # The ranks between which the median is, with a probability of 95 %.
    low = max(0, math.floor(len(ratios) / 2 - 0.98 * math.sqrt(len(ratios))) - 1)
    print(
        f"what telemetry adds, beside a span by hand: {statistics.median(ratios):.2f}x"
        f" (95 %: {ratios[low]:.2f} to {ratios[-1 - low]:.2f})"
    )


if "--contender" in sys.argv:
    asyncio.run(compete(sys.argv[-1]))
else:
    main()
