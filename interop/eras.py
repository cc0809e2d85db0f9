#!/usr/bin/env python3
"""The matrix of eras: what a client of each era has of a server of each era through `mcpbolt proxy`, feature by feature,
on pipes and on HTTP, is what it has of the server itself.

    python3 interop/eras.py            the table; fails if a cell does

Needs what `cargo xtask eras` builds, and nothing from the registries.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import features
import network
import peers
from chains import NEW, OLD, Proxy
from peers import Peer
from scripts import Step
from sessions import Session

FEATURES = {
    "tools": "calls",
    "progress": "progress",
    "cancellation": "cancelling",
    "elicitation": "forms",
    "sampling": "sampling",
    "roots": "roots",
    "subscriptions": "changes",
    "logging": "logging",
    "completion": "completion",
    "tasks": "tasks",
}
RESUMPTION = "resumption"
CARRIERS = ("stdio", "http")
EXTENSION = "io.modelcontextprotocol/tasks"
# What the specification does not have, and which of its sections say so.
TASKS = (
    "2025-11-25, Utilities: Tasks, and the extension io.modelcontextprotocol/tasks of 2026-07-28 have different methods; no section "
    "maps one to the other, and the proxy offers neither"
)
PIPED = "2025-11-25, Transports: Resumability and Redelivery is a part of Streamable HTTP"
MODERN = "2026-07-28, Transports: Streamable HTTP has no event ids and no resumption"


@dataclass
class Column:
    """A client of one era, and a server of its own or of another behind a proxy, on one carrier."""

    near: str
    far: str | None
    carrier: str
    client: Peer
    server: Peer

    @property
    def name(self) -> str:
        return f"{self.near[:4]} → {self.far[:4] if self.far else 'itself'}, {self.carrier}"

    @contextmanager
    def serving(self, into: Path) -> Iterator[list[str]]:
        """The words that tell the client where the server is. Both hops have the same carrier."""
        if self.carrier == "stdio":
            peer = Proxy(self.server, self.near != self.far, self.far) if self.far else self.server
            yield peer.command
            return
        with network.started(f"eras {self.name} itself", self.server, into) as (place, _):
            address = place.address("http")
            if self.far is None:
                yield [address]
                return
            between = Peer(peers.built("mcpbolt"), "proxy", "--revision", self.far, "--to", address)
            with network.started(f"eras {self.name}", between, into) as (place, _):
                yield [place.address("http")]

    def cells(self, into: Path) -> dict[str, str | list[str]]:
        """By feature: why it is not in the specification, or what is wrong with it."""
        found: dict[str, str | list[str]] = {}
        with self.serving(into) as words:
            for name in FEATURES:
                found[name] = self.cell(name, words, into)
            if self.carrier == "stdio":
                found[RESUMPTION] = PIPED
            elif self.near == NEW:
                found[RESUMPTION] = MODERN
            else:
                found[RESUMPTION] = resumed(words[0])
        return found

    def cell(self, name: str, words: list[str], into: Path) -> str | list[str]:
        crosses = self.far not in (None, self.near)
        steps = absent(self.near) if name == "tasks" and crosses else steps_of(name, self.near)
        played = Played(("our rust", self.client), ("rust", self.server), self.near, self.carrier, steps)
        stem = into / f"{self.near}-{self.far}-{self.carrier}-{name}"
        problems = played.play(words, stem)
        return TASKS if name == "tasks" and crosses and not problems else problems


@dataclass
class Played(Session):
    steps: tuple[Step, ...] = ()

    def script(self) -> list[Step]:
        return [*self.steps, ({"do": "close"}, {})]


def steps_of(name: str, revision: str) -> tuple[Step, ...]:
    wanted = "tasks as an extension" if (name, revision) == ("tasks", NEW) else FEATURES[name]
    return tuple(next(feature for feature in features.FEATURES if feature.name == wanted).steps(revision))


def absent(revision: str) -> tuple[Step, ...]:
    """A proxy between the eras offers no tasks."""
    if revision == NEW:
        return (({"do": "info"}, {"extensions": lambda offered: EXTENSION not in (offered or {})}),)
    return (({"do": "request", "method": "tasks/list"}, {"code": features.METHOD_NOT_FOUND}),)


def resumed(address: str) -> list[str]:
    """A call whose stream breaks off after its first event goes on where it was, once."""
    host, _, path = address.removeprefix("http://").partition("/")
    fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def ask(method: str, message: dict | None, more: dict[str, str]) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.request(method, f"/{path}", json.dumps(message) if message else None, {**fields, **more})
        return connection, connection.getresponse()

    def events(response: http.client.HTTPResponse) -> Iterator[tuple[str, dict]]:
        identity = ""
        for line in response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                identity = value
            elif name == "data" and value:
                yield identity, json.loads(value)

    hello = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "eras", "version": "1"}}
    _, opened = ask("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}, {})
    opened.read()
    session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], "MCP-Protocol-Version": OLD}
    ask("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    params = {"name": "progress", "arguments": {"n": features.PROGRESS_STEPS}, "_meta": {"progressToken": "t"}}
    connection, stream = ask("POST", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, session)
    heard, last = [], ""
    for last, message in events(stream):
        heard.append(message)
        break
    connection.sock.close() if connection.sock else None
    stream.close()
    if not last:
        return ["its events have no ids"]
    _, again = ask("GET", None, {**session, "Last-Event-ID": last})
    for _, message in events(again):
        heard.append(message)
        if "result" in message:
            break
    steps = [message["params"]["progress"] for message in heard if "method" in message]
    text = heard[-1].get("result", {}).get("content", [{}])[0].get("text")
    right = text == "done" and steps == sorted(set(steps)) and steps[-1] == features.PROGRESS_STEPS
    return [] if right else [f"{text}, after the steps {steps}"]


def columns() -> list[Column]:
    client, server = peers.ours("rust", "")
    places = [(near, far, carrier) for near in (OLD, NEW) for far in (None, OLD, NEW) for carrier in CARRIERS]
    return [Column(*place, client, server) for place in places]


@dataclass
class Crossing:
    """The columns of a proxy on HTTP: those on pipes are what `chains.py` does with the clients of others."""

    name = "our client and server, through a proxy on HTTP, in each combination of eras"

    def run(self, into: Path) -> list[str]:
        chosen = [column for column in columns() if column.far and column.carrier == "http"]
        with ThreadPoolExecutor(len(chosen)) as pool:
            found = pool.map(lambda column: column.cells(into), chosen)
        return failures({column.name: cells for column, cells in zip(chosen, found)})


def failures(found: dict[str, dict[str, str | list[str]]]) -> list[str]:
    return [
        f"{column}, {name}: {problem}"
        for column, cells in found.items()
        for name, problems in cells.items()
        for problem in (problems if isinstance(problems, list) else ())
    ]


def table(found: dict[str, dict[str, str | list[str]]]) -> str:
    """Rows of features, and the notes."""
    notes: list[str] = []

    def shown(cell: str | list[str]) -> str:
        if isinstance(cell, list):
            return "FAILED" if cell else "ok"
        if cell not in notes:
            notes.append(cell)
        return f"– ({notes.index(cell) + 1})"

    rows = [["client → server", *found]]
    rows += [[name, *(shown(column[name]) for column in found.values())] for name in [*FEATURES, RESUMPTION]]
    turned = list(itertools.zip_longest(*rows))
    widths = [max(map(len, row)) for row in zip(*turned)]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in turned]
    return "\n".join([*lines, "", *(f"({number}) {note}" for number, note in enumerate(notes, 1))])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="mcpbolt-eras-") as folder, ThreadPoolExecutor(4) as pool:
        all_columns = columns()
        cells = pool.map(lambda column: column.cells(Path(folder)), all_columns)
        found = dict(zip((column.name for column in all_columns), cells))
    print(table(found))
    failed = failures(found)
    print(*(f"FAILED {one}" for one in failed), sep="\n", end="\n" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
