"""Servers: how they are set up, and how they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

from . import _core
from ._offer import Offer
from ._settings import Policy, References, Settings, TaskLimits

Profile = Literal["official", "seed-001", "seed-002", "seed-003", "seed-004"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    from ._asgi import AsgiApp
    from ._loop import ServedAddress
    from ._serve_options import ServeOptions
    from ._settings import Approve, Clean, Hook

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
        references: When answers of the action dialect refer to their data instead of holding them; never by default.
        state_key: 32 bytes that sign what clients keep between the rounds of a call; random by
            default. Give the same to processes that a client may reach in turn; keep it secret.
        on_initialized: Called with a `ClientInfo` when a client of a revision before 2026-07-28 has
            finished the handshake.
        on_roots_changed: Called with it when that client has other roots now.
        lifespan: An async context manager around all that is served by one `run`, `serve`, `listening` or
            `asgi`, its connections included; what it gives is the `state` of every `Context`.
        trace: A file that gets a line for each frame of the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
        profile: Whose reading of the protocol is spoken up to 2025-11-25: "seed-001" to "seed-004", documents
            that have codes, words and methods of their own.
        policy: What clients may do, how often and for how long, what is masked and what is written down.
        approval: Who is asked before a tool is called, by its name (`"*"` is every other tool): called with its name,
            the arguments, which fit its schema, and the `Context`, by which the user may be asked. `True` has the tool
            called. `False` is a failure for the model to read; what the hook raises is, too, as if the tool had.
        sanitise: The same for who cleans the arguments before anybody else sees them: gives back a dict, which has to
            fit the schema, too, or raises. The audit is told what came.

            Both may be coroutine functions; plain ones run on a worker thread, and so does a tool of theirs with
            `inline=True`. What bounds the time of a tool bounds them, too. A name that no tool has is a `ValueError`
            when the server is served, unless `list_changes`.
        experimental: What is declared as `experimental`: settings by name. `batch` lets clients of
            "seed-003" send several requests as one.
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
        references: References | None = None,
        state_key: bytes | None = None,
        on_initialized: Hook | None = None,
        on_roots_changed: Hook | None = None,
        lifespan: Lifespan | None = None,
        trace: str | PathLike[str] | None = None,
        profile: Profile = "official",
        policy: Policy | None = None,
        approval: Mapping[str, Approve] = {},
        sanitise: Mapping[str, Clean] = {},
        experimental: Mapping[str, Mapping[str, Any]] = {},
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
                references=references,
                state_key=state_key,
                on_initialized=on_initialized,
                on_roots_changed=on_roots_changed,
                trace=trace,
                profile=profile,
                policy=policy,
                approval=approval,
                sanitise=sanitise,
                experimental=experimental,
            )
        )
        self.name = name
        self.version = version
        self._lifespan = lifespan

    def run(self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None) -> None:
        """Serves until a signal comes, or the client closes stdin; then answers what is in flight, for
        at most `grace` seconds.

        Blocks. On stdin and stdout it starts an event loop only if something needs one, and what the
        program prints goes to stderr meanwhile. On the network it says on stderr where it listens.

        Args:
            address: `stdio:` is this process's stdin and stdout. `http://127.0.0.1:8000/mcp` listens there,
                for every revision; port 0 is any.
            options: Who may reach it on the network, and its bounds.

        Raises:
            ValueError: That is no address.
            OSError: Nobody can listen there.
        """
        if address != "stdio:":
            import asyncio

            from ._loop import serve_listening

            def ready(at: str) -> None:
                print(f"{self.name} listens on {at}", file=sys.stderr, flush=True)

            return asyncio.run(serve_listening(self, address, grace, options, ready))
        from ._running import interrupts_left_to_the_engine, stray_output

        catalog = self._catalog()
        with interrupts_left_to_the_engine():
            if catalog.needs_loop or self._lifespan is not None:
                import asyncio

                from ._loop import serve

                return asyncio.run(serve(self, grace, own=True))
            from ._interpreter import Interpreter

            with stray_output():
                serving = _core.Serving.stdio(catalog, Interpreter(), grace, True)
                try:
                    serving.wait()
                finally:
                    serving.close()

    async def serve(
        self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> None:
        """Serves in the running event loop, asyncio's or trio's: on stdin and stdout until the client closes them,
        elsewhere until it is cancelled.

        Leaves signals to the program. Cancelling it ends what is in flight in good order.
        """
        from . import _loop
        from ._event_loop import shielded

        if address == "stdio:":
            return await _loop.serve(self, grace, own=False)
        async with _loop.listening(self, address, grace, options) as (_, ended):
            await shielded(ended)

    def listening(
        self, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> AbstractAsyncContextManager[ServedAddress]:
        """Serves in the running event loop while the block runs; gives the address, with the port that the
        system chose where it was 0, and with `counts` of what is done there."""
        from ._loop import address_of

        return address_of(self, address, grace, options)

    def asgi(self, path: str = "/mcp", *, grace: float = 5.0, options: ServeOptions | None = None) -> AsgiApp:
        """The server as an ASGI application, for uvicorn and its like, or as a part of a larger one. It
        answers at `path`, and where it is mounted exactly.

        Functions run as they do on any other address; requests and answers pass through Python, which costs
        several times what `run("http://…")` does. The host names and origins of `options` are held against
        the headers, as there.
        """
        from ._asgi import AsgiApp

        return AsgiApp(self, path, grace, options)
