"""The part of `Server` that holds its tools, resources, prompts, completions and skills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload

from . import _core, _lower
from ._entry import Entry, Icons, TaskSupport, objection
from ._errors import Misuse
from ._options import options
from ._returned import Returned
from ._signature import Function, Signature, is_coroutine_function, name_of
from ._steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from weakref import ref

    from ._failures import OnError
    from ._call import Middleware
    from ._lanes import Layer
    from ._mount import Mount
    from ._settings import Settings
    from ._skills import SkillFolder

    _M = TypeVar("_M", bound=Middleware)
    _E = TypeVar("_E", bound=OnError)

_F = TypeVar("_F", bound=Function)


class MountedServer(Protocol):
    """A server elsewhere: an `External`."""

    def _mount(self, server: object, prefix: str) -> None: ...


class Offer:
    """Tools, resources, prompts, completions and skills of a server. Decorate functions to add them."""

    def __init__(
        self,
        settings: Settings,
        list_changes: bool,
        subscriptions: bool,
        strict: bool,
        json_strings: bool,
        by_alias: bool | None,
    ) -> None:
        self._settings = settings
        self._strict = strict
        self._json_strings = json_strings
        self._by_alias = by_alias
        self._list_changes = list_changes
        self._subscriptions = subscriptions
        self._entries: list[Entry] = []
        self._completion: Entry | None = None
        self._mounts: list[Mount] = []
        self._mounted_in: list[ref[Mount]] = []
        self._front: Any = None  # the `Front` before this server and the external ones that are mounted in it
        self._made: list[_core.Catalog] = []
        self._is_stale = True

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
        output_schema: dict[str, Any] | bool | None = None,
        strict: bool | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        action: Mapping[str, Any] | None = None,
        on_get: bool = False,
        task: TaskSupport = "forbidden",
        kept: _core.Results | None = None,
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
        output_schema: dict[str, Any] | bool | None = None,
        strict: bool | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        action: Mapping[str, Any] | None = None,
        on_get: bool = False,
        task: TaskSupport = "forbidden",
        kept: _core.Results | None = None,
        inline: bool = False,
    ) -> Any:
        """Adds a function as a tool. Its schemas come from the type hints, as pydantic has them, its description and those
        of its parameters from the docstring. pydantic validates and converts the arguments. With `input_schema` the
        function gets the arguments unconverted, as that schema has them.

        Args:
            output_schema: The schema of the structured content. By default, the return hint gives it, if it is for data.
                Results are validated against it before they are sent. `False`: there is none. `True`: there must be one,
                also for content.
            strict: Whether arguments must have the types of the parameters: by default a string of digits is also taken
                for an integer, and so on. `None`: as the server has it.
            annotations: Hints on the tool's behaviour: `readOnlyHint`, `destructiveHint` and so on.
            icons: Icons of the tool: `Icon`s, or their URIs.
            meta: The tool's `_meta`.
            action: Further members for `mcp.get_schema` of the action dialect: any of `examples`, `errors` (their
                types), `help_url`, `deprecated` (a notice), `atomic` (whether a failed call is undone), and more.
            on_get: Lets a GET run the tool, in the action dialect over HTTP: `GET …/stream?action=NAME`. A web page
                can make a browser send a GET without an origin, so this is only for tools whose annotations have
                `readOnlyHint`; for any other it is a `ValueError` when the server starts.
            task: Whether calls may, or must, run as tasks: see `Context.begin_task`.
            kept: A cache of the tool's results. A repeated call gets the cached result, without running the
                function, until it expires or is forgotten. Failures are not cached.

        A parameter with the hint `Steps` makes the tool atomic: the steps that the function records there are undone
        unless the call succeeds.

        Raises:
            TypeError: A parameter has a hint that JSON cannot represent; with `output_schema=True`, the return hint.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            steps = signature.takes(Steps)
            entry = Entry("tool", signature, name=name, text=description, inline=inline)
            definition = entry.define(title=title, icons=icons, meta=meta)
            told = f'tool "{entry.name}"'
            if input_schema is None:
                is_strict = self._strict if strict is None else strict
                arguments = signature.arguments(told, is_strict, self._json_strings)
                definition["inputSchema"] = arguments.schema
                if arguments.are_told and description is None:
                    entry.shorten()
                entry.prepare, entry.is_plain = arguments.prepare, arguments.is_plain
            else:
                definition["inputSchema"] = input_schema
            entry.lower = _lower.tool
            returned = None
            if output_schema in (None, True):
                returned = Returned.of(signature.hints.get("return"), told, self._by_alias, bool(output_schema))
            elif output_schema:
                definition["outputSchema"] = output_schema
                entry.lower = _lower.structured
            if returned is not None:
                definition["outputSchema"] = returned.schema
                entry.lower, entry.wraps = returned.lower, returned.wraps if returned.is_plain else None
            definition |= options(
                annotations=annotations or None,
                action=action or None,
                on_get=on_get,
                task_support=task,
                atomic=steps is not None,
                cache_ttl=kept and kept.ttl,
            )
            entry.kept, entry.steps = kept, steps
            self._add(entry)
            if why := objection(entry.name):
                self._settings.failed.warn(f"Tool name validation warning for {entry.name!r}: {why}")
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
        size: int | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[_F], _F]:
        """Adds a resource whose contents the function returns. If the URI has variables
        (`users://{id}`), it adds a resource template, and the variables are the function's arguments.

        Args:
            size: The size in bytes, if known; not for templates.
            annotations: Audience and importance of the resource: `audience`, `priority`, `lastModified`.
            icons: Icons of the resource: `Icon`s, or their URIs.
            meta: The resource's `_meta`.

        Raises:
            TypeError: The function's parameters are not the template's variables.
        """

        def add(function: _F) -> _F:
            signature = Signature(function)
            kind = "template" if "{" in uri else "resource"
            entry = Entry(kind, signature, name=name, text=description)
            entry.uri = uri
            more = options(uri=uri, mime_type=mime_type, size=size, annotations=annotations or None)
            entry.define(title=title, icons=icons, meta=meta).update(more)
            entry.lower = _lower.contents(mime_type)
            if not signature.takes_only_text():
                entry.prepare = signature.arguments(f'resource "{uri}"').prepare
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
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[_F], _F]: ...

    def prompt(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Adds a function as a prompt: it returns text, a `Message`, or a list of them."""

        def add(function: _F) -> _F:
            signature = Signature(function)
            entry = Entry("prompt", signature, name=name, text=description)
            definition = entry.define(title=title, icons=icons, meta=meta)
            arguments = signature.arguments(f'prompt "{entry.name}"')
            if arguments.are_told and description is None:
                entry.shorten()
            definition["arguments"] = [
                options(name=name, title=title, description=text, required=required)
                for name, title, text, required in arguments.strings()
            ]
            if not signature.takes_only_text():
                entry.prepare = arguments.prepare
            entry.lower = _lower.messages(entry.description)
            self._add(entry)
            return function

        return add if function is None else add(function)

    def completion(self, function: _F, /) -> _F:
        """Completes the arguments of prompts and templates while a user types: the function is
        called with a `CompletionRequest` and returns values, best first.

        Raises:
            Misuse: The server was made with `list_changes=True` and has been served already, so that
                its capabilities cannot change.
        """
        self._must_not_run("the completion")
        signature = Signature(function)
        entry = Entry("completion", signature)
        if len(signature.parameters) != 1:
            raise TypeError(f"{entry.name}: the function must take the request, and optionally a context")
        (name,) = signature.parameters
        from ._completion import CompletionRequest

        def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
            return {name: CompletionRequest(arguments["request"])}

        entry.prepare = prepare
        entry.lower = _lower.completions
        entry.failed = self._settings.failed
        self._completion = entry
        self._grow_stale()
        return function

    def middleware(self, function: _M, /) -> _M:
        """Adds a middleware: a coroutine function around each call, read, prompt, completion and list of this server,
        and of the servers that it mounts.

        It is called with the `Call` and with `next`, which carries on and returns the reply as a value: a `ToolResult`;
        a list of `ResourceContents`; a list of `Message`; completions, as a list of text; or the `Tool`, `Resource`,
        `ResourceTemplate` or `Prompt` objects of a page of a list. The middleware returns that, changed or not, or
        answers without `next`, or raises, as the function may. What the function raises, `next` raises.

        The first middleware added is the outermost. Arguments are checked before it, and cleaned by `sanitise`;
        `approval` follows it, then the result cache, `Depends` and `Steps`. A call with middleware is a task of the
        event loop, and a plain function runs on a worker thread beside it. What the engine answers by itself does not
        pass: the handshake, pings, subscriptions, skills, tasks, and requests that it refuses. In a mounted server
        middleware sees no lists.

        Raises:
            Misuse: The server was made with `list_changes=True` and has been served already.
            TypeError: It is not a coroutine function.
        """
        if not is_coroutine_function(function):
            raise TypeError(f"{name_of(function)}: a middleware is a coroutine function: async def f(call, next)")
        self._must_not_run("the middleware")
        self._settings.middleware.append(function)
        self._grow_stale()
        return function

    def on_error(self, function: _E, /) -> _E:
        """Adds a function that is called with each exception that no client is told about, and with the `Call`, or `None`
        if it was not raised by one. It is called where the exception was raised, after the exception was logged to
        `mcpbolt.server.NAME`. `ToolError`, `ProtocolError` and the like are answers, and do not count.

        Raises:
            TypeError: It is a coroutine function.
        """
        if is_coroutine_function(function):
            raise TypeError(f"{name_of(function)}: an on_error hook is a plain function; it may start a task")
        self._settings.failed.hooks.append(function)
        return function

    def mount(self, prefix: str, server: Offer | MountedServer) -> None:
        """Offers all that another server offers, now and later. Tools and prompts get names with the prefix, `PREFIX_NAME`;
        resources and templates get the prefix as the first segment of their URI, `memo://PREFIX/path`; a URI without `://`
        stays as it is. An empty prefix changes nothing. Skills are within a folder of that name.

        The other server's middleware, hooks, completion, lifespan and `on_error` count for what it offers; its
        settings do not, such as its instructions and its limits.

        An `External` is a server elsewhere: clients see its tools, prompts and resources beside those of this server, wherever
        this server is served. URIs get the prefix in lower case. This server's policy counts for tools of both, by the names that
        clients see; its middleware, hooks and `on_error` count for its own tools. Requests pass through a `Front`: "Servers
        elsewhere within a server" of the guide says what this changes for this server's own tools.

        Raises:
            ValueError: A name or URI is taken, the prefix is not a name, one server is within the other, or the other one
                has a policy, which would not count. For an `External`: it has a prefix already, its name is taken, a name of
                this server begins with the prefix, or this server has `actions`, a `profile`, or is mounted itself.
            TypeError: The other one is neither a server nor an `External`.
            Misuse: This server was made with `list_changes=True`, has been served already, and the other one has a
                lifespan or a completion, or is an `External`, which came too late.
        """
        if not isinstance(server, Offer):
            if not hasattr(server, "_mount"):
                raise TypeError(f"mount: a Server or an External, not {type(server).__name__}; External(…) takes addresses")
            return server._mount(self, prefix)
        from ._mount import mount

        mount(self, prefix, server)

    def add_skills(self, folder: str | PathLike[str]) -> None:
        """Adds the skill in a folder, or all skills below it. A skill is a folder with a `SKILL.md`.
        Its files are read now. Hidden files, symbolic links and everything else that is not a plain file
        or folder are left out. The path from `folder` to a skill becomes part of the skill's URI.

        Raises:
            ValueError: There is no skill in the folder or below it.
        """
        from ._skills import skills

        for skill in skills(folder):
            self._add_skill(skill)
            self._settings.skills.append(skill)

    def _add_skill(self, skill: SkillFolder) -> None:
        self._change(lambda catalog: catalog.add_skill(skill))
        for mount in self._outer():
            mount.outer._add_skill(mount.skill(skill))

    def _must_not_run(self, what: str) -> None:
        if self._list_changes and self._made:
            raise Misuse(f"clients were told what the server can do: add {what} before the first connects")
        for mount in self._outer():
            mount.outer._must_not_run(what)

    def _outer(self) -> Iterator[Mount]:
        """Where this server is mounted."""
        self._mounted_in = [reference for reference in self._mounted_in if reference() is not None]
        for reference in self._mounted_in:
            if (mount := reference()) is not None:
                yield mount

    def _grow_stale(self) -> None:
        self._is_stale = True
        for mount in self._outer():
            mount.outer._grow_stale()

    def _change(self, change: Callable[[_core.Catalog], object]) -> None:
        """Changes the catalog in use if `list_changes` was announced; otherwise has the next server build a new one."""
        if self._list_changes and self._made:
            change(self._made[-1])
        else:
            self._is_stale = True

    def _add(self, entry: Entry) -> None:
        entry.failed = self._settings.failed
        if self._mounts or self._mounted_in:
            from ._mount import check_free

            check_free(self, entry)
        if self._front is not None:
            from ._mount import check_apart

            check_apart(self, entry)
        self._added(entry, [])
        self._entries.append(entry)

    def _added(self, entry: Entry, inner: list[Layer]) -> None:
        """Shows a new entry to clients, here and where this server is mounted. `inner` are its layers so far."""
        around = self._around(entry) + inner
        self._change(lambda catalog: catalog.add(_layered(entry, around)))
        for mount in self._outer():
            mount.outer._added(mount.renamed(entry), mount.entered(entry, around))

    def _around(self, entry: Entry) -> list[Layer]:
        """The layers of this server around an entry."""
        settings = self._settings
        if not (settings.middleware or settings.approval or settings.sanitise):
            return []
        from ._layers import layers

        return layers(entry, settings)

    def _offered(self) -> Iterator[tuple[Entry, list[Layer]]]:
        """The entries of this server and of the servers mounted in it, each with the layers around it."""
        for entry in self._entries:
            yield entry, self._around(entry)
        for mount in self._mounts:
            for entry, inner in mount.offered():
                yield entry, self._around(entry) + inner

    def _remove(self, kind: str, name: str) -> None:
        kept = [entry for entry in self._entries if entry.kind != kind or entry.key != name]
        if len(kept) == len(self._entries):
            raise LookupError(f"there is no {kind} {name!r}")
        self._removed(kind, name)
        self._entries = kept

    def _removed(self, kind: str, name: str) -> None:
        self._change(lambda catalog: catalog.remove(kind, name))
        for mount in self._outer():
            mount.outer._removed(kind, mount.key(kind, name))

    def remove_tool(self, name: str) -> None:
        """Removes a tool; calls in progress are finished.

        Raises:
            LookupError: There is no tool of that name.
        """
        self._remove("tool", name)

    def remove_prompt(self, name: str) -> None:
        """Removes a prompt."""
        self._remove("prompt", name)

    def remove_resource(self, uri: str) -> None:
        """Removes a resource."""
        self._remove("resource", uri)

    def remove_resource_template(self, template: str) -> None:
        """Removes a resource template."""
        self._remove("template", template)

    def resource_updated(self, uri: str) -> None:
        """Notifies the clients that subscribed to a resource that it has changed.

        Raises:
            Misuse: The server was made without `subscriptions=True`.
        """
        if not self._subscriptions:
            raise Misuse("clients cannot subscribe: make the server with subscriptions=True")
        self._updated(uri)

    def _updated(self, uri: str) -> None:
        for catalog in self._made:
            catalog.resource_updated(uri)
        for mount in self._outer():
            mount.outer._updated(mount.key("resource", uri))

    def _catalog(self) -> _core.Catalog:
        """The current catalog. All connections share it and its kept tasks, until it changes."""
        if self._is_stale and not (self._made and self._list_changes):
            catalog = _core.Catalog(self._served_settings(), self._served_entries())
            # Subscribers of an older catalog still get its update notifications.
            self._made = [*(made for made in self._made if made.in_use), catalog]
            self._is_stale = False
        return self._made[-1]

    def _served_entries(self) -> list[Entry]:
        entries = [_layered(entry, around) for entry, around in self._offered()]
        if self._mounts:
            from ._mount import completion

            completes = completion(self)
        else:
            completes = self._completion and _layered(self._completion, self._around(self._completion))
        if completes is not None:
            entries.append(completes)
        if self._settings.middleware:
            from ._middleware import lists

            entries.append(lists(self._settings.middleware))
        return entries

    def _served_settings(self) -> Settings:
        if not self._mounts and self._front is None:
            return self._settings
        from ._mount import settings

        return settings(self)

    def _skills(self) -> Iterator[SkillFolder]:
        yield from self._settings.skills
        for mount in self._mounts:
            yield from map(mount.skill, mount.server._skills())


def _layered(entry: Entry, around: list[Layer]) -> Entry:
    if not around and not entry.is_wrapped:
        return entry
    from ._layers import layered

    return layered(entry, around)
