"""`Enveloped`: the SDK's `Connection` object for an independent request of 2026-07-28. Few handlers use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import aclose_shielded
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY

if TYPE_CHECKING:
    from ._context import Params, Within


class Enveloped(Connection):
    """A connection whose attributes, except the revision, are made on first access: the client's info and
    capabilities, an outbound channel, an exit stack."""

    # There is no handshake to wait for.
    initialize_accepted = True

    def __init__(self, within: Within, params: Params) -> None:
        self.protocol_version = within.request.revision
        self._within = within
        self._meta: Any = (params or {}).get("_meta") or {}

    def __getattr__(self, name: str) -> Any:
        made = self.__dict__
        if "exit_stack" in made or name.startswith("__"):
            raise AttributeError(name)
        whole = Connection.from_envelope(
            self.protocol_version,
            self._meta.get(CLIENT_INFO_META_KEY),
            self._meta.get(CLIENT_CAPABILITIES_META_KEY),
            outbound=NotifyOnlyOutbound(self._within.outbound()),
        )
        # Attributes set by a handler take precedence.
        self.__dict__ = {**vars(whole), **made}
        return getattr(self, name)

    async def close(self) -> None:
        """Closes the connection after its request is answered."""
        if "exit_stack" in self.__dict__:
            await aclose_shielded(self)
