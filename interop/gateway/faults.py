"""Servers that fail in every way, behind one gateway: every call ends once and in time, other servers do not notice, and
all is as before when the fault is over.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path

import gateway
from between import FAULTS, Between
from gateway import MODERN, OLD, Gateway, Server
from near import DEADLINE, Broken, Near, Tally

TIMEOUT = 1  # seconds that the gateway waits for the server that fails: ten times that for a call in all
SLACK = 10
CLIENTS = 4  # of each era
# Bytes by which the gateway may grow over everything here. Clients of the older era have a connection to each server of their own, the
# others share one: each may hold a message of 16 MiB, and twice that while its buffer grows.
GROWTH = (CLIENTS + 1) * (32 << 20)
FROM = "test://sick/r/1"


@dataclass
class Faults:
    program: Path
    seed: int
    seconds: float = 0.6  # for each fault
    reloads: int = 2

    async def run(self, folder: Path) -> list[str]:
        began = time.monotonic()
        sick, well, piped = Server("sick", OLD, folder), Server("well", MODERN, folder), Server("piped", OLD, folder, piped=True)
        servers = [sick, well, piped]
        between, front = Between(sick.port, self.seed), Gateway(self.program, folder)
        self.settings = sick.settings(between.port) + f"timeout = {TIMEOUT}\n" + well.settings() + piped.settings()
        front.write(self.settings)
        tally = Tally()
        await between.start()
        try:
            problems = await gateway.played(front, servers, tally, lambda: self.play(front, between, sick, tally))
        finally:
            await between.stop()
        print(f"faults: {dict(tally.ended)} in {time.monotonic() - began:.1f} s")
        return problems

    async def play(self, front: Gateway, between: Between, sick: Server, tally: Tally) -> list[str]:
        nears = [Near(number, (OLD, MODERN)[number % 2], front.port, tally, self.seed) for number in range(2 * CLIENTS)]
        await asyncio.gather(*(near.open([FROM]) for near in nears))
        problems = await self.heard_by(nears)
        _, quiet, _ = await self.loaded(nears, "well")
        before = front.resident()
        print(f"  {'no fault':<10} p99 of the others {quiet * 1000:6.1f} ms")
        for fault in (*FAULTS, "restart"):
            if fault == "restart":
                await sick.kill()
                await sick.start()
            else:
                await between.set(fault)
            (longest, _, missed), (_, p99, _) = await asyncio.gather(self.loaded(nears, "sick"), self.loaded(nears, "well"))
            await between.set("")
            back = await self.back(nears, fault)
            problems += back if isinstance(back, list) else []
            print(
                f"  {fault:<10} p99 of the others {p99 * 1000:6.1f} ms, {p99 / quiet:4.1f} times as before; longest call to it {longest:.2f} s; "
                f"{front.resident() >> 20} MiB, {front.children()} children"
            )
            # What is slow is answered in time, and a restart may fall between two calls.
            if not missed and fault not in ("slow", "restart"):
                problems.append(f"{fault}: had no effect: every call was answered")
            # A call that waits for a connection may use all of its time, and its client hears of that a moment later.
            if longest > TIMEOUT * SLACK + 1:
                problems.append(f"{fault}: a call took {longest:.1f} s")
            problems += await self.heard_by(nears)
        problems += await self.reloaded(front, nears)
        problems += await self.children(front, nears)
        grown = front.resident() - before
        print(f"  the gateway has grown by {grown >> 20} MiB")
        if grown > GROWTH:
            problems.append(f"the gateway has grown by {grown >> 20} MiB, more than {GROWTH >> 20}")
        await asyncio.gather(*(near.close() for near in nears), return_exceptions=True)
        return problems

    async def loaded(self, nears: list[Near], name: str) -> tuple[float, float, int]:
        """Calls of all clients, one after another, for some time. Returns the longest, the p99, and how many were not answered."""
        took: list[float] = []
        missed = 0

        async def calls(near: Near) -> None:
            nonlocal missed
            until = time.monotonic() + self.seconds
            while (now := time.monotonic()) < until:
                ended = await self.one(near, name)
                took.append(time.monotonic() - now)
                missed += ended != "answered"
                if name == "well" and ended != "answered":
                    near.tally.wrong(f"client {near.number}: a call to a healthy server {ended}: {dict(near.tally.failed)}")

        await asyncio.gather(*map(calls, nears))
        took.sort()
        return took[-1], took[len(took) * 99 // 100], missed

    async def one(self, near: Near, name: str) -> str:
        text = f"{near.number}.{name}.{near.last}.{time.monotonic_ns()}"
        try:
            async with asyncio.timeout(TIMEOUT * SLACK * SLACK):
                ended = await near.call(f"{name}_echo", text, name)
        except (TimeoutError, Broken) as error:
            near.tally.wrong(f"client {near.number}, {text}: {error!r}")
            ended = "hung"
        near.tally.ended[ended] += 1
        return ended

    async def back(self, nears: list[Near], fault: str) -> list[str]:
        """Waits until every client has an answer of the server again."""
        until = time.monotonic() + 60
        for near in nears:
            while await self.one(near, "sick") != "answered":
                if time.monotonic() > until:
                    return [f"{fault}: the server is well again, but client {near.number} ({near.revision}) has no answer"]
                await asyncio.sleep(0.05)
        return []

    async def heard_by(self, nears: list[Near]) -> list[str]:
        """Whether each subscription tells of changes."""
        for near in nears:
            near.heard.clear()
        until, count = time.monotonic() + 60, 0
        while deaf := [near for near in nears if not near.heard[FROM]]:
            if time.monotonic() > until:
                return [f"{len(deaf)} clients do not hear of {FROM} any more, such as {deaf[0].number} ({deaf[0].revision})"]
            count += 1
            await nears[0].call("sick_touch", f"touch.{time.monotonic_ns()}", "sick", uri="test://r/1")
            await asyncio.sleep(0.05)
        return []

    async def reloaded(self, front: Gateway, nears: list[Near]) -> list[str]:
        """The settings change while calls run: none is lost."""
        adder = self.program.parent / "examples" / "adder"
        more = f"[servers.more]\ncommand = [{json.dumps(str(adder))}]\n"
        done = asyncio.Event()

        async def calls(near: Near) -> int:
            count = 0
            while not done.is_set():
                count += 1
                if (ended := await self.one(near, "well")) != "answered":
                    near.tally.wrong(f"client {near.number}: a call while the settings change {ended}")
            return count

        before, began = front.resident(), time.monotonic()
        running = [asyncio.ensure_future(calls(near)) for near in nears]
        for number in range(self.reloads):
            front.write(self.settings + more * (number % 2 == 0))
            until = time.monotonic() + 20
            while front.reloads() < number + 1 and time.monotonic() < until:
                await asyncio.sleep(0.05)
            if number == 0:
                await self.added(front, nears[0].tally)
        done.set()
        counts = await asyncio.gather(*running)
        reloads = front.reloads()
        print(
            f"  {reloads} reloads and {sum(counts)} calls in {time.monotonic() - began:.0f} s; "
            f"{before >> 20} MiB before, {front.resident() >> 20} after"
        )
        return [] if reloads == self.reloads else [f"{reloads} of {self.reloads} changes of the settings were read"]

    async def added(self, front: Gateway, tally: Tally) -> None:
        """Calls the tool of a server that came with new settings."""
        near = Near(99, MODERN, front.port, tally, self.seed)
        call = near.request("tools/call", {"name": "more_add", "arguments": {"a": 1, "b": 2}})
        answer = await asyncio.wait_for(near.exchange(call, "more_add"), DEADLINE)
        if answer.get("result", {}).get("content", [{}])[0].get("text") != "3":
            tally.wrong(f"a server of new settings: {answer}")
        await near.close()

    async def children(self, front: Gateway, nears: list[Near]) -> list[str]:
        """Each session has a process of its own, for as long as it lasts."""
        before = front.children()
        more = [Near(100 + number, OLD, front.port, nears[0].tally, self.seed) for number in range(8)]
        await asyncio.gather(*(near.open([]) for near in more))
        await asyncio.gather(*(self.one(near, "piped") for near in more))
        most = front.children()
        await asyncio.gather(*(near.close() for near in more))
        until = time.monotonic() + 30
        while (left := front.children()) > before and time.monotonic() < until:
            await asyncio.sleep(0.05)
        print(f"  {before} children, {most} with {len(more)} more sessions, {left} after them")
        problems = [f"{left} children are left of {most}, not {before}"] if left > before else []
        return problems + ([f"{most} children for {len(more)} sessions"] if most > before + len(more) else [])
