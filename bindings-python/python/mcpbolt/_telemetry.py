"""Spans and durations of requests and sessions in the program's own OpenTelemetry, by its conventions for MCP.

The engine notes what happens, on its own threads, and says what spans and metrics are called and contain. Spans of handlers and of requests
that this program sends begin here, where they are current; everything else is recorded by a thread that takes what has ended, in batches.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from . import _core

try:
    from opentelemetry import context, metrics, trace
except ImportError as error:
    raise ModuleNotFoundError(
        "telemetry: it needs OpenTelemetry's API; install it: pip install 'mcpbolt[telemetry]'", name=error.name
    ) from None

from opentelemetry.context import Context
from opentelemetry.trace.span import TraceState

_SCOPE = "mcpbolt"
_log = logging.getLogger("mcpbolt.telemetry")


@cache
def telemetry() -> Telemetry:
    """The one object for all servers, clients and fronts of this process, whose tracer and meter are global as well."""
    return Telemetry()


if hasattr(os, "register_at_fork"):
    # A fork has no thread that records.
    os.register_at_fork(after_in_child=telemetry.cache_clear)


class Series(NamedTuple):
    """Requests with the same span name and attributes: those attributes, and the histogram of their durations."""

    name: str
    is_sent: bool
    attributes: dict[str, Any]
    histogram: metrics.Histogram


class Telemetry:
    """The engine's observer, and what it tells OpenTelemetry. A key of `_open` has the span, or the record of its end until there is one."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(_SCOPE, _core.__version__)
        meter = metrics.get_meter(_SCOPE, _core.__version__)
        self._histograms = {
            name: meter.create_histogram(
                name, about["unit"], about["description"], explicit_bucket_boundaries_advisory=about["boundaries"]
            )
            for name, about in json.loads(_core.Telemetry.instruments()).items()
        }
        self._series: dict[int, Series] = {}
        self._open: dict[int, Any] = {}
        self.native = _core.Telemetry(self._sent, self._called, self._awaited)
        threading.Thread(target=self._record, name="mcpbolt-telemetry", daemon=True).start()
        atexit.register(self._take)

    def _called(self, wire: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Calls a function within the span that is described."""
        token = context.attach(trace.set_span_in_context(self._begun(wire)))
        try:
            return function(**arguments)
        finally:
            context.detach(token)

    async def _awaited(self, wire: str, function: Callable[..., Awaitable[Any]], arguments: dict[str, Any]) -> Any:
        """The same for a function whose value is awaited."""
        token = context.attach(trace.set_span_in_context(self._begun(wire)))
        try:
            return await function(**arguments)
        finally:
            context.detach(token)

    def _begun(self, wire: str) -> trace.Span:
        """Begins a span that the engine describes. It ends when the engine says so, which may be before this returns."""
        about = json.loads(wire)
        if len(about) == 1:
            # The span began at the front that stands for the server.
            begun: trace.Span = self._open.get(about[0], trace.INVALID_SPAN)
            return begun
        span = self._start(about)
        ended = self._open.setdefault(about[0], span)
        if ended is not span:
            del self._open[about[0]]
            _end(span, ended)
        return span

    def _start(self, about: list[Any], within: Context | None = None) -> trace.Span:
        """Begins a span within a context, by default the current one."""
        try:
            return self._started(about, context.get_current() if within is None else within)
        except Exception:
            # No call fails by the program's sampler or processor.
            _complain("the span of a request")
            return trace.INVALID_SPAN

    def _started(self, about: list[Any], current: Context) -> trace.Span:
        _, series, seconds, rest, attributes, *places = about
        if isinstance(series, int):
            name, is_sent, common, _ = self._series_of(series)
            attributes = {**common, **attributes}
        else:
            name, is_sent = series
        parent, link = places or (None, None)
        # A request that is sent belongs to what is current here; one that arrived, to what its sender says.
        if parent and not (is_sent and trace.get_current_span(current).get_span_context().is_valid):
            current = trace.set_span_in_context(trace.NonRecordingSpan(_remote(parent)), current)
        return self._tracer.start_span(
            name,
            current,
            trace.SpanKind.CLIENT if is_sent else trace.SpanKind.SERVER,
            attributes,
            [trace.Link(_remote(link))] if link else None,
            _nanoseconds([seconds, rest]),
        )

    def _series_of(self, number: int) -> Series:
        """The series with a number, which the engine is asked for once."""
        known = self._series.get(number)
        if known is None:
            wire = self.native.series(number)
            assert wire is not None, "the engine has told of it"
            about = json.loads(wire)
            histogram = self._histograms[about["histogram"]]
            known = self._series[number] = Series(about["name"], about["isSent"], about["attributes"], histogram)
        return known

    def _sent(self, wire: str) -> tuple[str, str | None] | None:
        """Begins the span of a request that is about to be sent; returns the place that the request names."""
        about = json.loads(wire)
        span = self._start(about)
        place = _place(span)
        # Without an SDK there are no spans: the engine does not wait for this one.
        if place is not None:
            self._open[about[0]] = span
        return place

    def _pass(self, about: list[Any], further: list[Any]) -> None:
        """Begins the spans of a request that a front passes on, for which the request waits: its own, and the one of the request to the
        server."""
        own = self._start(about)
        self._open[about[0]] = own
        sent = self._start(further, trace.set_span_in_context(own))
        # Before the request goes on, since the span may end at once.
        self._open[further[0]] = sent
        if not self.native.passed(about[0], _place(own), _place(sent)):
            self._end_unsent(further[0], None)

    def _end_unsent(self, key: int, time: int | None) -> None:
        """Ends the span of a request that a front did not pass on."""
        span = self._open.pop(key, None)
        if span is not None:
            span.end(time)

    def _record(self) -> None:
        while True:
            self.native.wait()
            self._take()

    def _take(self) -> None:
        for record in json.loads(self.native.take() or "[]"):
            try:
                if "passes" in record:
                    self._pass(*record["passes"])
                else:
                    self._ended(record)
            except Exception:
                # Neither this thread nor a request ends by the program's processor or exporter.
                _complain("a span or a duration")

    def _ended(self, record: dict[str, Any]) -> None:
        span = None
        if "begun" in record:
            span = self._start(record["begun"])
        elif "key" in record:
            begun = self._open.setdefault(record["key"], record)
            if begun is not record:
                del self._open[record["key"]]
                span = begun
        try:
            if "unsent" in record:
                self._end_unsent(record["unsent"], _nanoseconds(record["time"]))
        finally:
            if span is not None:
                _end(span, record)
        if "series" in record:
            *_, attributes, histogram = self._series_of(record["series"])
            if "failed" in record:
                attributes = {**attributes, **record["failed"]}
        else:
            attributes, histogram = record["attributes"], self._histograms[record["histogram"]]
        histogram.record(record["seconds"], attributes, trace.set_span_in_context(span) if span else None)


def _complain(what: str) -> None:
    """Logs the exception that is being handled."""
    # The program's own handlers may fail as well.
    with suppress(Exception):
        _log.exception(what)


def _end(span: trace.Span, record: Any) -> None:
    if span.is_recording():
        if "renamed" in record:
            span.update_name(record["renamed"])
        if "ended" in record:
            span.set_attributes(record["ended"])
        if "isError" in record:
            span.set_status(trace.Status(trace.StatusCode.ERROR))
    span.end(_nanoseconds(record["time"]))


def _place(span: trace.Span) -> tuple[str, str | None] | None:
    """The `traceparent` and the `tracestate` of a span; `None` if there is no span."""
    try:
        return _place_of(span.get_span_context())
    except Exception:
        # A request that waits for its place must go on.
        _complain("the context of a span")
        return None


def _place_of(own: trace.SpanContext) -> tuple[str, str | None] | None:
    if not own.is_valid:
        return None
    ids = f"{trace.format_trace_id(own.trace_id)}-{trace.format_span_id(own.span_id)}"
    return f"00-{ids}-{own.trace_flags:02x}", own.trace_state.to_header() or None


def _remote(place: list[str]) -> trace.SpanContext:
    """A place in a trace of another process: a valid `traceparent`, and a `tracestate` or `None`."""
    parent, state = place
    _, trace_id, span_id, flags = parent.split("-")[:4]
    return trace.SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([state]) if state else TraceState(),
    )


def _nanoseconds(time: list[int]) -> int:
    seconds, rest = time
    return seconds * 1_000_000_000 + rest
