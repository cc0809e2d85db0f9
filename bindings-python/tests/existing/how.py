"""Runs a server of the SDK's as the command line says: `own`, `served` or `accelerated`, on stdin and stdout or on an
address."""

from __future__ import annotations

import sys
from typing import Any


def run(server: Any) -> None:
    how, *address = sys.argv[1:]
    if how == "own":
        return run_own(server, address)
    from mcpbolt.mcp import accelerate, run

    run(accelerate(server) if how == "accelerated" else server, *address)


def run_own(server: Any, address: list[str]) -> None:
    import anyio

    from mcpbolt.mcp._serve import unchanged

    anyio.run(unchanged, server, *(address or ["stdio:"]))
