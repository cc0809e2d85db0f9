"""`echo` on this package alone: `native.py ADDRESS [inline]`."""

import sys

from mcpbolt import Server

address, *how = sys.argv[1:]
server = Server("native", "1.0.0")


@server.tool(inline="inline" in how)
def echo(text: str) -> str:
    """Returns the text."""
    return text


server.run(address)
