"""`Served`: a server of the SDK or FastMCP as the engine runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import current_token

from .. import _core
from .._event_loop import asyncio_loop
from .._failures import Failures
from .._heap import uncollected
from .._settings import Settings
from . import _private as private

if TYPE_CHECKING:
    from mcp.server.models import InitializationOptions

    from ._server import Known


class Served:
    """A server of the SDK or FastMCP with the interface of `mcpbolt.Server` that `mcpbolt._loop` needs.

    Attributes:
        has_contexts: Whether requests come from an application, each with context variables of its own.

    Args:
        known: The server.
        kind: `stdio` or `streamable-http`.
        is_accelerated: Whether the engine answers what it can.
        options: Those of the handshake, if they are not the server's own.
    """

    has_contexts = False
    _mounts = ()

    def __init__(
        self, known: Known, kind: str, *, is_accelerated: bool, options: InitializationOptions | None = None
    ) -> None:
        with uncollected():
            self._make(known, kind, is_accelerated, options)

    def _make(self, known: Known, kind: str, is_accelerated: bool, options: InitializationOptions | None) -> None:
        from mcp.shared.transport_context import TransportContext

        from ._kernel import Kernel
        from ._observed import answers_pings

        self.known = known
        self.kind = kind
        self.is_accelerated = is_accelerated
        lowlevel = known.lowlevel
        self.name = lowlevel.name
        transport = TransportContext(kind=kind, can_send_request=True)
        # Where natives are, they say which pings the engine answers, also after a change.
        takes_pings = is_accelerated or not answers_pings(known)
        self.kernel = Kernel(lowlevel, options or known.options(kind), transport, takes_pings)
        self._settings = Settings(
            name=self.name,
            version=lowlevel.version,
            implementation=lowlevel.server_info_stamp,
            kernel=self.kernel,
            failed=Failures(self.name),
        )
        self._made = _core.Catalog(self._settings, [])

    def _catalog(self) -> _core.Catalog:
        return self._made

    def greet(self) -> None:
        """Called on each thread of the engine that is about to run functions: lets `anyio.from_thread` find the loop."""
        private.set_token(self._token)

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[Any]:
        asyncio_loop("a server of the official SDK or FastMCP")
        async with self.entered() as state, self.begun(state):
            yield state

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[Any]:
        """Enters the lifespans of the server; yields the value of its own."""
        async with self.known.lifespan(self.kind) as state:
            yield state

    @asynccontextmanager
    async def begun(self, state: Any) -> AsyncIterator[None]:
        """Has the kernel and the engine answer while the block runs."""
        self.kernel.begin(state)
        private.spare_store(self.known.server)
        self._token = current_token()
        natives = None
        if self.is_accelerated:
            with uncollected():
                from ._natives import Natives

                natives = self.kernel.natives = Natives(self.known, self._made, self.has_contexts)
        try:
            yield
        finally:
            await self.kernel.close()
            if natives is not None:
                natives.close()


class ServedWithin(Served):
    """A server whose own package has entered all lifespans around it, apart from the low-level server's."""

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[Any]:
        lowlevel = self.known.lowlevel
        async with lowlevel.lifespan(lowlevel) as state:
            yield state


class ServedInApplication(Served):
    """A server whose HTTP application has entered all of its lifespans; `state` is the value of its own."""

    has_contexts = True
    state: Any = None

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[Any]:
        yield self.state
