"""`mcpbolt gateway` in a process of its own, and the servers behind it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from far import MODERN
from near import Tally

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OLD = "2025-11-25"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def listens(port: int, seconds: float = 20) -> None:
    """Waits until somebody does."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.02)


class Server:
    """A server by hand on a port of its own, or one that the gateway starts."""

    def __init__(self, name: str, revision: str, folder: Path, piped: bool = False, isolation: str = "") -> None:
        self.name, self.revision, self.piped, self.isolation = name, revision, piped, isolation
        self.ledger = folder / f"{name}.ledger"
        self.port = 0 if piped else free_port()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def prefix(self) -> str:
        return "" if self.name == "plain" else f"{self.name}_"

    @property
    def command(self) -> list[str]:
        words = [sys.executable, "-S", str(HERE / "far.py"), self.name, self.revision, str(self.ledger)]
        return words if self.piped else [*words, str(self.port)]

    def uri(self, path: str) -> str:
        """The resource as clients of the gateway name it."""
        return f"test://{self.name}/{path}" if self.prefix else f"test://{path}"

    async def start(self) -> None:
        if not self.piped:
            self.process = await asyncio.create_subprocess_exec(*self.command, stdout=asyncio.subprocess.DEVNULL)
            await listens(self.port)

    async def kill(self) -> None:
        """Ends it at once; the gateway starts one on pipes again."""
        if self.process:
            self.process.kill()
            await self.process.wait()
            return
        for process in {words[1] for words in self.lines() if words[0] == "start"}:
            try:
                # Another process may have the number of one that has ended.
                if str(self.ledger).encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                    os.kill(int(process), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass

    def lines(self) -> list[list[str]]:
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [line.split(" ") for line in text.splitlines()]

    def settings(self, port: int | None = None) -> str:
        text = f"[servers.{self.name}]\n"
        if self.piped:
            text += f"command = {self.command!r}\n"
        else:
            text += f'url = "http://127.0.0.1:{port or self.port}/mcp"\n'
        text += f'isolation = "{self.isolation}"\n' if self.isolation else ""
        return text + ("" if self.prefix else 'prefix = ""\n')


class Gateway:
    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.file, self.port = program, folder / "gateway.toml", free_port()
        self.log = folder / "gateway.log"
        self.process: asyncio.subprocess.Process | None = None

    def write(self, settings: str) -> None:
        """At once, so that no half of it is read."""
        new = self.file.with_suffix(".new")
        new.write_text(settings)
        new.rename(self.file)

    async def start(self) -> None:
        words = [str(self.program), "gateway", f"http://127.0.0.1:{self.port}/mcp", "--config", str(self.file)]
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        await listens(self.port)

    def reloads(self) -> int:
        """How often new settings were taken."""
        text = self.log.read_text()
        return text.count("reloaded") - text.count("not reloaded")

    def resident(self) -> int:
        """Bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def children(self) -> int:
        count = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
                count += len((task / "children").read_text().split())
        return count

    async def stop(self) -> list[str]:
        self.process.terminate()
        try:
            status = await asyncio.wait_for(self.process.wait(), 20)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
            return [f"the gateway did not end 20 s after SIGTERM (see {self.log})"]
        return [f"the gateway's exit status is {status} (see {self.log})"] if status else []


async def killed(processes: list[asyncio.subprocess.Process | None]) -> None:
    """Ends those that are left."""
    for process in processes:
        if process and process.returncode is None:
            process.kill()
            await process.wait()


async def played(front: Gateway, servers: list[Server], tally: Tally, play: Callable[[], Awaitable[list[str]]]) -> list[str]:
    """What is wrong when `play` has gone on before the gateway and its servers, and they have ended."""
    try:
        await asyncio.gather(*(server.start() for server in servers))
        await front.start()
        problems = await play()
        problems += await front.stop()
    finally:
        await killed([front.process, *(server.process for server in servers)])
    problems += first([f"misplaced: {story}" for story in tally.misplaced])
    return problems + first(accounts(servers, tally.answered))


def accounts(servers: list[Server], answered: list[str]) -> list[str]:
    """What the ledgers of the servers say against the gateway: calls that came twice, that never ended, or that nobody made."""
    problems: list[str] = []
    begun: dict[str, int] = {}
    for server in servers:
        alive: set[str] = set()
        for word, text in server.lines():
            match word:
                case "start" if not server.piped:
                    alive.clear()  # The process before it took these with it.
                case "call":
                    begun[text] = begun.get(text, 0) + 1
                    alive.add(text)
                case "end" | "cancelled":
                    alive.discard(text)
        if not server.piped:
            problems += [f"{server.name}: the call {text} was never ended" for text in sorted(alive)]
    problems += [f"the call {text} came {count} times" for text, count in begun.items() if count > 1]
    problems += [f"the call {text} was answered, but never came" for text in answered if text not in begun]
    return problems


def first(problems: list[str], count: int = 10) -> list[str]:
    more = [f"… and {len(problems) - count} more"] if len(problems) > count else []
    return [*problems[:count], *more]


__all__ = ["MODERN", "OLD", "ROOT", "Gateway", "Server", "accounts", "first", "free_port", "listens", "played"]
