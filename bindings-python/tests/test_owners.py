"""Who may use which session of an HTTP application with authorization, under many sessions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from mcpbolt.mcp._http_seam import LONG_SECONDS, MANY_SESSIONS, Owners, options
from support import coroutine


def asked(session: str | None, client: str | None = "ada", method: str = "POST") -> dict[str, Any]:
    scope: dict[str, Any] = {"method": method, "headers": [(b"mcp-session-id", session.encode())] if session else []}
    if client is not None:
        scope["user"] = AuthenticatedUser(AccessToken(token="secret", client_id=client, scopes=[]))
    return scope


async def answered(owners: Owners, scope: dict[str, Any], status: int = 200, opened: str | None = None) -> None:
    passed = []

    async def send(message: Any) -> None:
        passed.append(message)

    headers = [(b"mcp-session-id", opened.encode())] if opened else []
    start = {"type": "http.response.start", "status": status, "headers": headers}
    await owners.noting(scope, send)(start)
    assert passed == [start]


@coroutine
async def test_a_session_in_use_outlives_sessions_that_were_opened_later() -> None:
    owners = Owners(3)
    await answered(owners, asked(None), opened="first")
    for number in range(10):
        await answered(owners, asked(None, "bob"), opened=f"later {number}")
        assert owners.let(asked("first"))
        assert not owners.let(asked("first", "bob")) and not owners.let(asked("first", None))


@coroutine
async def test_sessions_that_have_ended_take_no_place() -> None:
    owners = Owners(2)
    await answered(owners, asked(None), opened="first")
    for number in range(10):
        await answered(owners, asked(None, "bob"), opened=f"later {number}")
        end = asked(f"later {number}", "bob", "DELETE")
        if number % 2:
            await answered(owners, end, 204)
        else:
            # The engine has ended it by itself.
            await answered(owners, asked(f"later {number}", "bob"), 404)
        assert not owners.let(end)
    # A refused DELETE ends nothing.
    await answered(owners, asked("first", method="DELETE"), 405)
    assert owners.let(asked("first"))


def test_the_limits_of_an_application_are_the_engines() -> None:
    """Those of the application, also where it has none."""
    for limits, expected in (
        ({"max_sessions": 7, "session_idle_timeout": 9.5, "max_request_body_size": 99}, (7, 7, 9.5, 99)),
        ({"max_sessions": None, "session_idle_timeout": None}, (MANY_SESSIONS, MANY_SESSIONS, LONG_SECONDS, None)),
        ({}, (MANY_SESSIONS, MANY_SESSIONS, LONG_SECONDS, None)),
    ):
        made = options(SimpleNamespace(**limits))
        assert (made.max_sessions, made.max_sessions_per_peer, made.session_ttl, made.max_message_bytes) == expected
