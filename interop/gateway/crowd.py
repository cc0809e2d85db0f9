"""Many clients with equal ids, tokens and URIs through one gateway: nothing comes to the wrong place, while calls are
cancelled, clients leave, and servers restart.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path

import gateway
from gateway import MODERN, OLD, Gateway, Server
from near import DEADLINE, URIS, Broken, Near, Tally

IN_FLIGHT = 100  # calls at once: more would wait for this process, which is one of Python's
OPENING = 8  # clients that open at once
# What errors may say of a server that restarts.
EXCUSED = ("upstream_unavailable", "upstream_timeout")


@dataclass
class Crowd:
    """How many clients, how many of them with a session, how many calls and restarts in all."""

    program: Path
    seed: int
    clients: int = 24
    sessions: int = 6
    calls: int = 600
    restarts: int = 4

    async def run(self, folder: Path) -> list[str]:
        servers = [
            Server("piped", MODERN, folder, piped=True, isolation="shared"),
            Server("old", OLD, folder),
            Server("new", MODERN, folder),
            Server("plain", "2025-06-18", folder),
        ]
        between = Gateway(self.program, folder)
        between.write("".join(server.settings() for server in servers))
        tally, began = Tally(), time.monotonic()
        problems = await gateway.played(between, servers, tally, lambda: self.play(between, servers, tally))
        excused = sum(count for said, count in tally.failed.items() if any(word in said for word in EXCUSED))
        problems += [f"{count} calls: {said}" for said, count in tally.failed.items() if not any(word in said for word in EXCUSED)]
        if tally.ended["answered"] < self.calls * 0.5:
            problems.append(f"only {tally.ended['answered']} of {self.calls} calls were answered")
        print(
            f"{self.clients} clients ({self.sessions} with a session), seed {self.seed}: {dict(tally.ended)}, "
            f"{excused} of them excused by a restart, {tally.updates} updates, {len(tally.misplaced)} at the wrong place; "
            f"{time.monotonic() - began:.1f} s"
        )
        return problems

    async def play(self, between: Gateway, servers: list[Server], tally: Tally) -> list[str]:
        chance = random.Random(self.seed)
        nears = []
        for number in range(self.clients):
            revision = OLD if number < self.sessions else MODERN
            nears.append(Near(number, revision, between.port, tally, self.seed))
        room = asyncio.Semaphore(IN_FLIGHT)

        door = asyncio.Semaphore(OPENING)

        async def opened(near: Near) -> None:
            async with door:
                await near.open(sorted({server.uri(f"r/{near.random.randrange(URIS)}") for server in servers}))

        await asyncio.gather(*map(opened, nears))
        each = [self.calls // self.clients + (number < self.calls % self.clients) for number in range(self.clients)]
        done = asyncio.Event()
        restarts = asyncio.ensure_future(self.restarted(servers, tally, chance, done))
        ended = await asyncio.gather(*(self.plays(near, count, servers, room) for near, count in zip(nears, each)), return_exceptions=True)
        done.set()
        problems = [f"a client: {error!r}" for error in ended if isinstance(error, BaseException)] + await restarts
        problems += await self.hear_again(nears, servers)
        await asyncio.gather(*(near.close() for near in nears), return_exceptions=True)
        return gateway.first(problems)

    async def restarted(self, servers: list[Server], tally: Tally, chance: random.Random, done: asyncio.Event) -> list[str]:
        """Ends a server each time that a part of the calls is over."""
        for number in range(1, self.restarts + 1):
            while tally.ended.total() < self.calls * number / (self.restarts + 1):
                if done.is_set():
                    return [f"only {number - 1} restarts"]
                await asyncio.sleep(0.01)
            server = servers[(number - 1) % len(servers)] if number <= len(servers) else chance.choice(servers)
            await server.kill()
            await server.start()
        return []

    async def plays(self, near: Near, count: int, servers: list[Server], room: asyncio.Semaphore) -> None:
        """The calls of one client, one after another, each with its own text."""
        for number in range(count):
            server = near.random.choice(servers)
            text = f"{near.number}.{number}"
            kind = near.random.choices(["echo", "slow", "ask", "cancel", "leave", "touch"], [50, 20, 15, 7, 5, 1])[0]
            async with room:
                near.tally.ended[await self.one(near, server, kind, text)] += 1

    async def one(self, near: Near, server: Server, kind: str, text: str) -> str:
        tool, name = server.prefix, server.name
        try:
            async with asyncio.timeout(DEADLINE):
                match kind:
                    case "slow":
                        return await near.call(f"{tool}slow", text, name, steps=3, ms=2)
                    case "cancel":
                        return await near.call(f"{tool}slow", text, name, steps=4, ms=10, leave_after=near.random.randrange(1, 3))
                    case "leave":
                        for _, writer, _ in near.idle:
                            writer.close()
                        near.idle.clear()
                        gone = asyncio.ensure_future(near.call(f"{tool}slow", text, name, steps=4, ms=5))
                        await asyncio.sleep(near.random.random() * 0.01)
                        gone.cancel()
                        await asyncio.wait([gone])
                        return "left"
                    case "touch":
                        return await near.call(f"{tool}touch", text, name, uri=f"test://r/{near.random.randrange(URIS)}")
                    case _:
                        return await near.call(tool + kind, text, name)
        except TimeoutError:
            near.tally.wrong(f"client {near.number}: {kind} {text} of {name} did not end in {DEADLINE} s")
            return "hung"
        except Broken as error:
            near.tally.wrong(f"client {near.number}: {kind} {text} of {name}: {error}")
            return "broken"

    async def hear_again(self, nears: list[Near], servers: list[Server]) -> list[str]:
        """Every subscription tells of changes, those of servers that restarted, too."""
        problems = []
        for server in servers:
            uri = server.uri("r/0")
            waiting = deaf = [near for near in nears if uri in near.uris]
            for near in waiting:
                near.heard[uri] = 0
            until, count = time.monotonic() + DEADLINE, 0
            while deaf and time.monotonic() < until:
                count += 1
                await nears[-1].call(f"{server.prefix}touch", f"again.{server.name}.{count}", server.name, uri="test://r/0")
                await asyncio.sleep(0.05)
                deaf = [near for near in waiting if not near.heard[uri]]
            if deaf:
                problems.append(f"{len(deaf)} of {len(waiting)} clients do not hear of {uri} any more, such as {deaf[0].number} ({deaf[0].revision})")
        return problems
