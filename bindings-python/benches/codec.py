#!/usr/bin/env python3
"""Messages to Python objects and back: this package beside the official SDK's path and beside orjson.

    python bindings-python/benches/codec.py [--quick]

Answers are checked before anything is timed. Figures are the CPU time of one message in microseconds, the median of
rounds in which all contenders take turns; `--quick` makes them short, for a look.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
from mcp_types import CallToolRequestParams, jsonrpc_message_adapter
from mcp_types.methods import validate_client_request

from mcpbolt import engine

VERSION = "2025-11-25"
SIZES = {"100 B": 0, "1 KB": 1 << 10, "10 KB": 10 << 10, "1 MB": 1 << 20}
ROUND_SECONDS = 0.02 if "--quick" in sys.argv else 0.3
ROUNDS = 3 if "--quick" in sys.argv else 9


def call(size: int) -> bytes:
    """The call of a tool with nested arguments, of about that length."""
    arguments: dict[str, Any] = {"a": 1, "b": 2}
    if size:
        item = {"id": 1000, "name": "item number", "tags": ["red", "green"], "price": 12.75, "stock": None, "active": True}
        count = max(1, (size - 120) // (len(json.dumps(item, separators=(",", ":"))) + 1))
        arguments = {"items": [{**item, "id": 1000 + i, "name": f"item number {i}"} for i in range(count)]}
    params = {"name": "add", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def sdk(line: bytes) -> Any:
    """Does what the SDK does with a line until its handler has typed params."""
    message = jsonrpc_message_adapter.validate_json(line.decode(), by_name=False)
    validate_client_request(message.method, VERSION, message.params)
    return CallToolRequestParams.model_validate(message.params, by_name=False)


def lazy(line: bytes) -> Any:
    message = engine.decode(line)
    return message.id, message.method


def per_call(work: Callable[[], object]) -> float:
    """Microseconds of CPU that one call takes."""
    count = 0
    begun = time.process_time()
    while (passed := time.process_time() - begun) < ROUND_SECONDS:
        for _ in range(batch):
            work()
        count += batch
    return passed / count * 1e6


batch = 1


def measured(contenders: dict[str, Callable[[], object]], size: int) -> dict[str, float]:
    global batch
    batch = max(1, 20_000 // max(size, 100))
    took: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            gc.collect()
            took[name].append(per_call(work))
    return {name: statistics.median(times) for name, times in took.items()}


def main() -> None:
    print(f"CPython {sys.version.split()[0]}, orjson {orjson.__version__}; microseconds of CPU, median of {ROUNDS}")
    print(f"{'':22}" + "".join(f"{name:>20}" for name in SIZES))
    rows: dict[str, list[str]] = {}
    for name, size in SIZES.items():
        line = call(size)
        message = json.loads(line)
        params = message["params"]
        assert engine.unpack(line) == ("request", 42, "tools/call", params)
        assert lazy(line) == (42, "tools/call")
        assert engine.decode(line).params == params and sdk(line).arguments == params["arguments"]
        assert engine.loads(line) == orjson.loads(line) == message
        result = {"content": [{"type": "text", "text": "x"}], "structuredContent": params["arguments"]}
        response = {"jsonrpc": "2.0", "id": 42, "result": result}
        assert json.loads(engine.encode_response(42, result)) == response == json.loads(orjson.dumps(response))
        took = measured(
            {
                "SDK, inbound": lambda: sdk(line),
                "unpack (eager)": lambda: engine.unpack(line),
                "decode (lazy)": lambda: lazy(line),
                "orjson.loads": lambda: orjson.loads(line),
                "loads": lambda: engine.loads(line),
                "orjson.dumps": lambda: orjson.dumps(response),
                "encode_response": lambda: engine.encode_response(42, result),
            },
            len(line),
        )
        beside = {
            "unpack (eager)": "SDK, inbound",
            "decode (lazy)": "SDK, inbound",
            "loads": "orjson.loads",
            "encode_response": "orjson.dumps",
        }
        for row, time_ in took.items():
            ratio = f" ({took[beside[row]] / time_:.1f}x)" if row in beside else ""
            rows.setdefault(row, []).append(f"{time_:.2f}{ratio}")
    for row, cells in rows.items():
        print(f"{row:22}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
