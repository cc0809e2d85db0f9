"""How a server is set up, beside what it offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from ._core import to_json

if TYPE_CHECKING:
    from ._core import Context
    from ._entry import Entry
    from ._results import ClientInfo
    from ._skills import SkillFolder

    Hook = Callable[[ClientInfo], object]
    Approve = Callable[[str, dict[str, Any], Context], bool | Awaitable[bool]]
    Clean = Callable[[str, dict[str, Any], Context], dict[str, Any] | Awaitable[dict[str, Any]]]


class TaskLimits:
    """How much of its tasks a server keeps. What is not said is as the engine has it.

    Args:
        tasks: Most of them, those that have ended included; what is over it stays a call, or is
            refused.
        bytes: Most bytes of all results.
        ttl: Seconds that a task is kept from its beginning, at most.
        poll_interval: Seconds between two questions, as clients are told.
    """

    __slots__ = ("tasks", "bytes", "ttl", "poll_interval")

    def __init__(
        self,
        *,
        tasks: int | None = None,
        bytes: int | None = None,
        ttl: float | None = None,
        poll_interval: float | None = None,
    ) -> None:
        self.tasks = tasks
        self.bytes = bytes
        self.ttl = ttl
        self.poll_interval = poll_interval


class References:
    """When answers of the action dialect refer to their data instead of holding them: clients have those in parts, by
    `mcp.get_data`. At most 64 MiB are kept in all, the oldest give way; what is longer still, and what batches give, is
    answered whole.

    Args:
        over_bytes: Data of more than this are referred to.
        ttl: Seconds that they are kept.
    """

    __slots__ = ("over_bytes", "ttl")

    def __init__(self, over_bytes: int, *, ttl: float = 60.0) -> None:
        self.over_bytes = over_bytes
        self.ttl = ttl


class Jwt:
    """What makes a signed token good (RFC 7519), beside that it has an end (`exp`), which is not yet; clocks may differ
    by 60 s.

    Args:
        algorithm: How it is signed.
        key: The secret of HS256, or else the public key in PEM.
        issuer: Who has to have issued it (`iss`).
        audience: Whom it has to be for (`aud`); without it, nobody in particular.
    """

    __slots__ = ("algorithm", "key", "issuer", "audience")

    def __init__(
        self,
        algorithm: Literal["HS256", "RS256", "ES256"],
        key: str,
        *,
        issuer: str | None = None,
        audience: str | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.key = key
        self.issuer = issuer
        self.audience = audience

    def wire(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in self.__slots__}


class Policy:
    """What a server allows, bounds, masks and writes down, whoever asks.

    What clients may not call or read is not there for them: no list shows it. Credentials are masked in what
    handlers say of failures.

    Args:
        permissions: `{"tools": {"allowed": […], "denied": […]}, "resources": {…}}`. Nothing is allowed but what is
            named; what is denied wins. Tools are named exactly, or `*` for all; resources are patterns of URIs, in
            which `*` stands for anything within one segment and `**` for anything. Also `maxResourceSize` (bytes),
            `maxToolExecutionTime` (milliseconds) and `toolPatterns`.
        rate: How often each client may ask: so often at once, and so often in each second.
        quota: How many calls of tools each client may make in a period, in seconds; an action beyond it fails with
            `QUOTA_EXCEEDED`.
        tool_timeout: Seconds that a call of any tool may take.
        timeouts: The same by tool.
        keys: The API keys that clients are known by: whose each is, and the scopes that were granted with it. With these,
            with `jwt` or with both, who is not known is refused: over HTTP with status 401, by `X-API-Key` and
            `Authorization: Bearer`; elsewhere by the `auth` of an action's metadata, or of the `_meta` of a request:
            `{"type": "api_key", "key": …}`, `{"type": "bearer", "token": …}`.
        jwt: The signed tokens that clients are known by: `sub` is who bears one, `scope` what was granted.
        scopes: The scopes that a tool takes, by its name. Who lacks one is told which: over HTTP with status 403.
        secrets: What is masked wherever it stands.
        audit: Called with a dict for each call, read, prompt, completion and subscription when it is answered:
            `method`, `name`, `principal`, `id`, `revision`, `outcome`, `code`, `message`, `seconds`, `arguments`. On a
            thread of its own, one after another.
        audit_arguments: Whether it is shown arguments, credentials masked.

    Raises:
        ValueError: When it is given to a server, and is not of that shape.
    """

    __slots__ = ("json", "audit")

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
        scopes: Mapping[str, Sequence[str]] = {},
        secrets: Iterable[str] = (),
        audit: Callable[[dict[str, Any]], object] | None = None,
        audit_arguments: bool = False,
    ) -> None:
        def ms(seconds: float) -> int:
            return round(seconds * 1000)

        said: dict[str, Any] = {
            "timeouts": {tool: ms(seconds) for tool, seconds in timeouts.items()},
            "scopes": dict(scopes),
            "secrets": list(secrets),
            "auditArguments": audit_arguments,
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
            said["jwt"] = jwt.wire()
        if tool_timeout is not None:
            said["toolTimeout"] = ms(tool_timeout)
        self.json = to_json(said)
        self.audit = audit


class Settings:
    """What the engine reads of a server, but for its entries. What is JSON is text."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        instructions: str | None = None,
        list_changes: bool = False,
        subscriptions: bool = False,
        page_size: int | None = None,
        cache_lists: float | None = None,
        cache_scope: str = "private",
        extensions: Mapping[str, Mapping[str, Any]] = {},
        task_limits: TaskLimits | None = None,
        references: References | None = None,
        state_key: bytes | None = None,
        on_initialized: Hook | None = None,
        on_roots_changed: Hook | None = None,
        trace: str | PathLike[str] | None = None,
        profile: str = "official",
        policy: Policy | None = None,
        approval: Mapping[str, Approve] = {},
        sanitise: Mapping[str, Clean] = {},
        experimental: Mapping[str, Mapping[str, Any]] = {},
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.list_changes = list_changes
        self.subscriptions = subscriptions
        self.page_size = page_size
        self.cache_lists = cache_lists
        self.cache_scope = cache_scope
        self.extensions = [(id, to_json(settings)) for id, settings in extensions.items()]
        self.task_limits = task_limits
        self.references = references
        self.state_key = state_key
        self.on_initialized = on_initialized
        self.on_roots_changed = on_roots_changed
        self.trace = trace
        self.profile = profile
        self.policy = policy
        self.approval = approval
        self.sanitise = sanitise
        self.looked_at = [*approval, *sanitise]
        self.experimental = [(name, to_json(settings)) for name, settings in experimental.items()]
        self.kernel: object = None
        self.implementation: str | None = None
        self.completion_entry: Entry | None = None
        self.skills: list[SkillFolder] = []
