"""An official Python client of 2026-07-28, for ../mixed.py: `python mixed.py ADDRESS CALLS`."""

import json
import sys
from collections.abc import Iterator

import anyio
from mcp import Client

IN_FLIGHT = 16
ADDRESS, CALLS = sys.argv[1], int(sys.argv[2])


async def main() -> None:
    right, wrong = 0, None

    async def work(client: Client, numbers: Iterator[int]) -> None:
        nonlocal right, wrong
        for number in numbers:
            text = f"python {number} é 漢字"
            result = await client.call_tool("echo", {"text": text})
            if [block.text for block in result.content] == [text]:
                right += 1
            else:
                wrong = wrong or f"{text}: {result}"

    async with Client(ADDRESS) as client:
        if client.protocol_version != "2026-07-28":
            sys.exit(f"it speaks {client.protocol_version}")
        for half in (range(CALLS // 2), range(CALLS // 2, CALLS)):
            print("ready", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            numbers = iter(half)
            async with anyio.create_task_group() as group:
                for _ in range(IN_FLIGHT):
                    group.start_soon(work, client, numbers)
        print(json.dumps({"right": right, "wrong": wrong}))


anyio.run(main)
