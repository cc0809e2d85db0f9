"""Spares the garbage collector the heap that an SDK fills when it is imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(*, kept: bool = False) -> Iterator[None]:
    """Has the garbage collector wait while the block imports modules and makes what lasts. By then the heap is full,
    and to go through it takes longer than the block itself.

    Args:
        kept: Exempts all that exists after the block from later collections. For an import at the start of a
            program: what is exempt is freed by its references alone.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        if kept:
            gc.freeze()
    finally:
        gc.enable()
