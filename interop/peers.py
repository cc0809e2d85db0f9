"""The clients and servers, how each is started, which revisions it speaks, and what it lacks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import features
import install
import programs
from scripts import Script

HERE = install.HERE
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*LEGACY, features.MODERN)


Lacks = dict[str, str]  # feature -> why


class Peer:
    """One client or server. A server that is a finished program has a script of its own."""

    def __init__(
        self,
        *command: object,
        revisions: tuple[str, ...] = ALL,
        lacks: Lacks = {},
        script: Script | None = None,
    ) -> None:
        self.command = [str(word) for word in command]
        self.revisions = revisions
        self.lacks = lacks
        self.script = script


NO_TASKS: Lacks = {"tasks": "none", "tasks as an extension": "none"}
FASTMCP_TASKS = dict.fromkeys(NO_TASKS, "those of a package of their own, `fastmcp-tasks`")
RMCP_TASKS = {"tasks": "only those of 2026-07-28"}
# What ours lack, as clients and as servers.
OUR_LACKS: dict[str, tuple[Lacks, Lacks]] = {
    "rust": ({}, {}),
    "python": ({}, {}),
    "node": ({}, {}),
}
OURS = tuple(OUR_LACKS)
CLIENTS = {
    "mcp": Peer(install.PYTHON, HERE / "clients" / "python_client.py", lacks=NO_TASKS),
    # It has the sessions of `mcp`, which is put through all revisions.
    "fastmcp": Peer(install.PYTHON, HERE / "clients" / "fastmcp_client.py", revisions=ALL[-2:], lacks=FASTMCP_TASKS),
    "node-v1": Peer("node", HERE / "clients" / "node_v1.mjs", revisions=LEGACY),
    "node-v2": Peer("node", HERE / "clients" / "node_v2.mjs", lacks=NO_TASKS),
    "rmcp": Peer(install.RMCP / "client", lacks=RMCP_TASKS),
}
FASTMCP_SERVER = FASTMCP_TASKS | {
    "refusals": "says of an unknown tool in a result, of a prompt's missing argument that it failed internally",
    "changes": "no subscriptions, neither `resources/subscribe` nor `subscriptions/listen`",
}
EVERYTHING = install.NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
SERVERS = {
    "rmcp": Peer(install.RMCP / "server", lacks=RMCP_TASKS),
    "mcp": Peer(install.PYTHON, HERE / "servers" / "python_server.py", lacks=NO_TASKS),
    "fastmcp": Peer(install.PYTHON, HERE / "servers" / "fastmcp_server.py", revisions=ALL[-2:], lacks=FASTMCP_SERVER),
    "node-v1": Peer("node", HERE / "servers" / "node_v1.mjs", revisions=LEGACY),
    "node-v2": Peer("node", HERE / "servers" / "node_v2.mjs", lacks=NO_TASKS),
    "everything": Peer("node", EVERYTHING, "stdio", revisions=LEGACY, script=programs.everything),
    "garbage": Peer(sys.executable, HERE / "servers" / "garbage_server.py", script=programs.garbage),
}


def diagnostic(language: str) -> list[str]:
    """Builds that package of ours; the command line of its diagnostic server."""
    print(f"  building the {language} package …", file=sys.stderr, flush=True)
    tool = ["cargo", "xtask", "diagnostic", "--lang", language, "--debug", "--print"]
    done = subprocess.run(tool, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(tool)} failed")
    return shlex.split(done.stdout.strip().splitlines()[-1])


def ours(language: str, interpreter: str, build: bool) -> tuple[Peer, Peer]:
    """Our client and our server in that language."""
    folder = HERE / "ours" / language
    client, server = OUR_LACKS[language]
    if language == "python":
        words = [[interpreter, folder / f"{side}.py"] for side in ("client", "server")]
    elif language == "node":
        words = [["node", folder / f"{side}.mjs"] for side in ("client", "server")]
    else:
        command = ["cargo", "build", "--quiet", "-p", "interop-ours"]
        if build and subprocess.run(command, cwd=HERE.parent).returncode:
            sys.exit(f"{' '.join(command)} failed")
        target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "debug"
        words = [[target / f"interop-{side}"] for side in ("client", "server")]
    return Peer(*words[0], lacks=client), Peer(*words[1], lacks=server)
