"""Logins with a real authorization server, the npm package `oidc-provider`: clients of each SDK log in to one
server, use it until their access token has ended, and refresh it. Our servers are the programs of the guide.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import install
import network
import peers

HERE = install.HERE / "logins"
# How long an access token lives. Clients call again when it has ended.
LIFETIME_SECONDS, PAUSE_SECONDS, CLIENT_SECONDS = 5, 6, 120

CLIENTS = {
    "mcp": [install.PYTHON, HERE / "clients" / "python_client.py"],
    "node-v1": ["node", HERE / "clients" / "node_client.mjs", "v1"],
    "node-v2": ["node", HERE / "clients" / "node_client.mjs", "v2"],
}
SERVERS = {
    "mcp": [install.PYTHON, HERE / "servers" / "python_server.py"],
    "node-v1": ["node", HERE / "servers" / "node_server.mjs"],
}
# The ways to log in of our command, and the path of servers that demand DPoP proofs.
WAYS, DPOP = ("browser", "device", "paste", "machine"), "/dpop"
# Those with a user.
USERS = WAYS[:3]
# Its programs are our servers, with other addresses.
GUIDE = install.HERE.parent / "core" / "AUTHORIZATION.md"
# Whether servers read signed tokens, or ask the authorization server about opaque ones.
PATHS = {"mcp": ["/mcp", "/opaque"], "node-v1": ["/mcp"]}


@dataclass
class Provider:
    """The authorization server at work."""

    issuer: str

    def control(self, **options: object) -> None:
        """Changes its options."""
        self._ask("control", json.dumps(options).encode())

    def seen(self) -> dict[str, int]:
        """How often each endpoint answered how."""
        return self._ask("seen")

    def secrets(self) -> list[str]:
        """Everything that it gave or was given and that nobody else may see."""
        return self._ask("secrets")

    def _ask(self, path: str, data: bytes | None = None) -> dict:
        with urllib.request.urlopen(f"{self.issuer}/{path}", data, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def provider(log: Path, **options: object) -> Iterator[Provider]:
    """An authorization server, which ends with the block."""
    command = ["node", str(HERE / "provider.mjs"), json.dumps(options)]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the authorization server did not start (see {log})")
            yield Provider(json.loads(line)["issuer"])
        finally:
            process.kill()
            process.communicate()


@dataclass
class Logins:
    """One server, to which clients log in."""

    server: str
    command: list[object]
    clients: dict[str, list[object]]
    path: str = "/mcp"
    by: str = ""
    # Whether the clients, and the server, are ours: what they write down is searched for secrets.
    our_clients: bool = False
    our_server: bool = False
    # The browser of the users, if it is a real one.
    chromium: str = ""

    @property
    def name(self) -> str:
        return f"{self.by}logins{' in Chromium' * bool(self.chromium)} -> {self.server}{self.path}"

    def run(self, into: Path) -> Iterator[tuple[str, list[str]]]:
        """Returns the faults of each login."""
        stem = into / self.name.translate(str.maketrans("/> ", "---"))
        self.written = stem.with_suffix(".written")
        shutil.rmtree(self.written, ignore_errors=True)
        self.written.mkdir()
        options = {"lifetime": LIFETIME_SECONDS, "nonce": self.path == DPOP}
        with provider(stem.with_suffix(".provider.log"), **options) as issuer:
            port = network.free_port()
            url = f"http://{network.HOST}:{port}{self.path}"
            log = (self.written if self.our_server else into) / f"{stem.name}.log"
            with log.open("wb") as output:
                words = [str(word) for word in [*self.command, issuer.issuer, url]]
                environment = self.watched("server") if self.our_server else None
                server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
                try:
                    network.wait_for(server, port, log)
                    with ThreadPoolExecutor() as pool:
                        done = [pool.submit(self.log_in, name, url) for name in self.clients]
                    for name, problems in zip(self.clients, done, strict=True):
                        yield f"{name} {self.name}", problems.result()
                finally:
                    server.kill()
                    server.wait()
            seen = issuer.seen()
            users = sum(who(name) == "user" for name in self.clients)
            # Ours tolerates clocks that differ by a minute, and clients of TypeScript wait to be refused.
            at_least = 1 if self.our_server else users
            refreshed = seen.get("token 200", 0) - len(self.clients)
            faults = [f"only {refreshed} refreshes: {seen}"] * (refreshed < at_least)
            yield f"the authorization server of {self.name}", faults
            if self.our_clients or self.our_server:
                yield f"no secret is written down: {self.name}", self.leaks(issuer.secrets())

    def watched(self, name: str) -> dict[str, str]:
        """An environment in which ours write down all that they can."""
        traces = self.written / f"{name} traces"
        traces.mkdir()
        return {**os.environ, "RUST_LOG": "trace", "MCPBOLT_TRACE": str(traces)}

    def leaks(self, secrets: list[str]) -> list[str]:
        """The files with a secret in them."""
        files = [path for path in self.written.rglob("*") if path.is_file()]
        texts = {path: path.read_text(errors="replace") for path in files}
        if not secrets or not any("whoami" in text for text in texts.values()):
            return ["nothing was written down, or there were no secrets"]
        return [f"{path}: …{secret[-4:]}" for path, text in texts.items() for secret in secrets if secret in text]

    def log_in(self, name: str, url: str) -> list[str]:
        environment = self.watched(name) if self.our_clients else {**os.environ}
        environment["MCPBOLT_PAUSE"] = str(PAUSE_SECONDS)
        environment["MCPBOLT_CHROMIUM"] = self.chromium
        words = [str(word) for word in [*self.clients[name], url]]
        expected = [f"{who(name)}: mcp:read"] * 2
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=CLIENT_SECONDS
        )
        if self.our_clients:
            (self.written / f"{name}.log").write_text(done.stdout + done.stderr)
        said = done.stdout.splitlines()
        faults = [f"it said {said}, not {expected}"] * (said != expected)
        faults += [f"exit status {done.returncode}"] * bool(done.returncode)
        return faults + (done.stderr.splitlines() if faults else [])


def who(client: str) -> str:
    """The user that the client logs in."""
    return "machine" if client.endswith("machine") else "user"


def ours(language: str, interpreter: str = "", ways: tuple[str, ...] = WAYS) -> dict[str, list[object]]:
    """Our clients in that language, which the interpreter runs."""
    if language != "rust":
        program = HERE / "clients" / {"node": "node_ours.mjs", "python": "python_ours.py"}[language]
        return {f"our {language} by {way}": [interpreter, program, way] for way in ways}
    target = Path(os.environ.get("CARGO_TARGET_DIR", install.HERE.parent / "target")) / "debug"
    command = [sys.executable, HERE / "clients" / "command.py"]
    return {f"mcpbolt login by {way}": [*command, way, target / "mcpbolt"] for way in ways}


def of_the_guide(language: str, interpreter: str) -> list[object]:
    """The command that runs the guide's server in that language; it takes the issuer and the URL."""
    return [sys.executable, HERE / "servers" / "guide.py", language, interpreter]


def planned(language: str, interpreter: str = "") -> list[Logins]:
    """The logins of a language: of its clients to all servers of others, and of all clients to its server."""
    clients = CLIENTS if language == "reference" else ours(language, interpreter)
    servers = [(name, path) for name in SERVERS for path in PATHS[name]]
    own = language != "reference"
    out = [Logins(name, SERVERS[name], clients, path, f"{language} ", own) for name, path in servers]
    if language in ("python", "node"):
        command = of_the_guide(language, interpreter)
        out.append(Logins(f"our {language}", command, CLIENTS | ours("rust"), our_server=True))
        proving = {"node-v2": [*CLIENTS["node-v2"], "dpop"]} | ours("rust", ways=("dpop",))
        proving |= ours(language, interpreter, ("dpop",))
        out.append(Logins(f"our {language}", command, proving, DPOP, our_server=True))
    if language == "rust":
        # Its own authorization server stands before the real one, which sees a single client.
        out.append(Logins("consent proxy", [peers.built("interop-consent")], CLIENTS))
    return out


def in_chromium(language: str, interpreter: str, chromium: str) -> list[Logins]:
    """The logins of users of Chromium: at our server in that language, by our clients and others'."""
    if language == "rust":
        return [Logins("consent proxy", [peers.built("interop-consent")], CLIENTS, chromium=chromium)]
    clients = CLIENTS | ours("rust", ways=USERS) | ours(language, interpreter, USERS)
    command = of_the_guide(language, interpreter)
    return [Logins(f"our {language}", command, clients, our_server=True, chromium=chromium)]
