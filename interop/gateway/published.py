#!/usr/bin/env python3
"""Seven servers that others have published, behind one `mcpbolt gateway`, and two command lines of others before it: what each tool is and
answers is what it is and answers without the gateway.

    cargo build -p mcpbolt-cli --bin mcpbolt
    python3 interop/gateway/published.py

Needs npm, git, Python 3.11 and the registries: the programs are installed in `.cache/published-gateway`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gateway import ROOT, Gateway

CACHE = ROOT / ".cache" / "published-gateway"
NPM = (
    "@modelcontextprotocol/inspector@0.15.0",
    "mcporter@0.9.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
)
PYPI = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24")
# Seconds that a program may take, on a machine that does other things, too.
PATIENCE = 120

# A tool of each server, and its arguments.
CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "everything": ("get-sum", {"a": "1", "b": "2"}),
    "files": ("read_text_file", {"path": "{folder}/a.txt"}),
    "memory": ("read_graph", {}),
    "thinking": ("sequentialthinking", {"thought": "one", "nextThoughtNeeded": "false", "thoughtNumber": "1", "totalThoughts": "1"}),
    "git": ("git_log", {"repo_path": "{folder}"}),
    "time": ("convert_time", {"source_timezone": "UTC", "time": "10:00", "target_timezone": "Asia/Tokyo"}),
    # There is no such host: it answers with an error.
    "fetch": ("fetch", {"url": "http://nowhere.invalid/"}),
}


def run(*words: object, cwd: Path | None = None) -> str:
    """What a program prints."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{words} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def install() -> None:
    stamp, wanted = CACHE / "stamp", json.dumps([NPM, PYPI, sys.version])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "package.json").write_text('{"private": true}')
    for words in (
        ["npm", "install", "--no-audit", "--no-fund", *NPM],
        [sys.executable, "-m", "venv", "python"],
        ["python/bin/python", "-m", "pip", "install", "--quiet", *PYPI],
    ):
        print("$", *words, flush=True)
        subprocess.run(words, cwd=CACHE, check=True)
    stamp.write_text(wanted)


def servers(folder: Path) -> dict[str, list[str]]:
    npm, pypi = (lambda name: str(CACHE / "node_modules" / ".bin" / name)), (lambda name: str(CACHE / "python" / "bin" / name))
    return {
        "everything": [npm("mcp-server-everything")],
        "files": [npm("mcp-server-filesystem"), str(folder)],
        "memory": [npm("mcp-server-memory")],
        "thinking": [npm("mcp-server-sequential-thinking")],
        "git": [pypi("mcp-server-git"), "--repository", str(folder)],
        "time": [pypi("mcp-server-time"), "--local-timezone", "UTC"],
        "fetch": [pypi("mcp-server-fetch")],
    }


def inspect(at: list[str], *words: str) -> Any:
    """What the Inspector's command line makes of a server."""
    return json.loads(run(CACHE / "node_modules/.bin/mcp-inspector", "--cli", *at, *words))


def call(at: list[str], tool: str, arguments: dict[str, str]) -> Any:
    given = [f"{name}={value}" for name, value in arguments.items()]
    return inspect(at, "--method", "tools/call", "--tool-name", tool, *(["--tool-arg", *given] if given else []))


def without_names(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name != "name"}


async def check(folder: Path) -> list[str]:
    problems: list[str] = []

    def same(what: str, alone: Any, through: Any) -> None:
        print("ok" if alone == through else "DIFFERS", what, flush=True)
        if alone != through:
            problems.append(f"{what}: {json.dumps(through)[:600]} through the gateway, by itself {json.dumps(alone)[:600]}")

    (folder / "a.txt").write_text("one\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "main"], ["add", "a.txt"], [*author, "commit", "-q", "-m", "one"]):
        run("git", *words, cwd=folder)
    all_servers = servers(folder)
    gateway = Gateway(ROOT / "target/debug/mcpbolt", folder)
    # As editors have it.
    gateway.file = folder / "servers.json"
    named = {name: {"command": words[0], "args": words[1:]} for name, words in all_servers.items()}
    gateway.write(json.dumps({"mcpServers": named}))
    await gateway.start()
    url = f"http://127.0.0.1:{gateway.port}/mcp"
    try:
        # The servers that start slowly are in the lists of a session when they are there; this client asks once.
        for _ in range(10):
            tools = inspect([url, "--transport", "http"], "--method", "tools/list")["tools"]
            met = {tool["name"].partition("_")[0] for tool in tools}
            if met == set(all_servers):
                break
        listed = {tool["name"]: without_names(tool) for tool in tools}
        for name, words in all_servers.items():
            alone = inspect(words, "--method", "tools/list")["tools"]
            through = {tool: listed[tool] for tool in listed if tool.partition("_")[0] == name}
            same(f"tools of {name}", {f"{name}_{tool['name']}": without_names(tool) for tool in alone}, through)
            tool, arguments = CALLS[name]
            given = {key: value.replace("{folder}", str(folder)) for key, value in arguments.items()}
            through = call([url, "--transport", "http"], f"{name}_{tool}", given)
            same(f"{name}_{tool}", call(words, tool, given), through)
        mcporter = CACHE / "node_modules/.bin/mcporter"
        seen = json.loads(run(mcporter, "list", url, "--json", "--allow-http", cwd=folder))
        same("mcporter list", sorted(listed), sorted(tool["name"] for tool in seen["tools"]))
        said = run(mcporter, "call", f"{url}.everything_echo", "message=one", "--allow-http", cwd=folder)
        same("mcporter call", "Echo: one", said.strip())
    finally:
        problems += await gateway.stop()
    return problems


def main() -> int:
    install()
    with tempfile.TemporaryDirectory(prefix="mcpbolt-published-") as folder:
        problems = asyncio.run(check(Path(folder).resolve()))
    print(*problems, sep="\n", end="\n" if problems else "")
    print("FAILED" if problems else "ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
