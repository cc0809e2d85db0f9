"""Tests that the authorization server of logins.py refuses what it must, so that a login that it accepts means
something.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
import time
import unittest
import urllib.error
import urllib.request
from email.message import Message
from urllib.parse import parse_qs, urlencode, urlsplit

import install
import jwt
import logins
from cryptography.hazmat.primitives.asymmetric import ec

sys.path.insert(0, str(logins.HERE))
import browser

CALLBACK = "http://127.0.0.1:9/callback"
RESOURCE = "http://127.0.0.1:9/mcp"
RESOURCE_SERVER = ("resource-server", "secret-of-the-resource-server")


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class TheProvider(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        install.CACHE.joinpath("run").mkdir(exist_ok=True)
        cls.at = logins.provider(install.CACHE / "run" / "test_provider.log")
        cls.provider = cls.at.__enter__()
        cls.addClassCleanup(cls.at.__exit__, None, None, None)

    def post(self, path: str, headers: dict[str, str] = {}, **form: str) -> tuple[int, dict, Message]:
        request = urllib.request.Request(self.provider.issuer + path, urlencode(form).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"{}"), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, json.load(error), error.headers

    def grant(self, headers: dict[str, str] = {}, **form: str) -> dict:
        status, answer, _ = self.post("/token", headers, **form)
        self.assertEqual(status, 200, answer)
        return answer

    def refusal(self, **form: str) -> str:
        status, answer, _ = self.post("/token", **form)
        self.assertEqual(status, 400, answer)
        return answer["error"]

    def client(self) -> str:
        about = {
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
        }
        body = json.dumps(about).encode()
        request = urllib.request.Request(f"{self.provider.issuer}/reg", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["client_id"]

    def code(self, client: str, verifier: str, resource: str = RESOURCE) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": CALLBACK,
            "scope": "mcp:read",
            "code_challenge": digest,
            "code_challenge_method": "S256",
            "state": "s",
            "resource": resource,
        }
        url = browser.open_url(f"{self.provider.issuer}/auth?{urlencode(query)}", CALLBACK)
        answer = parse_qs(urlsplit(url).query)
        self.assertEqual((answer["state"], answer["iss"]), (["s"], [self.provider.issuer]))
        return answer["code"][0]

    def log_in(self, client: str, headers: dict[str, str] = {}, resource: str = RESOURCE) -> dict:
        verifier = secrets.token_urlsafe(32)
        code = self.code(client, verifier, resource)
        form = {"code": code, "redirect_uri": CALLBACK, "client_id": client, "code_verifier": verifier}
        return self.grant(headers, grant_type="authorization_code", resource=resource, **form)

    def introspect(self, token: str) -> dict:
        return self.post("/token/introspection", basic(*RESOURCE_SERVER), token=token)[1]

    def test_a_code_needs_its_verifier(self) -> None:
        client = self.client()
        form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "client_id": client}
        code = self.code(client, "right" * 10)
        self.assertEqual(self.refusal(code=code, code_verifier="wrong" * 10, **form), "invalid_grant")
        self.assertLessEqual({code, "wrong" * 10}, {*self.provider.secrets()})

    def test_a_refresh_token_works_once_and_ends_the_login_when_it_is_used_again(self) -> None:
        client = self.client()
        form = {"grant_type": "refresh_token", "client_id": client}
        first = self.log_in(client)["refresh_token"]
        second = self.grant(refresh_token=first, **form)["refresh_token"]
        self.assertNotEqual(first, second)
        third = self.grant(refresh_token=second, **form)["refresh_token"]
        self.assertLessEqual({first, second, third}, {*self.provider.secrets()})
        self.assertEqual(self.refusal(refresh_token=first, **form), "invalid_grant")
        self.assertEqual(self.refusal(refresh_token=third, **form), "invalid_grant")

    def test_signed_tokens_are_for_one_resource_and_keys_change(self) -> None:
        client = self.client()
        before = self.log_in(client)["access_token"]
        self.provider.control(rotate=True)
        after = self.log_in(client)["access_token"]
        kids = [jwt.get_unverified_header(token)["kid"] for token in (before, after)]
        self.assertNotEqual(*kids)
        keys = jwt.PyJWKClient(f"{self.provider.issuer}/jwks")
        for token in (before, after):
            key = keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, ["ES256"], audience=RESOURCE, issuer=self.provider.issuer)
            self.assertEqual((claims["sub"], claims["scope"]), ("user", "mcp:read"))
            with self.assertRaises(jwt.InvalidAudienceError):
                jwt.decode(token, key, ["ES256"], audience=RESOURCE + "/other")

    def test_opaque_tokens_are_introspected_until_they_are_revoked(self) -> None:
        client = self.client()
        token = self.log_in(client, resource=f"{RESOURCE}/opaque")["access_token"]
        told = self.introspect(token)
        self.assertEqual((told["active"], told["aud"], told["sub"]), (True, f"{RESOURCE}/opaque", "user"))
        self.assertEqual(self.post("/token/revocation", token=token, client_id=client)[0], 200)
        self.assertEqual(self.introspect(token), {"active": False})

    def test_a_device_waits_for_its_user(self) -> None:
        asked = {"client_id": "device", "scope": "mcp:read", "resource": RESOURCE}
        _, device, _ = self.post("/device/auth", **asked)
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "device_code": device["device_code"],
            "client_id": "device",
        }
        self.assertEqual(self.refusal(**form), "authorization_pending")
        browser.open_url(device["verification_uri_complete"])
        self.assertIn("access_token", self.grant(**form))

    def test_a_machine_has_its_secret(self) -> None:
        form = {"grant_type": "client_credentials", "scope": "mcp:read", "resource": RESOURCE}
        self.assertIn("access_token", self.grant(basic("machine", "secret-of-the-machine"), **form))
        self.assertEqual(self.post("/token", basic("machine", "wrong"), **form)[0], 401)

    def test_proofs_need_the_nonce(self) -> None:
        self.provider.control(nonce=True)
        self.addCleanup(self.provider.control, nonce=False)
        client, key = self.client(), ec.generate_private_key(ec.SECP256R1())
        numbers = key.public_key().public_numbers()
        coordinates = {name: getattr(numbers, name).to_bytes(32, "big") for name in "xy"}
        coordinates = {name: base64.urlsafe_b64encode(one).rstrip(b"=").decode() for name, one in coordinates.items()}
        header = {"typ": "dpop+jwt", "jwk": {"kty": "EC", "crv": "P-256", **coordinates}}

        def proof(**more: str) -> dict[str, str]:
            target = {"htm": "POST", "htu": f"{self.provider.issuer}/token"}
            claims = {"jti": secrets.token_hex(8), "iat": int(time.time()), **target, **more}
            return {"DPoP": jwt.encode(claims, key, "ES256", header)}

        verifier = "v" * 50
        form = {
            "grant_type": "authorization_code",
            "code": self.code(client, verifier),
            "redirect_uri": CALLBACK,
            "client_id": client,
            "code_verifier": verifier,
            "resource": RESOURCE,
        }
        status, answer, headers = self.post("/token", proof(), **form)
        self.assertEqual((status, answer["error"]), (400, "use_dpop_nonce"))
        tokens = self.grant(proof(nonce=headers["DPoP-Nonce"]), **form)
        self.assertEqual(tokens["token_type"], "DPoP")
        claims = jwt.decode(tokens["access_token"], options={"verify_signature": False})
        self.assertIn("jkt", claims["cnf"])
