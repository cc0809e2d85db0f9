"""The chain of the document that the profile `chain` follows: a front, middleware and an external server.

    python examples/chain.py python examples/diagnostic.py
"""

import sys
from typing import Any

from mcpbolt.chain import External, Front, Middleware, Next


class ExternalMCPServer(External):
    """The server at the end, started as a child process."""


class MiddlewareMCPServer(Middleware):
    """Sees each message as a dict on its way."""

    async def request(self, message: dict[str, Any], next: Next) -> dict[str, Any]:
        print(f"→ {message['method']}", file=sys.stderr)
        response = await next(message)
        print("← error" if "error" in response else "← result", file=sys.stderr)
        return response


class FrontMCPServer(Front):
    """The server towards the client."""


if __name__ == "__main__":
    FrontMCPServer(ExternalMCPServer(sys.argv[1:]), middleware=[MiddlewareMCPServer()]).run()
