"""Settings of a server: its policy, its limits and the keys of its tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._core import to_json
from ._failures import Failures
from ._options import Options, options

if TYPE_CHECKING:
    from ._core import Context, Telemetry
    from ._call import Middleware
    from ._consent import ConsentProxy
    from ._resource import ResourceServer
    from ._results import ClientInfo
    from ._skills import SkillFolder
    from ._verifier import Verifier

    Hook = Callable[[ClientInfo], object]
    Approve = Callable[[str, dict[str, Any], Context], bool | Awaitable[bool]]
    Clean = Callable[[str, dict[str, Any], Context], dict[str, Any] | Awaitable[dict[str, Any]]]


class TaskLimits(Options):
    """How many tasks a server keeps, how large and for how long. Arguments left out take the engine's defaults.

    Args:
        tasks: The most tasks kept, ended ones included. Beyond it, a call runs without a task or is
            refused. 1024 by default.
        per_owner: The most tasks of one principal or, for unverified clients, of one address; 256 by default.
            The results of one owner may take the same share of `bytes`.
        bytes: The most bytes of all results together.
        ttl: The most seconds that a task is kept, from its creation.
        poll_interval: Seconds that clients are told to wait between two polls.
    """

    __slots__ = ("tasks", "per_owner", "bytes", "ttl", "poll_interval")

    def __init__(
        self,
        *,
        tasks: int | None = None,
        per_owner: int | None = None,
        bytes: int | None = None,
        ttl: float | None = None,
        poll_interval: float | None = None,
    ) -> None:
        self.tasks = tasks
        self.per_owner = per_owner
        self.bytes = bytes
        self.ttl = ttl
        self.poll_interval = poll_interval


class References(Options):
    """When answers of the action dialect refer to their data instead of containing it. Clients fetch such data in
    parts, by `mcp.get_data`. At most 64 MiB are kept in all, and the oldest are dropped first. Data longer than that,
    and the data of batches, are always sent whole.

    Args:
        over_bytes: Data longer than this, in bytes, is sent as a reference.
        ttl: Seconds that the data is kept.
    """

    __slots__ = ("over_bytes", "ttl")

    def __init__(self, over_bytes: int, *, ttl: float = 60.0) -> None:
        self.over_bytes = over_bytes
        self.ttl = ttl


JwtAlgorithm = Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"]


def jwt_keys(keys: Mapping[str, tuple[JwtAlgorithm, str]]) -> dict[str, dict[str, str]]:
    return {kid: {"algorithm": algorithm, "key": key} for kid, (algorithm, key) in keys.items()}


class Jwt:
    """How signed tokens (JWT, RFC 7519) are verified. The principal of a token is `jwt:ISSUER#SUBJECT`, so it is
    never taken for the owner of an API key of the same name.

    A token must have an expiry (`exp`) in the future, and the issuer and audience given here. `exp`, `nbf` and `iat`
    must be numbers. Clocks may differ by 60 s.

    Args:
        algorithm: The signature algorithm of the tokens.
        key: The shared secret, or the public key in PEM. A secret has at least 32 bytes for HS256, 48 for HS384, 64
            for HS512.
        issuer: The issuer (`iss`) that tokens must have, or a list of accepted ones.
        audience: The audience (`aud`) that tokens must have, or a list of accepted ones: the address by which
            clients know this server.
        keys: Further keys by their id. A token is verified with the key of its `kid`, otherwise with `key`, if there
            is one. With `keys`, `algorithm` and `key` may be left out.
        any_issuer: Accepts tokens of any issuer, and tokens without one.
        any_audience: Accepts tokens for any audience, and tokens without one. This includes tokens issued for another
            server, which that server can then use here.

    Raises:
        ValueError: Raised when a server gets these settings, if a key does not fit its algorithm, a secret is too
            short, or the issuer or the audience is neither given nor waived.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        algorithm: JwtAlgorithm | None = None,
        key: str | None = None,
        *,
        issuer: str | Sequence[str] | None = None,
        audience: str | Sequence[str] | None = None,
        keys: Mapping[str, tuple[JwtAlgorithm, str]] = {},
        any_issuer: bool = False,
        any_audience: bool = False,
    ) -> None:
        self.wire = {
            "algorithm": algorithm,
            "key": key,
            "issuer": issuer,
            "audience": audience,
            "keys": jwt_keys(keys),
            "anyIssuer": any_issuer,
            "anyAudience": any_audience,
        }


class Policy:
    """Permissions, limits, authentication, masking and audit of a server, for all clients.

    Tools and resources that a client may not use do not appear in its lists and answer as if they did not exist.
    Credentials are masked in the error texts of handlers.

    Args:
        permissions: `{"tools": {"allowed": […], "denied": […]}, "resources": {…}}`. Only named items are allowed, and
            `denied` takes precedence. Tools are exact names, or `*` for all; resources are URI patterns, in which `*`
            matches anything within one segment and `**` anything. Also `maxResourceSize` (bytes),
            `maxToolExecutionTime` (milliseconds) and `toolPatterns`.
        rate: The rate limit of each client: burst size, and requests per second. A client is its principal if that is
            known, otherwise its address, whatever sessions it opens; clients on stdin and Unix sockets count as one.
        quota: How many tool calls each client may make in a period, and the period in seconds. Beyond it an action
            fails with `QUOTA_EXCEEDED`.
        tool_timeout: Seconds that a call of any tool may take.
        timeouts: Seconds that a call may take, by tool name.
        keys: The accepted API keys: the owner of each, and the scopes granted to it. With `keys`, with `jwt` or with
            both, unauthenticated requests are refused. Over HTTP credentials come in `X-API-Key` or
            `Authorization: Bearer`, and the refusal is status 401; elsewhere they come in `auth` of an action's
            metadata or of a request's `_meta`: `{"type": "api_key", "key": …}`, `{"type": "bearer", "token": …}`.
        jwt: How signed tokens are accepted: `sub` is the client, `scope` its granted scopes. Handlers see the owner of
            an API key as `key:NAME`, the bearer of a token as `jwt:ISSUER#SUB`.
        verifier: Says who a client is, in place of `keys` and `jwt`: called with the `Credentials` of each request (of each
            connection, for WebSockets), it returns a `Principal` or its name, or `None` to refuse them. A plain function runs on
            a worker thread, a coroutine function as a task of the event loop, which is cancelled when the client goes. Other
            requests do not wait for it. An exception is logged, and is no verdict: over HTTP the client gets status 503
            and comes again, where refused credentials get 401 and count as guesses. Catch what a library raises for a wrong
            token, and return `None`:

                try:
                    return jwt.decode(credentials.secret, KEY, algorithms=["HS256"])["sub"]
                except jwt.InvalidTokenError:
                    return None
        verifier_timeout: Seconds that `verifier` may take for a request, 10 by default. Then there is no verdict.
        scopes: The scopes that a tool requires, by tool name. A client that lacks one is told which, over HTTP with
            status 403.
        resource_scopes: The scopes that a resource requires, by pattern of URIs, as in `permissions`.
        prompt_scopes: The scopes that a prompt requires, by prompt name.
        implied_scopes: The narrower scopes that a scope implies, by the broader one. Scopes imply nothing by their names.
        filter_lists: Whether lists omit the tools, resources and prompts for which the caller lacks scopes. By default they
            show them, so that a client can see what it may ask for.
        resource: Makes the server a resource server of OAuth. A `verifier` beside it verifies other credentials, and
            tokens, too, unless the keys or the introspection of an issuer are set.
        consent_proxy: An authorization server as part of this server, in place of `resource`, in front of an identity
            provider that knows no registration of clients. A `verifier` beside it verifies credentials other than tokens.
        secrets: Strings that are masked wherever they appear.
        audit: Called with a dict for each call, read, prompt, completion and subscription when it is answered:
            `method`, `name`, `principal`, `id`, `revision`, `outcome`, `code`, `message`, `seconds`, `arguments`,
            `dropped`. It runs on a thread of its own, for one event at a time.
        audit_arguments: Whether events contain the arguments, with credentials masked.
        audit_queue: How many events may wait for `audit`; 10,000 by default.
        audit_when_full: What happens when that many wait. `"wait"`: answers wait, and no event is lost; the server is
            as slow as its audit. `"drop"`: events are dropped, and `dropped` of the next event says how many.
            `"refuse"`: new requests are refused as overloaded until there is room; requests in progress are still
            answered.

    Raises:
        ValueError: Raised when a server gets the policy, if an argument does not have the shape described here; at once, if
            there is a `verifier` beside `keys` or `jwt`, or only its time, or a `consent_proxy` beside `resource`.
    """

    __slots__ = ("wire", "audit", "verifier")

    def __init__(
        self,
        *,
        permissions: Mapping[str, Any] | None = None,
        rate: tuple[int, int] | None = None,
        quota: tuple[int, float] | None = None,
        tool_timeout: float | None = None,
        timeouts: Mapping[str, float] = {},
        keys: Mapping[str, tuple[str, Sequence[str]]] | None = None,
        jwt: Jwt | None = None,
        verifier: Verifier | None = None,
        verifier_timeout: float | None = None,
        scopes: Mapping[str, Sequence[str]] = {},
        resource_scopes: Mapping[str, Sequence[str]] = {},
        prompt_scopes: Mapping[str, Sequence[str]] = {},
        implied_scopes: Mapping[str, Sequence[str]] = {},
        filter_lists: bool = False,
        resource: ResourceServer | None = None,
        consent_proxy: ConsentProxy | None = None,
        secrets: Iterable[str] = (),
        audit: Callable[[dict[str, Any]], object] | None = None,
        audit_arguments: bool = False,
        audit_queue: int = 10_000,
        audit_when_full: Literal["wait", "drop", "refuse"] = "wait",
    ) -> None:
        def ms(seconds: float) -> int:
            return round(seconds * 1000)

        said: dict[str, Any] = {
            "timeouts": {tool: ms(seconds) for tool, seconds in timeouts.items()},
            "scopes": dict(scopes),
            "resourceScopes": dict(resource_scopes),
            "promptScopes": dict(prompt_scopes),
            "impliedScopes": dict(implied_scopes),
            "filterLists": filter_lists,
            "secrets": list(secrets),
            "auditArguments": audit_arguments,
            "auditQueue": {"events": audit_queue, "whenFull": audit_when_full},
        }
        if permissions is not None:
            said["permissions"] = dict(permissions)
        if rate is not None:
            said["rate"] = {"burst": rate[0], "perSecond": rate[1]}
        if quota is not None:
            said["quota"] = {"calls": quota[0], "period": ms(quota[1])}
        if keys is not None:
            said["keys"] = {key: {"client": client, "scopes": granted} for key, (client, granted) in keys.items()}
        if jwt is not None:
            said["jwt"] = jwt.wire
        if resource is not None:
            said["resource"] = resource.wire
        if consent_proxy is not None:
            if resource is not None:
                raise ValueError("consent_proxy: it takes the place of resource; pass it alone")
            said["consentProxy"] = consent_proxy.wire
        if verifier is not None and (keys is not None or jwt is not None):
            raise ValueError("verifier: it takes the place of keys and jwt; pass it alone")
        if verifier is None and verifier_timeout is not None:
            raise ValueError("verifier_timeout: it limits a verifier; pass one")
        if verifier_timeout is not None:
            said["verifierTimeout"] = ms(verifier_timeout)
        if tool_timeout is not None:
            said["toolTimeout"] = ms(tool_timeout)
        self.wire = said
        self.audit = audit
        self.verifier = verifier


class Settings:
    """A server's settings as the engine reads them, and its functions, without its entries.

    Args:
        settings: The settings that are JSON values.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        approval: Mapping[str, Approve] = {},
        sanitise: Mapping[str, Clean] = {},
        on_initialized: Hook | None = None,
        on_roots_changed: Hook | None = None,
        kernel: object = None,
        failed: Failures | None = None,
        telemetry: bool = False,
        **settings: Any,
    ) -> None:
        self.json = to_json(options(policy=policy and policy.wire, **settings))
        self.audit = policy and policy.audit
        self.verifier = None
        if policy is not None and policy.verifier is not None:
            from ._verifier import Verifying

            self.verifier = Verifying(policy.verifier)
        self.telemetry: Telemetry | None = None
        if telemetry:
            from ._telemetry import telemetry as of_process

            self.telemetry = of_process().native
        self.approval = approval
        self.sanitise = sanitise
        self.middleware: list[Middleware] = []
        self.failed = failed or Failures("mcp")
        self.has_policy = policy is not None
        # Whether a front before the server enforces the policy.
        self.is_behind_front = False
        # Whether the server answers messages that only it understands, and no front.
        self.has_dialect = bool(settings.get("actions")) or settings.get("profile", "official") != "official"
        self.on_initialized = on_initialized
        self.on_roots_changed = on_roots_changed
        self.kernel = kernel
        self.skills: list[SkillFolder] = []

    @property
    def hooked(self) -> list[str]:
        """The tools that have hooks, which must exist."""
        return [*self.approval, *self.sanitise]
