"""`Server`: sets up an MCP server and runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from . import _core
from ._failures import Failures
from ._offer import Offer
from ._settings import JwtAlgorithm, Policy, References, Settings, TaskLimits, jwt_keys

Profile = Literal["official", "reference", "chain", "extended", "patterns"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    from ._asgi import AsgiApp
    from ._loop import ServedAddress
    from ._call import Middleware
    from ._serve_options import ServeOptions
    from ._settings import Approve, Clean, Hook

    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Server(Offer):
    """An MCP server. Decorate functions to add tools, resources and prompts, then `run` it.

    A plain function runs on a worker thread of the engine, or, with `inline=True`, on the thread that
    runs the event loop (only for functions that take microseconds). A coroutine function runs as a
    task of the event loop. Additions made while the server runs are visible to the next connection;
    with `list_changes=True`, open connections see them too and are notified.

    Args:
        instructions: Text that tells the model how to use the server.
        list_changes: Announces that the lists of tools, resources and prompts may change while clients are connected.
        subscriptions: Lets clients subscribe to changes of a resource: see `resource_updated`.
        page_size: Items on a page of a list; by default one page holds all of them.
        cache_lists: Seconds that clients may cache the lists, from 2026-07-28 on; not at all by default.
        cache_scope: "public" if the cached lists may be shown to other users.
        extensions: Extensions that the server offers, from 2026-07-28 on: settings by name. See
            `Context.extension`.
        task_limits: How many tasks are kept, how large and for how long.
        max_bytes: Memory that all connections on all addresses may take together, in bytes: messages that have
            not fully arrived, calls in progress, answers that clients have not read yet, and data that outlives a
            call. A fifth is left to the allocator. 268435456 (256 MiB) by default; 1 GiB while the server is
            reachable only by stdin and stdout. An eighth of the rest is reserved for messages of at most 64 KiB.
            When the bytes outside the reserve are used up, long messages are refused at once: over HTTP with 503
            and `Retry-After`, elsewhere with an overload error that has `retryAfter`.
        references: When answers of the action dialect refer to their data instead of containing it; never by default.
        state_key: 32 bytes that sign the state which clients hold between the rounds of a call; random by
            default. Workers, and processes with one store, have the same key by themselves; give it to other processes that
            may serve the same client. Keep it secret.
        on_initialized: Called with a `ClientInfo` when a client of a revision before 2026-07-28 has
            finished the handshake.
        on_roots_changed: Called with the `ClientInfo` of such a client when its roots have changed.
        lifespan: An async context manager, entered once for each `run`, `serve`, `listening` or `asgi` and open
            until its last connection has ended; the value that it yields is the `state` of every `Context`.
        trace: A file that gets a line for each frame on the wire, with the values of members
            that are named like secrets masked; `"-"` is stderr.
        profile: The dialect spoken up to 2025-11-25: "reference", "chain", "extended" and "patterns" select documents
            that have their own error codes, error messages and methods.
        policy: What clients may do, how often and for how long, what is masked and what is audited.
        approval: Hooks that decide whether a tool is called, by tool name (`"*"` is for every tool not named). A hook
            is called with the tool's name, its arguments (already valid against the schema) and the `Context`, which
            it can use to ask the user. `True` calls the tool; `False` gives a failed result for the model to read, and
            an exception is treated as if the tool had raised it.
        sanitise: Hooks that clean the arguments, by tool name in the same way. They run before `approval` and are
            called with the same values. They return a dict, which must fit the schema too, or raise. The audit gets
            the arguments as they came.

            Hooks of both kinds may be coroutine functions. Plain ones run on a worker thread, and so does a tool with
            `inline=True` that has one. The time limit of the tool includes its hooks. A name that no tool has is a
            `ValueError` when the server starts, unless `list_changes` is set.
        experimental: The capabilities declared as `experimental`: settings by name. `batch` lets clients of
            "extended" send several requests in one message.
        middleware: Coroutine functions around each call, read, prompt, completion and list, the outermost first: see
            `Server.middleware`.
        actions: Also answers requests of the action dialect, on the same addresses; each tool is an action. Off by
            default: such a request is then an error.
        strict: Whether arguments of tools must have the types of the parameters, as pydantic's strict mode checks JSON.
            By default they are converted where that loses nothing: `"3"` to `3` for an `int`.
        json_strings: Whether a string for a parameter of a tool is read as JSON first, unless the hint of the parameter is
            `str` or `str | None`: `"[1, 2]"` for a `list[int]`. Some models write lists and objects in this way.
        serialize_by_alias: Whether results of tools whose return hints give a schema name the fields of a model by their aliases. `None`: as the configuration
            of each model has it, where pydantic's default is not to.
        mask_error_details: Whether the texts of unexpected exceptions are kept from clients. `False` sends them, in failed
            results, whatever they contain.
        telemetry: Makes spans and metrics of all requests and sessions with the program's OpenTelemetry, its global tracer and meter, by
            the conventions for MCP. Functions run within the span of their call. Needs `pip install 'mcpbolt[telemetry]'`.

    Raises:
        ModuleNotFoundError: `telemetry` is set, and OpenTelemetry's API is not installed.
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
        max_bytes: int | None = None,
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
        actions: bool = False,
        strict: bool = False,
        json_strings: bool = False,
        serialize_by_alias: bool | None = True,
        mask_error_details: bool = True,
        middleware: Sequence[Middleware] = (),
        telemetry: bool = False,
    ) -> None:
        super().__init__(
            Settings(
                name=name,
                version=version,
                instructions=instructions,
                list_changes=list_changes,
                subscriptions=subscriptions,
                page_size=page_size,
                cache_lists=cache_lists,
                cache_scope=cache_scope,
                extensions=extensions,
                task_limits=task_limits,
                max_bytes=max_bytes,
                references=references,
                state_key=None if state_key is None else list(state_key),
                on_initialized=on_initialized,
                on_roots_changed=on_roots_changed,
                trace=trace,
                profile=profile,
                policy=policy,
                approval=approval,
                sanitise=sanitise,
                experimental=experimental,
                actions=actions,
                failed=Failures(name, mask_error_details),
                telemetry=telemetry,
            ),
            list_changes,
            subscriptions,
            strict,
            json_strings,
            serialize_by_alias,
        )
        self.name = name
        self.version = version
        self._lifespan = lifespan
        for one in middleware:
            self.middleware(one)

    def replace_jwt_keys(self, keys: Mapping[str, tuple[JwtAlgorithm, str]]) -> None:
        """Replaces the keys of `Policy(jwt=…)`, from the next token on: algorithm and key by `kid`.

        To rotate without refusing any client, first give both the old and the new key; give the new key alone once
        the last token of the old key has expired.

        Raises:
            ValueError: The policy verifies no tokens, a key does not fit its algorithm, or no key is given. The old
                keys stay in force.
        """
        self._catalog().replace_jwt_keys(_core.to_json(jwt_keys(keys)))

    def run(
        self,
        address: str = "stdio:",
        *,
        grace: float = 5.0,
        options: ServeOptions | None = None,
        workers: int | None = None,
        health: str | None = None,
    ) -> None:
        """Serves until the process gets a signal or the client closes stdin, then finishes the calls in
        flight, for at most `grace` seconds.

        Blocks. On stdin and stdout an event loop is started only if something needs one, and the program's own
        output goes to stderr meanwhile. On the network the address is printed to stderr.

        This is the only function of the package that ends the process. It exits with status 1 so that a handler that
        never returns cannot keep the process alive: on stdin and stdout 60 ms after the end if calls are still
        unanswered; on the network if `run` has not returned one second after the last connection has ended.

        Args:
            address: `stdio:` is this process's stdin and stdout. `http://127.0.0.1:8000/mcp` listens there,
                for every revision; port 0 lets the system choose.
            options: Who may connect over the network, and the limits.
            workers: Serve with that many processes, which share the address. The program runs again in each of them, from its
                beginning, with the same arguments; this process starts them, and replaces one that ends. SIGHUP replaces all,
                one by one: over HTTP, a request without a session is answered if it takes at most 5 s and `grace`, and sessions begin anew,
                unless `options` has a `store`; SIGTERM ends all. A request
                of a session that comes to another process than the session's is passed on to it. What a program keeps in memory
                is of one process. The limits of `options` are those of each process.
            health: With `workers`, an address such as `http://127.0.0.1:9090`, where `/readyz` has status 200 while requests are taken, and
                503 while the first processes start or the last ones end; `/healthz` and `/livez` have status 200.

        Raises:
            ValueError: The address is malformed, or is `stdio:` although `workers` is given, or `health` is given without; or `options` has a
                `store`, and the address is not one of HTTP.
            OSError: Listening at the address failed, or a worker ended before all served.
            RuntimeError: `workers` is given in a program that cannot be started again, such as an interactive one.
            PermissionError: Other machines can reach the address, and the server's policy checks no credentials;
                pass `ServeOptions(anonymous=True)` if that is intended.
        """
        worker = False
        if workers is not None or health is not None:
            from ._workers import is_worker, supervised

            worker = is_worker(workers)
            if not worker:
                return supervised(self.name, address, workers, grace, health)
        if self._front is not None:
            from ._serve_options import serve_options

            self._front._serves(address, serve_options(options, grace), "listens on", worker)
            return
        if address != "stdio:":
            import asyncio

            from ._loop import serve_listening

            def ready(at: str) -> None:
                if not worker:
                    print(f"{self.name} listens on {at}", file=sys.stderr, flush=True)

            return asyncio.run(serve_listening(self, address, grace, options, ready, worker))
        from ._running import interrupts_left_to_the_engine, stray_output
        from ._serve_options import check_on_stdio

        check_on_stdio(options)
        catalog = self._catalog()
        with interrupts_left_to_the_engine():
            if catalog.needs_loop or self._has_lifespan():
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

    def _has_lifespan(self) -> bool:
        if not self._mounts:
            return self._lifespan is not None
        from ._mount import lifespans

        return bool(lifespans(self))

    async def serve(
        self, address: str = "stdio:", *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> None:
        """Serves in the running event loop, asyncio's or trio's: on stdin and stdout until the client closes them,
        elsewhere until the task is cancelled.

        Signals are left to the program. Cancelling shuts down gracefully: calls in flight get `grace` seconds.
        """
        if self._front is not None:
            await self._front.serve(address, grace=grace, options=options)
            return
        from . import _loop
        from ._event_loop import shielded

        if address == "stdio:":
            from ._serve_options import check_on_stdio

            check_on_stdio(options)
            return await _loop.serve(self, grace, own=False)
        async with _loop.listening(self, address, grace, options) as (_, ended):
            await shielded(ended)

    def listening(
        self, address: str, *, grace: float = 5.0, options: ServeOptions | None = None
    ) -> AbstractAsyncContextManager[ServedAddress]:
        """Serves in the running event loop while the block runs. Yields the address, with the real port if
        0 was given, and with `counts` of its traffic."""
        if self._front is not None:
            listening: AbstractAsyncContextManager[ServedAddress] = self._front.listening(
                address, grace=grace, options=options
            )
            return listening
        from ._loop import address_of

        return address_of(self, address, grace, options)

    def asgi(self, path: str = "/mcp", *, grace: float = 5.0, options: ServeOptions | None = None) -> AsgiApp:
        """Makes an ASGI application of the server, for uvicorn and the like, or to mount in a larger one. It
        answers at `path`, and exactly at its mount point.

        Functions run as they do on any other address. Requests and answers pass through Python, which costs
        several times as much as `run("http://…")`. `hosts` and `origins` of `options` are checked against the
        headers as they are there.
        """
        from ._asgi import AsgiApp

        if self._front is not None:
            app: AsgiApp = self._front.asgi(path, grace=grace, options=options)
            return app
        return AsgiApp(self, path, grace, options)
