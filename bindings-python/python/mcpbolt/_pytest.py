"""The pytest plugin: the fixture `mcp_client`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._server import Server
    from .testing import Tester


@pytest.fixture
def mcp_client() -> Iterator[Callable[..., Tester]]:
    """Connects to a server of this process until the test ends: `mcp_client(server)`, with the options of
    `mcpbolt.testing.client`."""
    with ExitStack() as stack:

        def connect(server: Server, **options: Any) -> Tester:
            from .testing import client

            return stack.enter_context(client(server, **options))

        yield connect
