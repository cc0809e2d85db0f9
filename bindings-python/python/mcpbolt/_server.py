"""Servers: what they offer, and how they run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

from . import _core, _lower
from ._errors import Misuse
from ._signature import Function, Signature, description

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from os import PathLike

    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any]]

_F = TypeVar("_F", bound=Function)


class _Entry:
    """One tool, resource, template or prompt, as the engine reads it."""

    kind: str
    name: str
    uri = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    input_schema = ""
    output_schema: str | None = None
    annotations: str | None = None
    arguments: list[tuple[str, str | None, bool]] = []
    prepare: Function | None = None
    integers: list[str] = []
    lower: Function

    def __init__(self, kind: str, signature: Signature, name: str | None, inline: bool = False) -> None:
        self.kind = kind
        function = signature.function
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.description = description(function)
        self.context = signature.context
        if inline and signature.is_async:
            raise TypeError(f"{self.name}: a coroutine function cannot run inline")
        self.lane = "task" if signature.is_async else "inline" if inline else "worker"


class Server:
    """What one server offers. Decorate functions to add to it, then `run` it.

    A plain function runs on a worker thread of the engine's; with `inline=True` on the thread
    that runs the event loop, for what takes microseconds; a coroutine function as a task of the
    event loop. What is added while the server runs is seen by the next connection; with
    `list_changes=True` by all there are, which are told.

    Args:
        instructions: What the model is told about the server.
        list_changes: Announces that what is offered may change while clients are connected.
        subscriptions: Lets clients ask to be told when a resource changes: see `resource_updated`.
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
        lifespan: Lifespan | None = None,
        trace: str | PathLike[str] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self._lifespan = lifespan
        self.trace = trace
        self.list_changes = list_changes
        self.subscriptions = subscriptions
        self.completion_entry: _Entry | None = None
        self._entries: list[_Entry] = []
        self._made: list[_core.Catalog] = []

    @overload
    def tool(self, function: _F, /) -> _F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        inline: bool = False,
    ) -> Callable[[_F], _F]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        inline: bool = False,
    ) -> Any:
        """Offers a function as a tool. Its schema comes from its hints, its description from its
        docstring. With `input_schema` the function takes the arguments as that schema has them.

        Raises:
            TypeError: A parameter has a hint that JSON cannot carry.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            entry = _Entry("tool", signature, name, inline)
            entry.title = title
            entry.description = description or entry.description
            if input_schema is None:
                entry.input_schema, entry.prepare = signature.schema()
                entry.integers = signature.integers()
            else:
                entry.input_schema = _core.to_json(input_schema)
            if "return" in signature.hints:
                from ._schema import output

                entry.output_schema = output(signature.hints["return"])
            entry.annotations = _core.to_json(annotations) if annotations else None
            entry.lower = _lower.tool
            self._add(entry)
            return function

        return add if function is None else add(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
    ) -> Callable[[_F], _F]:
        """Offers what a function gives back as a resource; with variables in the URI
        (`users://{id}`), which become its arguments, as a template of resources.

        Raises:
            TypeError: The function's parameters are not the template's variables.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            entry = _Entry("template" if "{" in uri else "resource", signature, name)
            entry.uri = uri
            entry.title = title
            entry.description = description or entry.description
            entry.mime_type = mime_type
            entry.lower = _lower.contents(mime_type)
            if entry.kind == "resource" and signature.parameters:
                raise TypeError(f"{entry.name}: {uri!r} has no variables to give the function")
            self._add(entry)
            return function

        return add

    @overload
    def prompt(self, function: _F, /) -> _F: ...

    @overload
    def prompt(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> Callable[[_F], _F]: ...

    def prompt(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> Any:
        """Offers a function as a prompt: it gives back text, a `Message`, or a list of them."""

        def add(function: _F) -> _F:
            signature = Signature(function)
            entry = _Entry("prompt", signature, name)
            entry.title = title
            entry.description = description or entry.description
            entry.arguments = signature.strings()
            entry.lower = _lower.messages(entry.description)
            self._add(entry)
            return function

        return add if function is None else add(function)

    def completion(self, function: _F, /) -> _F:
        """Completes the arguments of prompts and templates while a user types: the function is
        called with a `CompletionRequest` and gives back values, best first.
        """
        signature = Signature(function)
        entry = _Entry("completion", signature, None)
        if len(signature.parameters) != 1:
            raise TypeError(f"{entry.name}: takes the request, and perhaps a context")
        (name,) = signature.parameters
        from ._completion import CompletionRequest

        def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
            return {name: CompletionRequest(arguments["request"])}

        entry.prepare = prepare
        entry.lower = _lower.completions
        self.completion_entry = entry
        return function

    def _add(self, entry: _Entry) -> None:
        if self.list_changes and self._made:
            self._made[0].add(entry)
        self._entries.append(entry)

    def _remove(self, kind: str, name: str) -> None:
        def is_it(entry: _Entry) -> bool:
            return entry.kind == kind and name == (entry.uri if kind == "resource" else entry.name)

        kept = [entry for entry in self._entries if not is_it(entry)]
        if len(kept) == len(self._entries):
            raise LookupError(f"there is no {kind} {name!r}")
        if self.list_changes and self._made:
            self._made[0].remove(kind, name)
        self._entries = kept

    def remove_tool(self, name: str) -> None:
        """Offers that tool no longer; calls under way are finished.

        Raises:
            LookupError: There is none of that name.
        """
        self._remove("tool", name)

    def remove_prompt(self, name: str) -> None:
        """Offers that prompt no longer."""
        self._remove("prompt", name)

    def remove_resource(self, uri: str) -> None:
        """Offers that resource no longer."""
        self._remove("resource", uri)

    def resource_updated(self, uri: str) -> None:
        """Tells the clients that subscribed to it that a resource is another now.

        Raises:
            Misuse: The server was made without `subscriptions=True`.
        """
        if not self.subscriptions:
            raise Misuse("clients cannot subscribe: make the server with subscriptions=True")
        for catalog in self._made:
            catalog.resource_updated(uri)

    def run(self, *, grace: float = 5.0) -> None:
        """Serves on stdin and stdout until the client closes them or a signal comes; then
        answers what is in flight, for at most `grace` seconds.

        Blocks. Starts an event loop only if something needs one. While it serves, what the
        program prints goes to stderr.
        """
        catalog = self._catalog()
        with interrupts_left_to_the_engine():
            if catalog.has_tasks or self._lifespan is not None:
                import asyncio

                from ._loop import serve

                return asyncio.run(serve(self, catalog, grace, own=True))
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

        await serve(self, self._catalog(), grace, own=False)

    def _catalog(self) -> _core.Catalog:
        """What is offered now. Where it may change, all connections share one."""
        if not (self.list_changes and self._made):
            catalog = _core.Catalog(self, self._entries)
            if not (self.list_changes or self.subscriptions):
                return catalog
            self._made.append(catalog)
        return self._made[-1]


class stray_output:
    """While the engine holds the wire, `print` writes to stderr, buffered text included."""

    def __enter__(self) -> None:
        self.stdout = sys.stdout
        if self.stdout is not None:
            self.stdout.flush()
        sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.stdout


class interrupts_left_to_the_engine:
    """An interrupt ends the server in good order instead of raising `KeyboardInterrupt`."""

    def __enter__(self) -> None:
        from signal import SIG_IGN, SIGINT, signal

        self.handler = signal(SIGINT, SIG_IGN)

    def __exit__(self, *_: object) -> None:
        from signal import SIGINT, signal

        signal(SIGINT, self.handler)
