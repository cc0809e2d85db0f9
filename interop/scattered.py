"""Sessions of the handshake era with eight processes of `mcpbolt proxy` at one address, where each request comes to another process than
the one before, by chance. The client finds what it finds at one process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import eras
import network
import peers
from chains import OLD, Chained
from peers import LEGACY, ONE_PLACE, Peer

PROCESSES = 8
# Each client of others has one or two of the four revisions here, ours has all.
CLIENTS = {"mcp": LEGACY[1::2], "node-v1": LEGACY[:1], "node-v2": LEGACY[3:], "rmcp": LEGACY[2:3]}
BEHIND = {"refusals": "the server behind the processes says it as in its own revision"}


@contextmanager
def dispersing(place: network.Place) -> Iterator[network.Place]:
    """The same place, by way of a relay with a connection for each request: the system gives it to any of the processes."""
    loop, port = asyncio.new_event_loop(), network.free_port()
    behind = int(place.origin.rpartition(":")[2])

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back = None
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            fields = [field for field in head if not field.lower().startswith(b"connection:")]
            source, back = await asyncio.open_connection(network.HOST, behind)
            back.write(b"\r\n".join([fields[0], b"Connection: close", *fields[1:]]))
            ways = [asyncio.ensure_future(pump(reader, back)), asyncio.ensure_future(pump(source, writer))]
            # A client that leaves ends the connection behind, too.
            _, other = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in other:
                way.cancel()
            await asyncio.wait(ways)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # a connection that was opened in vain
        finally:
            for end in filter(None, [back, writer]):
                end.close()

    loop.run_until_complete(asyncio.start_server(relay, network.HOST, port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield network.Place(f"http://{network.HOST}:{port}", place.paths, place.traces)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@dataclass
class Scattered:
    """Sessions of each revision, and a stream that breaks off."""

    client: Peer
    server: Peer
    name = "sessions with eight processes, each request at another one"

    def run(self, into: Path) -> list[str]:
        with network.started("scattered itself", self.server, into) as (itself, _):
            command = [peers.built("mcpbolt"), "proxy", "--workers", PROCESSES, "--reuse-port", "--to", itself.address("http")]
            processes = Peer(*command, carriers=ONE_PLACE, lacks=self.server.lacks | BEHIND)
            with network.started("scattered", processes, into) as (place, problems), dispersing(place) as place:
                found = [f"{one.name}: {problem}" for one in self.sessions(processes) for problem in one.visit(into, place)]
                found += [f"resumption: {problem}" for problem in eras.resumed(place.address("http"))]
            # The name of a trace has the number of the process that had the session.
            served = {path.name.split("-")[1] for path in place.traces.glob("server-*")}
            found += ["one process had all sessions"] * (len(served) < 2)
        return found + problems

    def sessions(self, processes: Peer) -> Iterator[Chained]:
        clients = [(name, peers.CLIENTS[name], revisions) for name, revisions in CLIENTS.items()]
        for name, client, revisions in [*clients, ("our rust", self.client, LEGACY)]:
            for revision in revisions:
                for carrier in peers.carriers(client, processes, revision, full=True):
                    yield Scattering((name, client), ("rust", processes), revision, carrier, OLD)


class Scattering(Chained):
    through = "eight processes"
