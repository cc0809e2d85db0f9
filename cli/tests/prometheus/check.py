"""What `mcpbolt serve --metrics` shows, read by the parser of Prometheus's client library: `check.py MCPBOLT`.

Each family has a help text and a type, names and units are those that Prometheus recommends, no sample stands twice, and buckets add up.
`promtool check metrics` must find nothing in the text, either (Debian, Ubuntu: apt install prometheus).
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

SECONDS = 60
UNITS = re.compile(r"(milliseconds|minutes|hours|days|kilobytes|megabytes|bits|percent)")
CALLS = [["call", "test_simple_text"], ["call", "test_error_handling"], ["call", "unknown"], ["inspect"]]


def shown(mcpbolt: str) -> str:
    """The page of a server that has been called."""
    serves = [mcpbolt, "serve", "http://127.0.0.1:0/mcp", "--metrics", "http://127.0.0.1:0", "--log", "info"]
    server = subprocess.Popen(serves, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        place = next(found[1] for line in server.stderr if (found := re.search(r"metrics at=(http://\S+)", line)))
        address = server.stdout.readline().strip()
        for words in CALLS:
            subprocess.run([mcpbolt, *words, "--at", address], timeout=SECONDS, capture_output=True)
        with urllib.request.urlopen(place, timeout=SECONDS) as answer:
            return answer.read().decode()
    finally:
        server.kill()
        server.wait()


def problems(family: Metric) -> Iterator[str]:
    if not family.documentation:
        yield "no help text"
    if family.type in ("unknown", "untyped"):
        yield "no type"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", family.name) or UNITS.search(family.name):
        yield "a name or a unit that Prometheus does not recommend"
    if not family.samples:
        # Nothing has been counted yet.
        return
    keys = [(sample.name, *sorted(sample.labels.items())) for sample in family.samples]
    if len(keys) != len(set(keys)):
        yield "a sample stands twice"
    suffixes = {"counter": {"_total"}, "histogram": {"_bucket", "_sum", "_count"}}.get(family.type, {""})
    if {sample.name.removeprefix(family.name) for sample in family.samples} != suffixes:
        yield f"the samples of a {family.type} end with {sorted(suffixes)}"
    if family.type == "histogram":
        yield from unordered(family)


def unordered(family: Metric) -> Iterator[str]:
    series: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for sample in family.samples:
        labels = {**sample.labels}
        bound = labels.pop("le", sample.name.removeprefix(family.name))
        series.setdefault(tuple(sorted(labels.items())), {})[bound] = sample.value
    for labels, values in series.items():
        count, _ = values.pop("_count"), values.pop("_sum")
        bounds = [float(bound) for bound in values]
        counts = [*values.values()]
        if bounds != sorted(bounds) or counts != sorted(counts) or values["+Inf"] != count:
            yield f"the buckets of {labels} do not add up"


def linted(text: str) -> list[str]:
    """The problems that promtool reports."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [f"promtool: {line}" for line in done.stdout.splitlines() or ["failed"]] if done.returncode else []


def main() -> int:
    text = shown(sys.argv[1])
    families = [*text_string_to_metric_families(text)]
    wrong = [f"{family.name}: {problem}" for family in families for problem in problems(family)] + linted(text)
    if not any(family.name == "mcp_server_operation_duration_seconds" and family.samples for family in families):
        wrong.append(f"the durations of requests are missing:\n{text}")
    print(*wrong, sep="\n")
    print(f"prometheus: {len(families)} families, {len(wrong)} problems")
    return 1 if wrong else 0


sys.exit(main())
