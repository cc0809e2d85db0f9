"""The clients and servers, how each is started, which revisions it speaks, and what it lacks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import features
import install
import keepers
import programs
from scripts import Script

HERE = install.HERE
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*LEGACY, features.MODERN)


Lacks = dict[str, str]  # feature -> why


# The carriers beside stdio, and the path of a server for each.
STREAMABLE = {"http": "/mcp"}
BOTH = STREAMABLE | {"sse": "/sse"}
ONE_PLACE = STREAMABLE | {"sse": "/mcp"}


class Peer:
    """One client or server. A server that is a finished program has a script of its own. A process of
    a lasting client plays many sessions.
    """

    def __init__(
        self,
        *command: object,
        revisions: tuple[str, ...] = ALL,
        carriers: dict[str, str] = STREAMABLE,
        lacks: Lacks = {},
        lacks_beside_stdio: Lacks = {},
        script: Script | None = None,
        lasting: bool = False,
    ) -> None:
        self.command = [str(word) for word in command]
        self.revisions = revisions
        self.carriers = carriers
        self.lacks = lacks
        self.lacks_beside_stdio = lacks_beside_stdio
        self.script = script
        self.lasting = lasting

    def at(self, address: str) -> list[str]:
        """The command line of a server on the network."""
        return [*self.command, address]

    def commands(self) -> list[list[str]]:
        """Those of all programs that it consists of."""
        return [self.command]

    def lacking(self, carrier: str) -> set[str]:
        """The features that it does not have there."""
        return {*self.lacks} if carrier == "stdio" else {*self.lacks, *self.lacks_beside_stdio}


NO_TASKS: Lacks = {"tasks": "none", "tasks as an extension": "none"}
FASTMCP_TASKS = dict.fromkeys(NO_TASKS, "those of a package of their own, `fastmcp-tasks`")
RMCP_TASKS = {"tasks": "only those of 2026-07-28"}
FEW_CONNECTIONS: Lacks = {
    "sampling, 100 at once": "of its 100 connections none is left for answers while 100 calls wait for them",
}
# The features that ours lack, as clients and as servers.
OUR_LACKS: dict[str, tuple[Lacks, Lacks]] = {
    "rust": ({}, {}),
    "python": ({}, {}),
    "node": ({}, {}),
}
OURS = tuple(OUR_LACKS)
CLIENTS = {
    "mcp": Peer(
        *keepers.command(HERE / "clients" / "python_client.py"),
        carriers=BOTH,
        lacks=NO_TASKS,
        lacks_beside_stdio=FEW_CONNECTIONS,
    ),
    # It has the sessions of `mcp`, which is put through all revisions.
    "fastmcp": Peer(
        *keepers.command(HERE / "clients" / "fastmcp_client.py"),
        revisions=ALL[-2:],
        lacks=FASTMCP_TASKS,
        lacks_beside_stdio=FEW_CONNECTIONS,
    ),
    "node-v1": Peer("node", HERE / "clients" / "node_v1.mjs", revisions=LEGACY, carriers=BOTH, lasting=True),
    "node-v2": Peer(
        "node",
        HERE / "clients" / "node_v2.mjs",
        carriers=BOTH,
        lacks=NO_TASKS,
        lacks_beside_stdio={"unknown methods": "an error that comes with a status of its own (2026-07-28) is text to it"},
        lasting=True,
    ),
    "rmcp": Peer(install.RMCP / "client", lacks=RMCP_TASKS),
}
FASTMCP_SERVER = FASTMCP_TASKS | {
    "refusals": "says of an unknown tool in a result, of a prompt's missing argument that it failed internally",
    "changes": "no subscriptions, neither `resources/subscribe` nor `subscriptions/listen`",
}
SERVERS = {
    "rmcp": Peer(install.RMCP / "server", lacks=RMCP_TASKS),
    "mcp": Peer(*keepers.command(HERE / "servers" / "python_server.py"), carriers=BOTH, lacks=NO_TASKS),
    "fastmcp": Peer(*keepers.command(HERE / "servers" / "fastmcp_server.py"), revisions=ALL[-2:], lacks=FASTMCP_SERVER),
    "node-v1": Peer("node", HERE / "servers" / "node_v1.mjs", revisions=LEGACY, carriers=BOTH),
    "node-v2": Peer("node", HERE / "servers" / "node_v2.mjs", lacks=NO_TASKS),
    "everything": Peer("node", HERE / "servers" / "everything.mjs", revisions=LEGACY, script=programs.everything),
    "garbage": Peer(sys.executable, HERE / "servers" / "garbage_server.py", carriers={}, script=programs.garbage),
}


def carriers(client: Peer, server: Peer, revision: str, full: bool) -> list[str]:
    """Returns the carriers, beside stdio, over which both speak that revision. The first pair of endpoints
    suffices; the full set has the others, too.
    """
    shared = [carrier for carrier in client.carriers if carrier in server.carriers]
    if revision != features.FIRST:
        return [carrier for carrier in shared if carrier != "sse"]
    return shared if full else shared[-1:]


def diagnostic(language: str) -> list[str]:
    """Builds that package of ours; the command line of its diagnostic server."""
    print(f"  building the {language} package …", file=sys.stderr, flush=True)
    tool = ["cargo", "xtask", "diagnostic", "--lang", language, "--debug", "--print"]
    done = subprocess.run(tool, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(tool)} failed")
    return shlex.split(done.stdout.strip().splitlines()[-1])


def built(program: str) -> Path:
    """One of our programs in Rust, which `cargo build -p interop-ours` makes."""
    return Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "debug" / program


def ours(language: str, interpreter: str) -> tuple[Peer, Peer]:
    """Our client and our server in that language."""
    folder = HERE / "ours" / language
    client, server = OUR_LACKS[language]
    if language == "python":
        words = [[interpreter, folder / f"{side}.py"] for side in ("client", "server")]
    elif language == "node":
        words = [["node", folder / f"{side}.mjs"] for side in ("client", "server")]
    else:
        # Built with the diagnostic server.
        words = [[built(f"interop-{side}")] for side in ("client", "server")]
    return Peer(*words[0], carriers=ONE_PLACE, lacks=client), Peer(*words[1], carriers=ONE_PLACE, lacks=server)
