"""`Policy(consent_proxy=…)`: a login of a client that registers itself, at a provider that knows one application."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import http.client
import http.server
import json
import re
import socket
import threading
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mcpbolt import ConsentProxy, Context, Policy, ResourceServer, Server, Upstream
from support import coroutine

SECRET = "a secret that is 32 characters or more"
REDIRECT = "https://client.example/back"
VERIFIER = "a-verifier-of-a-client-that-is-long-enough-to-be-one"


class Provider(http.server.BaseHTTPRequestHandler):
    """The token endpoint: one code is good."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        is_good = form["code"] == ["of-alice"] and self.headers["Authorization"].startswith("Basic ")
        claims = base64.urlsafe_b64encode(b'{"sub":"alice"}').decode().rstrip("=")
        tokens = {"access_token": "hidden", "token_type": "Bearer", "id_token": f"e30.{claims}.c2ln"}
        body = json.dumps(tokens if is_good else {"error": "invalid_grant"}).encode()
        self.send_response(200 if is_good else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def free_address() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def log_in(at: str) -> tuple[str, str]:
    """Registers, logs in as a browser does, and returns an access token and what the user was asked."""
    cookies: dict[str, str] = {}

    def ask(method: str, path: str, body: str | None = None, kind: str = "application/x-www-form-urlencoded") -> tuple[str, str]:
        connection = http.client.HTTPConnection(at, timeout=20)
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        connection.request(method, path, body, {"Content-Type": kind, "Cookie": cookie})
        answer = connection.getresponse()
        text = answer.read().decode()
        for said in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = said.partition(";")[0].partition("=")
            cookies[name] = value
        connection.close()
        assert answer.status < 400, text
        return text, answer.headers["Location"] or ""

    said = json.dumps({"redirect_uris": [REDIRECT], "client_name": "A client"})
    client = json.loads(ask("POST", "/register", said, "application/json")[0])["client_id"]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": REDIRECT,
        "state": "s",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": f"http://{at}/mcp",
    }
    page, _ = ask("GET", f"/authorize?{urlencode(asked)}")
    sealed = re.search(r'name="request" value="([^"]*)"', page)
    assert sealed
    _, provider = ask("POST", "/consent", urlencode({"request": html.unescape(sealed[1]), "answer": "allow"}))
    state = parse_qs(urlsplit(provider).query)["state"][0]
    _, back = ask("GET", f"/callback?{urlencode({'code': 'of-alice', 'state': state})}")
    assert back.startswith(REDIRECT)
    code = parse_qs(urlsplit(back).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "client_id": client, "code_verifier": VERIFIER}
    tokens, _ = ask("POST", "/token", urlencode(form | {"redirect_uri": REDIRECT}))
    assert "hidden" not in tokens
    return json.loads(tokens)["access_token"], page


@coroutine
async def test_a_client_that_registers_itself_logs_in() -> None:
    """R-CHN-20"""
    provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    login, at = f"http://127.0.0.1:{provider.server_address[1]}", free_address()
    proxy = ConsentProxy(
        f"http://{at}",
        f"http://{at}/mcp",
        secret=SECRET,
        upstream=Upstream(f"{login}/authorize", f"{login}/token", "known", client_secret="s3cret"),
        name="Notes & more",
        scopes=["notes"],
        token_lifetime=600,
    )
    assert "s3cret" not in repr(proxy) and SECRET not in repr(proxy)
    policy = Policy(consent_proxy=proxy, scopes={"whoami": ["notes"]}, verifier=lambda credentials: None)
    server = Server("notes", "1", actions=True, policy=policy)

    @server.tool
    def whoami(context: Context) -> str:
        return str(context.principal)

    def call(authorization: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(at, timeout=20)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": authorization}
        connection.request("POST", "/mcp", json.dumps({"action": "whoami", "params": {}}), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    try:
        async with server.listening(f"http://{at}/mcp"):
            token, page = await asyncio.to_thread(log_in, at)
            assert "Notes &amp; more" in page
            status, text = await asyncio.to_thread(call, f"Bearer {token}")
            assert (status, f"jwt:http://{at}#alice" in text) == (200, True), text
            assert (await asyncio.to_thread(call, f"Bearer {token}x"))[0] == 401
            assert (await asyncio.to_thread(call, "Basic YTpi"))[0] == 401
    finally:
        provider.shutdown()


def test_settings_that_are_wrong_are_refused() -> None:
    upstream = Upstream("https://login.example/a", "https://login.example/t", "known")
    url = "https://api.example"
    for proxy, why in [
        (ConsentProxy(url, f"{url}/mcp", secret="short", upstream=upstream), "32 bytes"),
        (ConsentProxy("http://api.example", f"{url}/mcp", secret=SECRET, upstream=upstream), "issuer"),
        (ConsentProxy(f"{url}/", f"{url}/mcp", secret=SECRET, upstream=upstream), "slash"),
    ]:
        with pytest.raises(ValueError, match=why):
            Server("notes", "1", policy=Policy(consent_proxy=proxy))._catalog()
    with pytest.raises(ValueError, match="in place of|takes the place"):
        resource = ResourceServer(f"{url}/mcp", issuers=["https://a.example"])
        Policy(consent_proxy=ConsentProxy(url, f"{url}/mcp", secret=SECRET, upstream=upstream), resource=resource)
