"""External servers that are mounted in a server: a front before the server and them, in the server's name."""

from __future__ import annotations

from ._mount import check_prefix
from ._server import Server
from .chain import External, Front


def mount(server: object, prefix: str, external: External) -> None:
    """Mounts an external server: see `Server.mount`."""
    if not isinstance(server, Server):
        raise TypeError("mount: only a Server has external servers")
    if external._prefix is not None:
        raise ValueError(f"mount: {external.name!r} has a prefix already; leave prefix= of the External to mount")
    settings = server._settings
    if settings.has_dialect:
        raise ValueError(
            "mount: external servers are for clients of MCP, and this server answers those of another dialect, too; leave"
            " actions= and profile= away"
        )
    if server._mounted_in:
        raise ValueError(f"mount: the server {server.name!r} is mounted in another one; mount {external.name!r} there")
    server._must_not_run("the external server")
    joined = external._at(prefix)
    for entry, _ in server._offered():
        check_prefix(prefix, entry)
    front = server._front or Front._of(server)
    front.join(joined)
    server._front = front
    server._grow_stale()
