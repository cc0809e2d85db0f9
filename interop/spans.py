"""One trace leads from a client through `mcpbolt gateway` to servers on pipes, with clients and servers in Rust, Python and Node.

The gateway and the Rust server send their spans to a collector here, by OTLP; the others write theirs into files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import install
import network
from peers import OURS, built

TOOL, SECONDS = "test_simple_text", 60


@dataclass(frozen=True)
class Span:
    process: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str

    def is_below(self, other: Span) -> bool:
        return (self.trace, self.parent) == (other.trace, other.id)


def exported(body: bytes) -> Iterator[Span]:
    """The spans of an export request. The name of the service is that of the process."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent

    for of in ExportTraceServiceRequest.FromString(body).resource_spans:
        (process,) = [one.value.string_value for one in of.resource.attributes if one.key == "service.name"]
        for span in [span for scope in of.scope_spans for span in scope.spans]:
            kind = Sent.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_")
            yield Span(process, span.name, kind, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())


@dataclass
class Collector:
    """The spans of all processes: those that come by OTLP over HTTP, and those in the files of a folder."""

    folder: Path
    sent: list[Span] = field(default_factory=list)
    address: str = ""

    @contextmanager
    def listening(self) -> Iterator[None]:
        sent = self.sent

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    sent.extend(exported(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer((network.HOST, 0), Handler) as server:
            self.address = f"http://{network.HOST}:{server.server_port}"
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield
            server.shutdown()

    def environment(self, process: str) -> dict[str, str]:
        """The variables that make a process send its spans, or write them down."""
        otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.address, "OTEL_SERVICE_NAME": process, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        return {**otlp, "SPANS": str(self.folder / f"{process}.spans")}

    def spans(self) -> list[Span]:
        """Those so far."""
        written = [(path.stem, line) for path in self.folder.glob("*.spans") for line in path.read_text().splitlines(True)]
        # The last line may be half written.
        return [*self.sent, *(Span(process, **json.loads(line)) for process, line in written if line.endswith("\n"))]


@dataclass
class OneTrace:
    """Clients that call a tool of each server through the gateway. `interpreter` is the one that has our package for Python."""

    interpreter: str
    name = "one trace leads through a gateway, from clients to servers in three languages"

    def program(self, language: str, *words: str) -> list[str]:
        folder = install.HERE / "ours" / language
        own = {
            "rust": [built("interop-traced")],
            "python": [self.interpreter, folder / "traced.py"],
            "node": ["node", folder / "traced.mjs"],
        }
        return [str(word) for word in [*own[language], *words]]

    def run(self, into: Path) -> list[str]:
        folder = into / "traces"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        collector = Collector(folder)
        with collector.listening(), self.gateway(collector) as address:
            for client in OURS:
                words = self.program(client, address, *(f"{server}_{TOOL}" for server in OURS))
                environment = {**os.environ, **collector.environment(f"client-{client}")}
                done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS)
                if done.returncode:
                    return [f"the client in {client} failed", *done.stderr.splitlines()]
            return judged(collector)

    @contextmanager
    def gateway(self, collector: Collector) -> Iterator[str]:
        """A gateway before a server in each language; its address."""
        text = ""
        for server in OURS:
            words = [str(built("mcpbolt")), "serve", "stdio:"] if server == "rust" else self.program(server)
            variables = [f"{name} = {json.dumps(value)}" for name, value in collector.environment(f"server-{server}").items()]
            text += f"[servers.{server}]\ncommand = {json.dumps(words)}\nenv = {{ {', '.join(variables)} }}\n"
        file, log = collector.folder / "gateway.toml", collector.folder / "gateway.log"
        file.write_text(text)
        port = network.free_port()
        address = f"http://{network.HOST}:{port}/mcp"
        words = [str(built("mcpbolt")), "gateway", address, "--config", str(file)]
        environment = {**os.environ, **collector.environment("gateway")}
        with log.open("wb") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
            try:
                network.wait_for(process, port, log)
                yield address
            finally:
                process.terminate()
                process.wait(SECONDS)


def judged(collector: Collector) -> list[str]:
    """What is wrong with the traces, once no more spans are to come."""
    deadline = time.monotonic() + SECONDS
    while True:
        spans = collector.spans()
        problems = [problem for client in OURS for server in OURS for problem in missed(spans, client, server)]
        if not problems or time.monotonic() > deadline:
            return problems + ([str(span) for span in spans] if problems else [])
        time.sleep(0.05)


def missed(spans: list[Span], client: str, server: str) -> Iterator[str]:
    """Follows the spans of a client's call down to the server; says where there is none, or more than one."""
    near, far = f"tools/call {server}_{TOOL}", f"tools/call {TOOL}"
    steps = [
        (f"client-{client}", "work", "INTERNAL"),
        (f"client-{client}", near, "CLIENT"),
        ("gateway", near, "SERVER"),
        ("gateway", far, "CLIENT"),
        (f"server-{server}", far, "SERVER"),
    ]
    above: Span | None = None
    for step in steps:
        alike = [span for span in spans if (span.process, span.name, span.kind) == step]
        found = [span for span in alike if (span.is_below(above) if above else not span.parent)]
        if len(found) != 1:
            yield f"client in {client}, server in {server}: {len(found)} spans {step} where there is one"
            return
        (above,) = found
