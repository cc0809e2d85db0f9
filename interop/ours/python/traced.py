"""Our client or server in Python, traced by OpenTelemetry's SDK: `traced.py ADDRESS TOOL…` calls the tools within one span,
`traced.py` serves on stdin and stdout.

Each span that has ended becomes a line of JSON in the file that the variable SPANS names.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence

from mcpbolt import Client, Server
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


class Lines(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with open(os.environ["SPANS"], "a") as file:
            for span in spans:
                own, parent = span.context, span.parent
                ids = {"trace": f"{own.trace_id:032x}", "id": f"{own.span_id:016x}", "parent": f"{parent.span_id:016x}" if parent else ""}
                print(json.dumps({"name": span.name, "kind": span.kind.name, **ids}), file=file)
        return SpanExportResult.SUCCESS


async def call(address: str, *tools: str) -> None:
    async with Client(address, telemetry=True) as client:
        with trace.get_tracer("traced").start_as_current_span("work"):
            for tool in tools:
                await client.call_tool(tool)


def serve() -> None:
    server = Server("traced", telemetry=True)

    @server.tool
    def test_simple_text() -> str:
        return "text"

    server.run()


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
if sys.argv[1:]:
    asyncio.run(call(*sys.argv[1:]))
else:
    serve()
