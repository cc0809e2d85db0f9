#!/usr/bin/env python3
"""Plays ../corpus/bad_frames.json to a stdio server over raw pipes.

    python3 interop/bad_frames.py [--only REGEX] -- COMMAND [ARGUMENT...]

One process for each era, a new one after a failure. Needs the diagnostic tool `sleep`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "bad_frames.json"
LIMIT_BYTES = 128 << 20  # the engine's default for stdio
ANSWER_SECONDS = 10.0
EXIT_SECONDS = 5.0
_DECODE = json.JSONDecoder()


class Failure(Exception):
    pass


def raw_id(line: str) -> str:
    """The token of the top-level `id` as it stands on the wire; `absent` without one."""
    space = re.compile(r"[ \t\r\n]*")
    at = space.match(line, line.index("{") + 1).end()
    while line[at] != "}":
        key, at = _DECODE.raw_decode(line, at)
        start = space.match(line, line.index(":", at) + 1).end()
        _, at = _DECODE.raw_decode(line, start)
        if key == "id":
            return line[start:at]
        at = space.match(line, at).end()
        if line[at] == ",":
            at = space.match(line, at + 1).end()
    return "absent"


def answer(line: bytes) -> list[dict]:
    """One line of the server's as answers in the corpus' terms; a batch holds several."""
    text = line.decode()
    value = json.loads(text)
    if isinstance(value, list):
        return [one for element in value for one in answer(json.dumps(element).encode())]
    if value.get("jsonrpc") != "2.0" or ("result" in value) == ("error" in value):
        raise Failure(f"no answer: {text[:300]}")
    failure = {"code": value["error"]["code"]} if "error" in value else {}
    if value.get("result", {}).get("isError"):
        failure = {"is_error": True}
    return [{"id": raw_id(text), **failure}]


class Server:
    """A server process and its pipes, neither of which can block us."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        self.unread = b""

    def exchange(self, data: bytes, done) -> list[dict]:
        """Sends the data and collects answers until `done(answers)`; what came when that fails is told."""
        answers: list[dict] = []
        rest, until = memoryview(data), time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as ready:
            ready.register(self.stdout, selectors.EVENT_READ)
            ready.register(self.stdin, selectors.EVENT_WRITE)
            while rest or not done(answers):
                events = ready.select(until - time.monotonic()) if time.monotonic() < until else []
                if not events:
                    raise Failure(f"nothing more came after {answers}" + (" and not all was read" if rest else ""))
                for key, _ in events:
                    if key.fd == self.stdout:
                        answers += self.read(answers)
                    elif rest:
                        rest = rest[os.write(self.stdin, rest[: 1 << 20]) :]
                        until = time.monotonic() + ANSWER_SECONDS
                    else:
                        ready.unregister(self.stdin)
        return answers

    def read(self, before: list[dict]) -> list[dict]:
        data = os.read(self.stdout, 1 << 16)
        if not data:
            raise Failure(f"the server is gone ({self.process.wait(1)}) after {before}")
        *lines, self.unread = (self.unread + data).split(b"\n")
        return [one for line in lines for one in answer(line)]

    def close(self) -> None:
        """Ends the input; nothing more may come, and the server must end."""
        self.process.stdin.close()
        self.process.stdin = None  # or `communicate` flushes it
        try:
            late, _ = self.process.communicate(timeout=EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"the server has not ended {EXIT_SECONDS} s after its input") from None
        if late or self.unread or self.process.returncode:
            raise Failure(f"at the end: {self.unread + late!r}, exit status {self.process.returncode}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def encode(parts: list, era: dict) -> bytes:
    out = []
    for part in parts:
        if isinstance(part, str):
            for word in ("rest", "sleep"):
                part = part.replace(f"${word}", era.get(word, ""))
            out.append(part.encode())
        elif "hex" in part:
            out.append(bytes.fromhex(part["hex"]))
        else:
            count = LIMIT_BYTES + 1 if part["count"] == "over the limit" else part["count"]
            out.append(part["repeat"].encode() * count)
    return b"".join([*out, b"\n"])


def opened(command: list[str], era: dict) -> Server:
    server = Server(command)
    lines = "".join(line + "\n" for line in era["open"]).encode()
    answers = server.exchange(lines, lambda answers: len(answers) >= era["opening_answers"])
    if any("code" in one for one in answers):
        raise Failure(f"the connection did not open: {answers}")
    return server


def play(server: Server, era: dict, case: dict) -> None:
    """One case and the good request after it."""
    then = case.get("then", '"then"')
    unreadable = era["unreadable_id"]
    want = [{**one, "id": unreadable if one["id"] == "?" else one["id"]} for one in case["expect"]]
    good = '{"jsonrpc":"2.0","id":%s,$rest}' % then
    send = [*case["send"], "\n" + good]
    got: list[dict] = []
    if "sleep" in str(case["send"]) or then != '"then"':
        # The id may be free only after the answers.
        got = server.exchange(encode(case["send"], era), lambda answers: len(answers) >= len(want))
        send = [good]
    got += server.exchange(encode(send, era), lambda answers: {"id": then} in answers)
    want.append({"id": then})
    if case.get("any_order"):
        got, want = (sorted(answers, key=str) for answers in (got, want))
    if got != want:
        raise Failure(f"answered {got}, not {want}")


def play_era(command: list[str], era: dict, cases: list[dict]) -> list[str]:
    problems: list[str] = []
    server = None
    for case in sorted(cases, key=lambda case: not case.get("fresh")):
        try:
            server = server or opened(command, era)
            play(server, era, case)
        except (Failure, ValueError, OSError, subprocess.TimeoutExpired) as error:
            problems.append(f"{case['name']}: {error}")
            if server:
                server.kill()
            server = None
    if server:
        try:
            server.close()
        except Failure as error:
            server.kill()
            problems.append(str(error))
    return problems


def run(command: list[str], only: str = "") -> dict[str, tuple[int, list[str]]]:
    """For each era, how many cases were played and what was wrong."""
    corpus = json.loads(CORPUS.read_text())
    out = {}
    for name, era in corpus["eras"].items():
        cases = [
            case
            for case in corpus["frames"]
            if name in case.get("eras", [name]) and re.search(only, f"{name}: {case['name']}")
        ]
        if cases:
            out[name] = len(cases), play_era(command, era, cases)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only cases whose `era: name` matches")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    failed = 0
    for era, (count, problems) in run(options.command, options.only).items():
        print(f"{era}: {count - len(problems)} of {count} cases", *problems, sep="\n    ")
        failed += len(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
