"""Makes a server start faster."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Has the garbage collector wait while the block imports modules and makes what lasts as long as the server. By then
    the SDK or FastMCP has filled the heap, and to go through it takes longer than the block itself."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
