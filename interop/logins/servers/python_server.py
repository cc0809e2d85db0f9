"""A resource server on the official Python SDK: one tool, `whoami`. A URL that ends in `/opaque` asks the
authorization server about each token, any other reads signed ones.

    python python_server.py ISSUER URL
"""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

ISSUER, URL = sys.argv[1:]
SCOPES = ["mcp:read"]


def read(token: str, keys: jwt.PyJWKClient) -> dict | None:
    try:
        key = keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["ES256"], audience=URL, issuer=ISSUER)
    except jwt.PyJWTError:
        return None


class Verifier:
    keys = jwt.PyJWKClient(f"{ISSUER}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        if URL.endswith("/opaque"):
            async with httpx2.AsyncClient() as http:
                asked = {"token": token}
                credentials = ("resource-server", "secret-of-the-resource-server")
                claims = (await http.post(f"{ISSUER}/token/introspection", data=asked, auth=credentials)).json()
                claims = claims if claims["active"] and claims["aud"] == URL else None
        else:
            claims = await anyio.to_thread.run_sync(read, token, self.keys)
        if not claims:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims.get("sub"),
        )


settings = AuthSettings(issuer_url=ISSUER, resource_server_url=URL, required_scopes=SCOPES, validate_token_resource=True)
server = MCPServer("logins", auth=settings, token_verifier=Verifier())


@server.tool()
def whoami() -> str:
    """Says who asks."""
    token = get_access_token()
    return f"{token.subject or token.client_id}: {' '.join(token.scopes)}"


place = urlsplit(URL)
server.run("streamable-http", host=place.hostname, port=place.port, streamable_http_path=place.path)
