"""Logs in with the client of the official Python SDK and calls `whoami` twice, after a pause of
`MCPBOLT_PAUSE` seconds. Prints both answers.

    python python_client.py URL
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

sys.path.insert(0, str(Path(__file__).parent.parent))
import browser

CALLBACK = "http://127.0.0.1:9/callback"


class Kept:
    """Keeps a login in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def main() -> None:
    url = sys.argv[-1]
    redirects: list[str] = []

    async def opened(address: str) -> None:
        redirects.append(await anyio.to_thread.run_sync(browser.open_url, address, CALLBACK))

    async def called_back() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(redirects[-1]).query)
        return AuthorizationCodeResult(**{name: query[name][0] for name in ("code", "state", "iss") if name in query})

    about = OAuthClientMetadata(client_name="python", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    login = OAuthClientProvider(url, about, Kept(), opened, called_back)
    async with httpx2.AsyncClient(auth=login, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            print((await client.call_tool("whoami", {})).content[0].text)
            await anyio.sleep(float(os.environ.get("MCPBOLT_PAUSE", "0")))
            print((await client.call_tool("whoami", {})).content[0].text)


anyio.run(main)
