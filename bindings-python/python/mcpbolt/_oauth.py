"""Logins of clients on HTTP: `Client(url, auth=OAuth(...))`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from inspect import isawaitable
from json import loads
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, Protocol

from . import _core
from ._core import to_json
from ._options import options

if TYPE_CHECKING:
    from ._event_loop import Cancellable, Future, Loop

GrantName = Literal["code", "device", "client_credentials", "workload", "enterprise"]

# The functions whose results count, by the names of the questions.
ANSWERS = {"authorize": "on_authorize", "assertion": "assertion", "load": "the store's load"}


@dataclass(frozen=True)
class AuthorizationPage:
    """The page on which the user consents. The browser comes back to `redirect_uri`, with this `state`."""

    url: str
    redirect_uri: str
    state: str


@dataclass(frozen=True)
class DeviceCode:
    """A code that the user enters on another device, within `expires_in` seconds."""

    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    expires_in: float


@dataclass(frozen=True)
class AssertionRequest:
    """The recipient of an assertion: the authorization server, and the MCP server that the token is for."""

    issuer: str
    resource: str


class CredentialStore(Protocol):
    """Keeps small secret documents by key. The functions may be coroutine functions. A store that several processes share
    has a function `lock(key)`, too: an asynchronous context manager that holds this key. Others can be held meanwhile."""

    def load(self, key: str, /) -> str | None | Awaitable[str | None]: ...
    def save(self, key: str, document: str, /) -> object: ...
    def remove(self, key: str, /) -> object: ...


class OAuth:
    """Logins of clients on HTTP: pass it as `auth`. Clients that have the same object share its logins.

    Args:
        client_name: The name that users see when they consent.
        grant: How the access token is got: "code", the user consents in a browser; "device", the user consents on another
            device; "client_credentials", the program acts for itself; "workload", the program shows a signed token of its
            platform; "enterprise", an identity provider vouches for the user.
        client_id: The client id, if the program was registered by hand.
        client_secret: The secret of `client_id`.
        issuer: The issuer of `client_id`: with any other authorization server the login fails. Without it, the secret goes to
            the authorization servers that MCP servers name until one accepts it, and then to no other as long as the store
            lasts.
        signing_key: The private key (PKCS #8 in PEM) that assertions of the client are signed with, instead of a secret.
        signing_algorithm: The algorithm of that key.
        key_id: The `kid` of that key.
        client_metadata_url: The URL of a document about this client, used as its id where servers support that.
        scopes: Scopes to ask for in addition to those that the server names.
        dpop: Whether tokens are bound to a key (DPoP); by default, if the server asks for it.
        allows_private_addresses: Whether a server on the internet may name authorization servers in a private network.
        identity_provider: For "enterprise": a dict of `token_endpoint`, `client_id` and perhaps `client_secret`.
        store: Where credentials are kept: "memory", until the process ends; "user", in files that this user's programs
            share; a folder, as a `Path`; or a `CredentialStore`.
        timeout: Seconds that the user, or a function of this object, may take; 300 by default. A coroutine is cancelled once its
            result is no longer needed.
        on_authorize: Opens an `AuthorizationPage`; by default the user's browser does. May return the address that the browser
            came back with.
        redirect_uri: The address that the browser comes back to; `on_authorize` then returns the whole address.
        on_device_code: Shows the user a `DeviceCode`.
        assertion: Called with an `AssertionRequest`; returns the token of the workload, or the user's ID token.
    """

    def __init__(
        self,
        client_name: str = "mcpbolt",
        *,
        grant: GrantName = "code",
        client_id: str | None = None,
        client_secret: str | None = None,
        issuer: str | None = None,
        signing_key: str | None = None,
        signing_algorithm: str = "ES256",
        key_id: str | None = None,
        client_metadata_url: str | None = None,
        scopes: Sequence[str] = (),
        dpop: bool | None = None,
        allows_private_addresses: bool = False,
        identity_provider: Mapping[str, str] | None = None,
        store: Literal["memory", "user"] | PathLike[str] | CredentialStore = "memory",
        timeout: float | None = None,
        on_authorize: Callable[[AuthorizationPage], str | None | Awaitable[str | None]] | None = None,
        redirect_uri: str | None = None,
        on_device_code: Callable[[DeviceCode], object] | None = None,
        assertion: Callable[[AssertionRequest], str | Awaitable[str]] | None = None,
    ) -> None:
        has = {"authorize": on_authorize, "device_code": on_device_code, "assertion": assertion}
        names = [name for name, function in has.items() if function]
        self._functions: dict[str, Callable[..., Any]] = {}
        if on_authorize:
            self._functions["authorize"] = lambda **page: on_authorize(AuthorizationPage(**page))
        if on_device_code:
            self._functions["device_code"] = lambda **code: on_device_code(DeviceCode(**code))
        if assertion:
            self._functions["assertion"] = lambda **request: assertion(AssertionRequest(**request))
        kept: Any = store
        if isinstance(store, PathLike):
            kept = {"folder": fspath(store)}
        elif not isinstance(store, str):
            kept = None
            load, save, remove = store.load, store.save, store.remove
            self._functions |= {
                "load": lambda key: load(key),
                "save": lambda key, document: save(key, document),
                "remove": lambda key: remove(key),
            }
            names.append("store")
            if lock := getattr(store, "lock", None):
                self._functions["lock"] = lock
                names.append("lock")
        first, *rest = grant.split("_")
        provider = identity_provider and options(**identity_provider)
        settings = options(
            client_name=client_name,
            grant=first + "".join(map(str.capitalize, rest)),
            client_id=client_id,
            client_secret=client_secret,
            issuer=issuer,
            signing_key=signing_key and options(pem=signing_key, algorithm=signing_algorithm, key_id=key_id),
            client_metadata_url=client_metadata_url,
            scopes=list(scopes),
            dpop=dpop,
            allows_private_addresses=allows_private_addresses,
            identity_provider=provider,
            store=kept,
            timeout=timeout,
        )
        self._loop: Loop | None = None
        self._tasks: dict[int, Cancellable] = {}
        self._locks: dict[int, Future[None]] = {}
        self.native = _core.Login(to_json(settings), redirect_uri, names, self._asked)

    def __repr__(self) -> str:
        return "OAuth(…)"

    def bind(self, loop: Loop) -> None:
        """Has the functions called on that loop, the one of the last client that was connected."""
        self._loop = loop

    def _asked(self, number: int, kind: str, params: str) -> None:
        """Called by the engine, on any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._begin, number, kind, params)
                return
        self.native.answer(number, None, "there is no event loop that could answer")

    def _begin(self, number: int, kind: str, params: str) -> None:
        loop = self._loop
        assert loop is not None
        if kind == "release":
            if (held := self._locks.pop(number, None)) and not held.done():
                held.set_result(None)
            return
        if kind == "withdrawn":
            if task := self._tasks.get(number):
                task.cancel()
            return

        async def answer() -> None:
            try:
                await self._answer(number, kind, loads(params))
            finally:
                self._tasks.pop(number, None)

        self._tasks[number] = loop.create_task(answer())

    async def _answer(self, number: int, kind: str, params: dict[str, Any]) -> None:
        try:
            if kind == "lock":
                return await self._hold(number, self._functions["lock"](params["key"]))
            function = self._functions.get(kind)
            if function is None:
                self.native.answer(number, None, f"this login has no function for that: {kind}")
                return
            answer = function(**params)
            if isawaitable(answer):
                answer = await answer
            if kind not in ANSWERS:
                answer = None
            elif answer is not None and not isinstance(answer, str):
                raise TypeError(f"{ANSWERS[kind]} returned {type(answer).__name__}, not str or None")
            self.native.answer(number, answer)
        except Exception as error:
            self.native.answer(number, None, f"{type(error).__name__}: {error}")
        except BaseException:
            self.native.answer(number, None, "the program gave up")
            raise

    async def _hold(self, number: int, lock: AbstractAsyncContextManager[object]) -> None:
        loop = self._loop
        assert loop is not None
        async with lock:
            held = self._locks[number] = loop.create_future()
            # The login may have stopped waiting for the lock.
            if not self.native.answer(number, None):
                self._locks.pop(number, None)
                return
            await held
