"""The names of the SDK, of FastMCP and of anyio that are not public and that this package needs nevertheless.

Nothing else in this package uses such a name. `tests/test_private.py` has a test for each, which runs under every
release in `_gate.RELEASES`.
"""

from __future__ import annotations

from typing import Any


def set_token(token: Any) -> None:
    """Lets `anyio.from_thread` find the event loop from this thread, and find that nothing is cancelled."""
    from anyio._core._eventloop import threadlocals

    threadlocals.current_token = token
    threadlocals.current_cancel_scope = None
