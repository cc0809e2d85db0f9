"""Reads a recording of tee.py back: messages in the order they passed, and how the server ended.

Reads a trace of an engine, too: the messages of a connection as that side saw them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

CLIENT, SERVER = "client", "server"
_SENDERS = {">": CLIENT, "<": SERVER}


@dataclass
class Line:
    at_ns: int  # when its last byte passed
    sender: str
    raw: bytes
    value: object = None
    fault: str = ""


@dataclass
class Recording:
    lines: list[Line] = field(default_factory=list)
    pid: int | None = None
    client_closed_ns: int | None = None
    exited_ns: int | None = None
    exit_status: int | None = None

    @property
    def exit_delay_s(self) -> float | None:
        """From the client's end of stream to the server's exit; None when either is not there."""
        if self.client_closed_ns is None or self.exited_ns is None:
            return None
        return (self.exited_ns - self.client_closed_ns) / 1e9

    def count(self, sender: str, method: str) -> int:
        """The messages of that method it sent; of a list in pages the first."""
        sent = (line.value for line in self.lines if line.sender == sender and isinstance(line.value, dict))
        asked = (value.get("params") or {} for value in sent if value.get("method") == method)
        return sum("cursor" not in params for params in asked)


def _entries(data: bytes):
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, when, length = data[at:end].split(b" ")
        yield kind.decode(), int(when), data[end + 1 : end + 1 + int(length)]
        at = end + 2 + int(length)


def _line(at_ns: int, sender: str, raw: bytes) -> Line:
    line = Line(at_ns, sender, raw)
    if b"\r" in raw:
        line.fault = "a raw carriage return in a frame"
    try:
        line.value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        line.fault = f"not JSON: {error}"
    return line


_MASKED = re.compile(rb'("[\w.-]+/[\w.-]+"):"\*\*\*"')


def read_trace(path: Path, begin: int = 0) -> tuple[str, Recording]:
    """Returns the side of the trace, and the messages from that byte on. Input of the peer that is not JSON is
    left out. The masked settings of an extension whose id speaks of credentials are an empty object.
    """
    side = path.name.partition("-")[0]
    peer = CLIENT if side == SERVER else SERVER
    out = Recording()
    for at, text in enumerate(path.read_bytes()[begin:].splitlines()):
        sender = side if text.startswith(b"-> ") else peer
        line = _line(at, sender, _MASKED.sub(rb"\1:{}", text[3:]))
        if sender == side or not line.fault:
            out.lines.append(line)
    return side, out


def read(path: Path) -> Recording:
    out = Recording()
    partial = {CLIENT: b"", SERVER: b""}
    for kind, when, payload in _entries(path.read_bytes()):
        if sender := _SENDERS.get(kind):
            *whole, partial[sender] = (partial[sender] + payload).split(b"\n")
            out.lines += [_line(when, sender, raw) for raw in whole]
        elif kind == ")":
            out.client_closed_ns = when
        elif kind == "p":
            out.pid = int(payload)
        elif kind == "x":
            out.exited_ns, out.exit_status = when, int(payload)
    for sender, rest in partial.items():
        if rest:
            out.lines.append(Line(0, sender, rest, fault="a line that never ended"))
    return out
