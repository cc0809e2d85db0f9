#!/usr/bin/env python3
"""What `telemetry=True` adds to a call, beside a function that makes the same span and measurement with OpenTelemetry's SDK by hand.

    python bindings-python/benches/spans.py [--quick]

Clients and servers are in this process. Figures are the CPU time of all its threads per call, in microseconds; contenders take turns, and
what is told is the median of the rounds, and of the ratios of each round.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
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


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Nowhere()))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider())
tracer = trace.get_tracer("by hand")
duration = metrics.get_meter("by hand").create_histogram("mcp.server.operation.duration", "s")
ids = itertools.count()


def plain(telemetry: bool) -> Server:
    server = Server("spans", telemetry=telemetry)

    @server.tool
    async def echo(text: str) -> str:
        return text

    return server


def by_hand() -> Server:
    """A function in a span, with the attributes and the measurement that the conventions ask for."""
    server = Server("spans")

    @server.tool
    async def echo(text: str) -> str:
        began = time.perf_counter()
        attributes = {**COMMON, "jsonrpc.request.id": str(next(ids))}
        with tracer.start_as_current_span("tools/call echo", kind=trace.SpanKind.SERVER, attributes=attributes):
            try:
                return text
            finally:
                duration.record(time.perf_counter() - began, COMMON)

    return server


async def per_call(client: Client) -> float:
    """Microseconds of CPU that one call takes."""

    async def line() -> None:
        for _ in range(CALLS // IN_FLIGHT):
            assert (await client.call_tool("echo", {"text": "a"})).text == "a"

    begun = time.process_time()
    await asyncio.gather(*(line() for _ in range(IN_FLIGHT)))
    return (time.process_time() - begun) * 1e6 / (CALLS // IN_FLIGHT * IN_FLIGHT)


async def main() -> None:
    revision = "2026-07-28"
    async with (
        Client(plain(False), revision=revision) as bare,
        Client(plain(True), revision=revision) as ours,
        Client(by_hand(), revision=revision) as theirs,
    ):
        contenders = {"no span": bare, "telemetry": ours, "by hand": theirs}
        took: dict[str, list[float]] = {name: [] for name in contenders}
        for client in contenders.values():
            await per_call(client)
        for _ in range(ROUNDS):
            for name, client in contenders.items():
                took[name].append(await per_call(client))
    print(f"Python {sys.version.split()[0]}; µs of CPU per call, median of {ROUNDS} rounds of {CALLS}")
    for name, times in took.items():
        print(f"{name:12}{statistics.median(times):8.2f}")
    ratios = [(ours - none) / (theirs - none) for none, ours, theirs in zip(*took.values(), strict=True)]
    low, _, high = statistics.quantiles(ratios)
    ratio = statistics.median(ratios)
    print(f"what telemetry adds, beside a span by hand: {ratio:.2f}x (half of the rounds: {low:.2f} to {high:.2f})")


asyncio.run(main())
