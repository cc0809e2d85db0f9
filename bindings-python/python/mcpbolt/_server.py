"""Servers: how they are set up, and how they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from . import _core
from ._offer import Offer
from ._settings import Settings, TaskLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    from ._settings import Hook

    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Server(Offer):
    """What one server offers. Decorate functions to add to it, then `run` it.

    A plain function runs on a worker thread of the engine's; with `inline=True` on the thread
    that runs the event loop, for what takes microseconds; a coroutine function as a task of the
    event loop. What is added while the server runs is seen by the next connection; with
    `list_changes=True` by all there are, which are told.

    Args:
        instructions: What the model is told about the server.
        list_changes: Announces that what is offered may change while clients are connected.
        subscriptions: Lets clients ask to be told when a resource changes: see `resource_updated`.
        page_size: Items on a page of a list; all of them by default.
        cache_lists: Seconds that clients may keep the lists before they ask again, from 2026-07-28
            on; not at all by default.
        cache_scope: Whether what they keep may be shown to other users: "public".
        extensions: Extensions that are offered, from 2026-07-28 on: settings by name. See
            `Context.extension`.
        task_limits: What is kept of tasks.
        state_key: 32 bytes that sign what clients keep between the rounds of a call; random by
            default. Give the same to processes that a client may reach in turn; keep it secret.
        on_initialized: Called with a `ClientInfo` when a client of a revision before 2026-07-28 has
            finished the handshake.
        on_roots_changed: Called with it when that client has other roots now.
        lifespan: An async context manager around each connection; what it gives is the `state`
            of every `Context`.
        trace: A file that gets a line for each frame of the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        instructions: str | None = None,
        list_changes: bool = False,
        subscriptions: bool = False,
        page_size: int | None = None,
        cache_lists: float | None = None,
        cache_scope: Literal["public", "private"] = "private",
        extensions: Mapping[str, Mapping[str, Any]] = {},
        task_limits: TaskLimits | None = None,
        state_key: bytes | None = None,
        on_initialized: Hook | None = None,
        on_roots_changed: Hook | None = None,
        lifespan: Lifespan | None = None,
        trace: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            Settings(
                name,
                version,
                instructions=instructions,
                list_changes=list_changes,
                subscriptions=subscriptions,
                page_size=page_size,
                cache_lists=cache_lists,
                cache_scope=cache_scope,
                extensions=extensions,
                task_limits=task_limits,
                state_key=state_key,
                on_initialized=on_initialized,
                on_roots_changed=on_roots_changed,
                trace=trace,
            )
        )
        self.name = name
        self.version = version
        self._lifespan = lifespan

    def run(self, *, grace: float = 5.0) -> None:
        """Serves on stdin and stdout until the client closes them or a signal comes; then
        answers what is in flight, for at most `grace` seconds.

        Blocks. Starts an event loop only if something needs one. While it serves, what the
        program prints goes to stderr.
        """
        from ._running import interrupts_left_to_the_engine, stray_output

        catalog = self._catalog()
        with interrupts_left_to_the_engine():
            if catalog.needs_loop or self._lifespan is not None:
                import asyncio

                from ._loop import serve

                return asyncio.run(serve(self, grace, own=True))
            from contextvars import copy_context

            with stray_output():
                serving = _core.Serving.stdio(catalog, grace, True, None, copy_context())
                try:
                    serving.wait()
                finally:
                    serving.close()

    async def serve(self, *, grace: float = 5.0) -> None:
        """Serves on stdin and stdout, in the running event loop, until the client closes them.

        Leaves signals to the program. Cancelling it ends the connection in good order.
        """
        from ._loop import serve

        await serve(self, grace, own=False)
