"""`echo` on this package alone: `native.py ADDRESS [inline] [async] [logged]`."""

import logging
import sys

from mcpbolt import Call, Next, Server

address, *how = sys.argv[1:]
server = Server("native", "1.0.0")

if "async" in how:

    @server.tool
    async def echo(text: str) -> str:
        """Returns the text."""
        return text

else:

    @server.tool(inline="inline" in how)
    def echo(text: str) -> str:
        """Returns the text."""
        return text


if "logged" in how:
    logging.basicConfig(level=logging.INFO)
    log = logging.getLogger("calls")

    @server.middleware
    async def logged(call: Call, next: Next) -> object:
        reply = await next(call)
        log.info("%s %s", call.method, call.name)
        return reply


server.run(address)
