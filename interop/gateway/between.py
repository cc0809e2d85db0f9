"""A server's connection that fails in every way that one can."""

from __future__ import annotations

import asyncio
import random
import socket
import struct

from gateway import free_port, listens

# What happens to what the gateway sends, and to what the server answers.
FAULTS = ("dead", "slow", "half-open", "garbage", "huge", "reset")
PAUSE = 0.2  # seconds, for each piece of what passes slowly
HUGE = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'


class Between:
    """Passes bytes on to a server, unless a fault is set."""

    def __init__(self, far: int, seed: int) -> None:
        self.port, self.far, self.fault = free_port(), far, ""
        self.random = random.Random(seed)
        self.open: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.passes, "127.0.0.1", self.port, backlog=1024)

    async def set(self, fault: str) -> None:
        """From now on; what is open breaks off, but where the fault is that nothing is noticed."""
        was, self.fault = self.fault, fault
        if fault == "dead":
            self.server.close()
        if fault in ("dead", "reset") or was:
            for writer in list(self.open):
                writer.transport.abort()
        if was == "dead":
            await self.start()
            await listens(self.port)

    async def stop(self) -> None:
        self.server.close()
        for writer in list(self.open):
            writer.transport.abort()

    async def passes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.far)
        except OSError:
            return writer.transport.abort()
        both = {writer, far_writer}
        self.open |= both
        try:
            ways = [self.one_way(reader, far_writer, writer), self.one_way(far_reader, writer, None)]
            await asyncio.wait([asyncio.ensure_future(way) for way in ways], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.open -= both
            for one in both:
                one.transport.abort()

    async def one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter | None) -> None:
        """`back` is where requests come from."""
        try:
            while data := await reader.read(1 << 16):
                match self.fault:
                    case "slow":
                        await asyncio.sleep(PAUSE)
                    case "half-open":
                        continue
                    case "garbage" if back:
                        back.write(self.random.randbytes(self.random.randrange(1, 4000)))
                        continue
                    case "huge" if back:
                        await self.floods(back)
                        return
                    case "reset" if back:
                        # Without waiting: the other side sees a reset, not an end.
                        linger = struct.pack("ii", 1, 0)
                        back.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        return
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass

    async def floods(self, back: asyncio.StreamWriter) -> None:
        """Sends an answer without end."""
        piece = b"x" * (1 << 16)
        back.write(HUGE + b"23\r\n" + b'{"jsonrpc":"2.0","id":1,"result":{"'[:0x23].ljust(0x23) + b"\r\n")
        while self.fault == "huge":
            back.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await back.drain()
