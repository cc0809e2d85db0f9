"""How a server is set up, beside what it offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from ._core import to_json

if TYPE_CHECKING:
    from ._entry import Entry
    from ._results import ClientInfo
    from ._skills import SkillFolder

    Hook = Callable[[ClientInfo], object]


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
        state_key: bytes | None = None,
        on_initialized: Hook | None = None,
        on_roots_changed: Hook | None = None,
        trace: str | PathLike[str] | None = None,
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
        self.state_key = state_key
        self.on_initialized = on_initialized
        self.on_roots_changed = on_roots_changed
        self.trace = trace
        self.kernel: object = None
        self.implementation: str | None = None
        self.completion_entry: Entry | None = None
        self.skills: list[SkillFolder] = []
