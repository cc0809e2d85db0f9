"""Sessions with servers that stand behind `mcpbolt proxy`, or behind `mcpbolt gateway` beside two others: it speaks one revision
with the client, another one or the same with the server. The client finds what it finds at the server itself.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import features
import install
import network
import peers
import record
from peers import LEGACY, NO_TASKS, Lacks, Peer
from scripts import Step, call
from sessions import Session

OLD, NEW = LEGACY[-1], peers.ALL[-1]
ERAS = tuple(itertools.product((OLD, NEW), repeat=2))
PIPES = "stdio:"
CROSSING = ((OLD, NEW), (NEW, OLD))
OFFICIAL = ("mcp", "node-v2", "rmcp")
# What a gateway has beside the server of a session.
OTHERS = ("rmcp", "node-v2")
# What the eras have in different ways, and a proxy does not translate.
BETWEEN_ERAS: Lacks = NO_TASKS | {
    "extensions": "each era declares them elsewhere",
    "caching": "a server of the older era does not say how long its lists are good for",
}


@dataclass
class Chained(Session):
    """A session with a server behind a proxy, which speaks that revision with it."""

    far: str = OLD
    through = "proxy"

    @property
    def name(self) -> str:
        over = "" if self.carrier == "stdio" else f" over {self.carrier}"
        return f"{self.client[0]} {self.revision} -> {self.through}{over} -> {self.server[0]} {self.far}"

    def ours(self) -> dict[str, bool]:
        """What the proxy passes on is checked as if it were its own. On the network its traces are of both of its sides."""
        return super().ours() | {record.SERVER: self.carrier == "stdio"}

    def run(self, into: Path) -> list[str]:
        if self.carrier == "stdio":
            return super().run(into)
        with network.started(f"{self.name} proxy", self.server[1], into) as (place, problems):
            found = self.visit(into, place)
        return found + problems


class Proxy(Peer):
    """A proxy that starts the server as a child process."""

    def __init__(self, server: Peer, crosses: bool, far: str) -> None:
        words = [peers.built("mcpbolt"), "proxy", PIPES, "--revision", far, "--", *server.command]
        super().__init__(*words, lacks=server.lacks | (BETWEEN_ERAS if crosses else {}), script=server.script)

    def at(self, address: str) -> list[str]:
        return [address if word == PIPES else word for word in self.command]


@dataclass
class Merged(Chained):
    """A session with a server behind a gateway, which shows its own name, and in lists also what the other servers have."""

    through = "gateway"

    def script(self) -> list[Step]:
        steps = features.script(self.revision, "mcpbolt", self.lacking())
        # The other servers answer by their prefixes.
        steps[-1:-1] = [(call(f"{other}_echo", text="a"), {"text": "a", "is_error": False}) for other in OTHERS]
        names = ((step, expected, isinstance(expected, dict) and expected.get("names")) for step, expected in steps)
        return [(step, expected | {"names": {*all}} if all else expected) for step, expected, all in names]


class Gateway(Proxy):
    """A gateway that starts the server, whose names stay as they are, and two others, whose names have prefixes."""

    def __init__(self, name: str, server: Peer, crosses: bool, far: str) -> None:
        super().__init__(server, crosses, far)
        text = f'[servers.first]\ncommand = {json.dumps(server.command)}\nprefix = ""\nrevisions = ["{far}"]\n'
        self.behind = [server.command, *(peers.SERVERS[other].command for other in OTHERS)]
        for other in OTHERS:
            text += f"[servers.{other}]\ncommand = {json.dumps(peers.SERVERS[other].command)}\n"
        file = install.CACHE / f"gateway-{name}-{far}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.command = [str(word) for word in (peers.built("mcpbolt"), "gateway", PIPES, "--config", file)]

    def commands(self) -> list[list[str]]:
        return [self.command, *self.behind]


def chained(client: str, peer: Peer, server: str, behind_it: Peer, near: str, far: str, carrier: str = "stdio") -> Chained:
    return Chained((client, peer), (server, Proxy(behind_it, near != far, far)), near, carrier, far)


def planned(ours: dict[str, tuple[Peer, Peer]]) -> list[Chained]:
    """Every official client with every official server, and in each combination of eras, and before a gateway; ours, which are
    given by language, where the eras differ.
    """

    def official(client: str, server: str, near: str, far: str, carrier: str = "stdio") -> Chained:
        return chained(client, peers.CLIENTS[client], server, peers.SERVERS[server], near, far, carrier)

    sessions = [
        official(client, OFFICIAL[(i + j) % len(OFFICIAL)], *eras)
        for i, client in enumerate(OFFICIAL)
        for j, eras in enumerate(ERAS)
    ]
    sessions += [
        official("node-v1", "rmcp", OLD, NEW),
        official("rmcp", "everything", NEW, OLD),
        official("mcp", "node-v2", OLD, NEW, "http"),
        official("rmcp", "mcp", OLD, OLD, "http"),
        official("node-v2", "rmcp", NEW, NEW, "http"),
    ]
    for i, (language, (client, server)) in enumerate(ours.items()):
        other = OFFICIAL[i % len(OFFICIAL)]
        for near, far in CROSSING:
            sessions.append(chained(other, peers.CLIENTS[other], language, server, near, far))
        sessions.append(chained(f"our {language}", client, other, peers.SERVERS[other], *CROSSING[i % 2]))
    return sessions + [
        merged(client, OFFICIAL[(i + 1) % len(OFFICIAL)], *eras)
        for i, client in enumerate(OFFICIAL)
        for eras in (ERAS if client == "rmcp" else CROSSING)
    ]


def merged(client: str, server: str, near: str, far: str) -> Merged:
    gateway = Gateway(server, peers.SERVERS[server], near != far, far)
    return Merged((client, peers.CLIENTS[client]), (server, gateway), near, "stdio", far)
